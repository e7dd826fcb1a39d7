//! A name server of a test's own.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};

/// A name server on loopback; runs as long as the test program.
pub struct NameServer {
    /// Where it listens.
    pub addr: SocketAddr,
    asked: Arc<AtomicU64>,
}

/// What comes for a question.
pub enum Reply {
    /// The message.
    Message,
    /// These bytes.
    Bytes(&'static [u8]),
    /// Nothing.
    Silence,
}

impl NameServer {
    /// Answers each question as `answer` makes of the message that holds it.
    pub fn start(answer: impl Fn(&Query, &mut Message) -> Reply + Send + 'static) -> NameServer {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let addr = socket.local_addr().expect("its address");
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                count.fetch_add(1, Ordering::SeqCst);
                let Ok(request) = Message::from_vec(&buffer[..length]) else { continue };
                let Some(question) = request.queries.first().cloned() else { continue };
                let mut message = request.into_response();
                message.metadata.recursion_available = true;
                let _ = match answer(&question, &mut message) {
                    Reply::Message => socket.send_to(&message.to_vec().expect("a reply"), peer),
                    Reply::Bytes(bytes) => socket.send_to(bytes, peer),
                    Reply::Silence => continue,
                };
            }
        });
        NameServer { addr, asked }
    }

    /// Answers every question for an A record with `address`.
    pub fn pointing_to(address: Ipv4Addr) -> NameServer {
        NameServer::start(move |question, message| {
            if question.query_type() == RecordType::A {
                message.add_answer(Record::from_rdata(question.name().clone(), 60, RData::A(A(address))));
            }
            Reply::Message
        })
    }

    /// Questions that came.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}
