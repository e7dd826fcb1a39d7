//! `crawl.json`: what was fixed when a crawl began, and which crawl it is.
//!
//! Decides: a crawl has an identifier of its own, which its other files repeat. The manifest's last member is a
//! checksum of all others: a changed `rng_seed` would make every URL unknown, and the crawl would fetch everything
//! again.
//! Invariants: the manifest is written atomically, and only a redistribution changes it.
//! Limits: `FILE_BYTES_MAX`.

use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::dir_error::DirError;
use super::sealed_file;
use ringcrawl_brain::route::Partition;
use ringcrawl_config::ExchangeMode;
use ringcrawl_files::plain;

/// The layout that this version writes.
pub const FORMAT: u32 = 2;
/// The manifest's name.
pub(super) const MANIFEST: &str = "crawl.json";
/// Longest manifest.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The member that holds the checksum of the others.
const CHECKSUM: &str = "checksum";

/// What was fixed when the crawl began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the directory's layout.
    pub format: u32,
    /// The ringcrawl version that began it.
    pub created_by: String,
    /// When, as in WARC-Date.
    pub created: String,
    /// Which crawl it is: 16 random hexadecimal digits.
    pub crawl_id: String,
    /// Seed of fingerprints and of every random choice, as `crawl.rng_seed` takes it, but not 0.
    pub rng_seed: u64,
    /// Number of shards.
    pub shards: u16,
    /// The rule that assigns URLs to shards ([`Partition::rule`]); formerly `partition_key`, with `site` or `host`.
    #[serde(alias = "partition_key")]
    pub partition: String,
    /// `exchange.mode`; in a manifest without it, `exchange`.
    #[serde(default = "exchange_mode")]
    pub exchange_mode: String,
    /// Lines of `moved-sites`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moved_sites: u64,
    /// `agent.name`: the name that robots.txt allowed to fetch what is stored, and that each site knows. Empty: a
    /// crawl of this machine without a name.
    pub agent_name: String,
    /// By shard: the lowest number for segments that it begins, whatever lies in its directory. If shorter or empty:
    /// from 0 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments_from: Vec<u32>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn exchange_mode() -> String {
    ExchangeMode::default().as_str().to_owned()
}

impl Manifest {
    /// The identifier as a number, for the heads of logs.
    pub fn crawl_number(&self) -> u64 {
        u64::from_str_radix(&self.crawl_id, 16).unwrap_or_default()
    }
}

/// Reads the manifest in `root`; `None` when there is none.
pub fn read(root: &Path) -> Result<Option<Manifest>, DirError> {
    let path = root.join(MANIFEST);
    let mut text = String::new();
    match plain::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(DirError::Manifest(path, damaged("it is not UTF-8")));
        }
        Err(error) => return Err(DirError::Io(path, error)),
    }
    parse(&text).map(Some).map_err(|why| DirError::Manifest(path, why))
}

/// Writes the manifest into `root`.
pub(super) fn write(root: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut value = serde_json::to_value(manifest)?;
    let sum = sum(&value);
    if let Value::Object(members) = &mut value {
        members.insert(CHECKSUM.to_owned(), sum.into());
    }
    let text = serde_json::to_string_pretty(&value)?;
    sealed_file::replace(root, MANIFEST, &format!("{text}\n"))
}

