//! hickory's sockets and background tasks, as the crawl needs them.
//!
//! Decides: hickory sends and receives in tasks of its own, alongside the fetch that queries. They are spawned
//! through this provider, so that their CPU time is counted as `Stage::Dns` and not as the runtime's. A query over
//! UDP is one packet: by default hickory would send it up to three times, and the rate cap would not know. `names`
//! decides which server is queried again.
//! Leaves to others: everything else (hickory's own provider).

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use hickory_resolver::config::{ConnectionConfig, ProtocolConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::{RuntimeProvider, Spawn, TokioHandle, TokioRuntimeProvider};
use hickory_resolver::net::udp::UdpClientStream;
use hickory_resolver::net::xfer::DnsExchange;
use hickory_resolver::{ConnectionProvider, PoolContext};

use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Duration;

/// Tokio with stage marks.
#[derive(Clone, Default)]
pub(super) struct MarkedTokio(TokioRuntimeProvider);

/// Spawns marked tasks.
#[derive(Clone)]
pub(super) struct MarkedHandle(TokioHandle);

type Opened<T> = Pin<Box<dyn Send + Future<Output = Result<T, io::Error>>>>;

impl Spawn for MarkedHandle {
    fn spawn_bg(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_bg(stage::during(Stage::Dns, future));
    }
}

impl RuntimeProvider for MarkedTokio {
    type Handle = MarkedHandle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = <TokioRuntimeProvider as RuntimeProvider>::Udp;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> MarkedHandle {
        MarkedHandle(self.0.create_handle())
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        from: Option<SocketAddr>,
        timeout: Option<Duration>,
    ) -> Opened<Self::Tcp> {
        self.0.connect_tcp(server, from, timeout)
    }

    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Opened<Self::Udp> {
        self.0.bind_udp(local, server)
    }
}

/// Connections with one packet per query.
#[derive(Clone, Default)]
pub(super) struct Wire(MarkedTokio);

impl ConnectionProvider for Wire {
    type Conn = DnsExchange<MarkedTokio>;
    type FutureConn = Pin<Box<dyn Send + Future<Output = Result<Self::Conn, NetError>>>>;
    type RuntimeProvider = MarkedTokio;

    fn new_connection(
        &self,
        server: IpAddr,
        config: &ConnectionConfig,
        context: &PoolContext,
    ) -> Result<Self::FutureConn, NetError> {
        if !matches!(config.protocol, ProtocolConfig::Udp) {
            return self.0.new_connection(server, config, context);
        }
        let timeout = Some(context.options.timeout);
        let stream = UdpClientStream::builder(SocketAddr::new(server, config.port), self.0.clone());
        let stream = stream.with_timeout(timeout).with_max_retries(1);
        Ok(Box::pin(async move { Ok(stream.exchange()) }))
    }

    fn runtime_provider(&self) -> &MarkedTokio {
        &self.0
    }
}
