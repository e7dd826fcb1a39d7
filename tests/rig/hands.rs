//! Hands, and jobs for them.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::RwLock;
use std::time::Duration;

use ringcrawl_base::Failure;
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::transaction::Transaction;
use ringcrawl_config::{Config, PrivateAddresses};
use ringcrawl_crawler::fetch::Hands;
use ringcrawl_ring::Runtime;
use ringcrawl_url::Url;

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Held for reading by each test, for writing by one that counts the process's descriptors or measures.
pub static ALONE: RwLock<()> = RwLock::new(());

/// Short times.
pub fn config() -> Config {
    let mut config = Config::default();
    config.fetch.connect_timeout = Duration::from_secs(2);
    config.fetch.tls_timeout = Duration::from_secs(2);
    config.fetch.first_byte_timeout = Duration::from_secs(2);
    config.fetch.deadline = Duration::from_secs(5);
    config.fetch.header_bytes_max = 64 << 10;
    config.fetch.header_count_max = 256;
    config.fetch.body_wire_bytes_max = 8 << 20;
    config.fetch.body_bytes_max = 16 << 20;
    config.fetch.in_flight_max = 256;
    config.fetch.idle_connections_max = 16;
    config.fetch.idle_timeout = Duration::from_secs(5);
    config.fetch.private_addresses = PrivateAddresses::Loopback;
    config.dns.timeout = Duration::from_secs(1);
    config.dns.in_flight_max = 8;
    config.dns.ttl_min = Duration::from_secs(60);
    config.dns.ttl_max = Duration::from_secs(86_400);
    config.dns.servers = vec![SocketAddr::new(LOOPBACK, 9)];
    config
}

/// The defaults, fit for loopback, and `more`.
pub fn config_with(more: &str) -> Config {
    let mut config = Config::parse(more, "test").unwrap_or_else(|errors| panic!("{errors:?}"));
    config.fetch.private_addresses = PrivateAddresses::LoopbackOnly;
    config.fetch.in_flight_max = 16;
    config
}

/// Runs a test that is not the one which counts descriptors.
pub fn with_hands<F: Future<Output = ()>>(config: &Config, test: impl FnOnce(Rc<Hands>) -> F) {
    let _shared = ALONE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(config, "testcrawl/1.0".to_owned()).expect("hands"));
        test(hands.clone()).await;
        assert_eq!(hands.buffers_lent(), 0, "blocks are still lent");
        assert_eq!(hands.deadlines().live(), 0, "deadlines are still set");
    });
}

pub fn job(url: &str) -> FetchJob {
    FetchJob { id: 1, addr: Some(LOOPBACK), ..FetchJob::new(JobKind::Page, Url::parse(url).expect("url")) }
}

pub async fn get(hands: &Rc<Hands>, url: &str) -> Result<Transaction, Failure> {
    hands.exchange(&job(url)).await
}
