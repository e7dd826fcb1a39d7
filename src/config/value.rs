//! A key's value between its text in the file and its field in the structs.
//!
//! Decides: a few shapes are enough for every key, so reading, writing and range checks exist once per shape and not
//! once per key. A `Field` defines the shape of a Rust type.
//! Invariants: `from_value(to_value(x)) == Some(x)` for every value a key's range admits.
//! Leaves to others: which shape and range a key has (`keys`), the TOML side (`kind`).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use super::hierarchy::Hierarchy;
use super::host_lines::HostLines;
use super::hours::Hours;
use super::record_kinds::RecordKinds;
use super::retry_rule::RetryRule;
use super::secret::Secret;
use ringcrawl_base::time::Duration;
use ringcrawl_html::MediaRanges;

/// A value that was read or will be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// A duration.
    Time(Duration),
    /// No duration.
    Never,
    /// A count, a level or a number of bytes; wide enough for `u64` and `i64`.
    Number(i128),
    /// Free text, or the name of a choice.
    Text(String),
    /// Hours of the day, or the whole day.
    Hours(Option<Hours>),
    /// Groups of top-level domains.
    Domains(Arc<Hierarchy>),
    /// Media types.
    MediaTypes(MediaRanges),
    /// Kinds of records.
    RecordKinds(RecordKinds),
    /// Name servers.
    Servers(Vec<SocketAddr>),
    /// Fixed names and their addresses.
    Hosts(BTreeMap<String, Vec<IpAddr>>),
    /// Paths of files.
    Files(Vec<PathBuf>),
    /// Names of parameters.
    Names(Vec<String>),
    /// IP addresses.
    Addresses(Vec<IpAddr>),
    /// Origins and their credentials.
    Logins(BTreeMap<String, Secret>),
    /// Lines for single hosts.
    HostLines(HostLines),
    /// How one class of failures is retried.
    Retry(RetryRule),
    /// A secret by itself.
    Secret(Secret),
}

/// A type that a key's field may have.
pub(super) trait Field: Sized {
    /// The field's value; `None` when the shape is another or the type too narrow.
    fn from_value(value: Value) -> Option<Self>;
    /// The value to write.
    fn to_value(&self) -> Value;
}

macro_rules! number_fields {
    ($($number:ty)*) => {$(
        impl Field for $number {
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Number(number) => <$number>::try_from(number).ok(),
                    _ => None,
                }
            }
            fn to_value(&self) -> Value {
                // No integer type here is wider than 64 bits; `usize` alone has no `From`, hence `as`.
                Value::Number(*self as i128)
            }
        }
    )*};
}

number_fields! { u8 u16 u32 u64 usize i32 }

macro_rules! plain_fields {
    ($($field:ty = $shape:ident;)*) => {$(
        impl Field for $field {
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$shape(inner) => Some(inner),
                    _ => None,
                }
            }
            fn to_value(&self) -> Value {
                Value::$shape(self.clone())
            }
        }
    )*};
}

plain_fields! {
    Duration = Time;
    String = Text;
    Option<Hours> = Hours;
    Arc<Hierarchy> = Domains;
    MediaRanges = MediaTypes;
    RecordKinds = RecordKinds;
    Vec<SocketAddr> = Servers;
    BTreeMap<String, Vec<IpAddr>> = Hosts;
    Vec<PathBuf> = Files;
    Vec<String> = Names;
    Vec<IpAddr> = Addresses;
    BTreeMap<String, Secret> = Logins;
}

/// A time until something happens; `None`: it never happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrNever(pub Option<Duration>);

impl Field for OrNever {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Time(interval) => Some(OrNever(Some(interval))),
            Value::Never => Some(OrNever(None)),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        self.0.map_or(Value::Never, Value::Time)
    }
}

/// Makes each of these types a possible value of a key, by its word.
macro_rules! chosen {
    ($($name:ty),+ $(,)?) => {$(
        impl $crate::value::Field for $name {
            fn from_value(value: $crate::value::Value) -> Option<Self> {
                match value {
                    $crate::value::Value::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }
            fn to_value(&self) -> $crate::value::Value {
                $crate::value::Value::Text(self.as_str().to_owned())
            }
        }
    )+};
}

pub(super) use chosen;
