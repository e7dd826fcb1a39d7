//! Closed lists of words: the choices of a key.
//!
//! Invariants: the first choice of a list is its default.

/// Declares an enumeration whose choices have a word each; the first is the default.
#[macro_export]
macro_rules! choices {
    ($($(#[doc = $type_doc:literal])+ $name:ident {
        $(#[doc = $first_doc:literal])+ $first:ident = $first_text:literal,
        $($(#[doc = $doc:literal])+ $choice:ident = $text:literal,)+
    })+) => {$(
        $(#[doc = $type_doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $first_doc])+ #[default] $first,
            $($(#[doc = $doc])+ $choice,)+
        }

        impl $name {
            /// Word and meaning of each choice, in order.
            pub const CHOICES: &'static [(&'static str, &'static str)] =
                &[($first_text, concat!($($first_doc),+)), $(($text, concat!($($doc),+)),)+];

            /// Its word.
            pub const fn as_str(self) -> &'static str {
                match self { $name::$first => $first_text, $($name::$choice => $text,)+ }
            }
        }

        impl std::str::FromStr for $name {
            /// The text is not one of the words.
            type Err = ();

            fn from_str(word: &str) -> Result<$name, ()> {
                match word {
                    $first_text => Ok($name::$first),
                    $($text => Ok($name::$choice),)+
                    _ => Err(()),
                }
            }
        }
    )+};
}
