//! hickory's background tasks, marked as what they are.
//!
//! Decides: hickory sends and receives in tasks of its own, beside the fetch that asks; they are spawned through this
//! provider, so that their CPU time is counted as `Stage::Dns` and not as the runtime's.
//! Leaves to others: everything but the mark (hickory's own provider).

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use hickory_resolver::net::runtime::{RuntimeProvider, Spawn, TokioHandle, TokioRuntimeProvider};

use crate::stage::{self, Stage};
use crate::time::Duration;

/// Tokio with marks.
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
