//! A SOCKS5 proxy (RFC 1928) that can be taken away and comes back on its port.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The proxy; its port is closed when this value goes.
pub struct SocksProxy {
    /// Where it listens.
    pub addr: SocketAddr,
    is_gone: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl SocksProxy {
    /// Starts it on a port of 127.0.0.1; 0: any that is free.
    pub fn start(port: u16) -> SocksProxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a listener");
        let addr = listener.local_addr().expect("its address");
        let (is_gone, streams) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (gone, open) = (Arc::clone(&is_gone), Arc::clone(&streams));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if gone.load(Ordering::SeqCst) {
                    return;
                }
                let mut streams = open.lock().expect("streams");
                streams.extend(stream.try_clone());
                std::thread::spawn(move || tunnel(stream));
            }
        });
        SocksProxy { addr, is_gone, streams, thread: Some(thread) }
    }
}

impl Drop for SocksProxy {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.streams.lock().expect("streams").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Connects to the IPv4 address that is asked for, and passes on what comes.
fn tunnel(mut client: TcpStream) -> Option<()> {
    let (mut hello, mut request) = ([0; 3], [0; 10]);
    client.read_exact(&mut hello).ok()?;
    client.write_all(&[5, 0]).ok()?;
    client.read_exact(&mut request).ok()?;
    let [5, 1, 0, 1, a, b, c, d, high, low] = request else { return None };
    let mut server = TcpStream::connect((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))).ok()?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut server, &mut client);
    client.shutdown(Shutdown::Both).ok()
}
