//! Stub.
use crate::config::PartitionKey;
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    pub key: PartitionKey,
    pub shards: u16,
}
impl Partition {
    pub fn shard_of(&self, url: &crate::url::Url) -> u16 {
        self.shard_of_host(url.host())
    }
    pub fn shard_of_host(&self, host: &str) -> u16 {
        let k = match self.key {
            PartitionKey::Site => crate::url::site_of(host),
            PartitionKey::Host => host,
        };
        let h = xxhash_rust::xxh3::xxh3_64(k.as_bytes());
        ((u128::from(h) * u128::from(self.shards)) >> 64) as u16
    }
}