fn parse(text: &str) -> Result<Manifest, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))?;
    let format = value.get("format").and_then(Value::as_u64);
    let checksum = value.as_object_mut().and_then(|members| members.shift_remove(CHECKSUM));
    // First checks whether it is whole: a wrong digit in the format is damage, not another version.
    if checksum.as_ref().is_some_and(|checksum| *checksum != sum(&value)) {
        return Err(damaged("its checksum does not match"));
    }
    match format {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            let by = value.get("created_by").and_then(Value::as_str).unwrap_or("another version");
            let by: String = by.chars().take(60).filter(|character| !character.is_control()).collect();
            return Err(format!(
                "the crawl is of format {format}, begun by {by}; this ringcrawl reads format {FORMAT} and cannot convert it: continue with the version that began it, or give a new directory"
            ));
        }
        None => return Err("not the manifest of a crawl (no format); give an empty or a new directory".to_owned()),
    }
    if checksum.is_none() {
        return Err(damaged("it has no checksum"));
    }
    let mut manifest: Manifest = serde_json::from_value(value).map_err(|error| damaged(&error.to_string()))?;
    if ["site", "host"].contains(&manifest.partition.as_str()) {
        manifest.partition.push_str("-hash");
    }
    let is_seed = (1..=i64::MAX as u64).contains(&manifest.rng_seed);
    if manifest.shards == 0
        || !is_seed
        || !Partition::is_rule(&manifest.partition)
        || manifest.exchange_mode.parse::<ExchangeMode>().is_err()
        || !is_id(&manifest.crawl_id)
    {
        return Err(damaged("a member has an invalid value"));
    }
    Ok(manifest)
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// xxh3-64 of the members as compact JSON, in order.
fn sum(members: &Value) -> String {
    format!("{:016x}", xxh3_64(members.to_string().as_bytes()))
}

fn damaged(why: &str) -> String {
    format!(
        "damaged manifest: {why}; restore the file from a copy: the crawl cannot continue without it, but `ringcrawl store` still reads its pages"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    fn manifest() -> Manifest {
        Manifest {
            format: FORMAT,
            created_by: "ringcrawl test".to_owned(),
            created: "2026-11-21T00:00:00Z".to_owned(),
            crawl_id: "0123456789abcdef".to_owned(),
            rng_seed: u64::MAX >> 1,
            shards: 2,
            partition: "site-hash".to_owned(),
            exchange_mode: "exchange".to_owned(),
            moved_sites: 0,
            agent_name: "bot".to_owned(),
            segments_from: Vec::new(),
        }
    }

    fn told(text: &str) -> String {
        parse(text).expect_err(text)
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let folder = TempFolder::new("manifest");
        write(folder.path(), &manifest()).unwrap();
        let path = folder.path().join(MANIFEST);
        assert_eq!(read(folder.path()).unwrap(), Some(manifest()));
        let right = std::fs::read(&path).unwrap();
        let is_space = |byte: u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
        for at in 0..right.len() {
            for bit in 0..8 {
                let mut wrong = right.clone();
                wrong[at] ^= 1 << bit;
                std::fs::write(&path, &wrong).unwrap();
                let found = read(folder.path());
                // White space between members is insignificant.
                let is_same = is_space(right[at]) && is_space(wrong[at]);
                assert_eq!(found.is_ok(), is_same, "bit {bit} of byte {at}: {found:?}");
            }
            std::fs::write(&path, &right[..at]).unwrap();
            assert!(read(folder.path()).is_err() || at + 1 == right.len(), "{at} bytes");
        }
    }

    #[test]
    fn other_formats_and_files_are_told_apart() {
        let older = "{\"format\": 1, \"created_by\": \"ringcrawl 0.1.0\", \"rng_seed\": 5}";
        for word in ["format 1, begun by ringcrawl 0.1.0", "reads format 2 and cannot convert it", "a new directory"] {
            assert!(told(older).contains(word), "{}", told(older));
        }
        assert!(told("{\"format\": 9, \"engine\": 3}").contains("format 9, begun by another version"));
        assert!(told("{\"jobs\": []}").contains("no format"));
        assert!(told("{\"format\": 2}").contains("damaged manifest: it has no checksum"));
        assert!(told("").contains("damaged manifest") && told("[]").contains("no format"));
        // A valid checksum over values that no crawl has.
        for (member, wrong) in [
            ("shards", Value::from(0)),
            ("shards", "x".into()),
            ("rng_seed", 0.into()),
            ("partition", "page".into()),
            ("crawl_id", "xyz".into()),
            ("engine", 3.into()),
        ] {
            let mut value = serde_json::to_value(manifest()).unwrap();
            value[member] = wrong;
            value[CHECKSUM] = sum(&value).into();
            assert!(told(&value.to_string()).contains("damaged manifest"), "{member}");
        }
    }
}
