//! Sessions: what hosts gave us to be recognized by, kept for the next connection.
//!
//! Decides: for each host, the newest session of TLS 1.2, or the newest two tickets of TLS 1.3. A ticket is used once
//! (RFC 8446 section C.4), each connection brings new ones, and a crawler has one connection to a host at a time. The
//! second ticket is for after a connection that broke before it brought any. It is our own store, because rustls's
//! makes room for eight tickets a host, each with a copy of the certificates, and evicts the host that came first,
//! not the unused one.
//! The group of the key exchange is kept if it differs from the usual guess, which is rare.
//! Invariants: a ticket is handed out at most once; there are no more than `tls.sessions_max` hosts; none has more
//! than two tickets and two chains, of 16 KiB each.
//! Limits: a session's size is not visible to us. Chains have their limit. The tickets of a connection share the
//! limit on everything that is not content (`meter`); beyond it the host is forgotten.
//! Leaves to others: how long a session may be used, and for which configuration (rustls); whether its certificates
//! are still good (`TlsClient::describe`).

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use super::second_chance::SecondChance;

/// See the module.
pub(super) struct Sessions {
    // rustls requires a type that threads may share; it belongs to one shard, so no thread ever waits.
    hosts: Mutex<SecondChance<ServerName<'static>, OfHost>>,
    /// What to offer to an unknown host.
    guess: Option<NamedGroup>,
}

#[derive(Default)]
struct OfHost {
    group: Option<NamedGroup>,
    tls12: Option<Box<Tls12ClientSessionValue>>,
    /// The newer one first.
    tickets: [Option<Box<Tls13ClientSessionValue>>; 2],
}

impl Sessions {
    /// With room for `hosts_max` hosts; `guess` is the group that is offered first.
    pub(super) fn new(hosts_max: usize, guess: Option<NamedGroup>) -> Sessions {
        Sessions { hosts: Mutex::new(SecondChance::new(hosts_max)), guess }
    }

    fn lock(&self) -> MutexGuard<'_, SecondChance<ServerName<'static>, OfHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops everything kept of a host.
    pub(super) fn forget(&self, name: &ServerName<'static>) {
        if let Some(host) = self.lock().get(name) {
            *host = OfHost::default();
        }
    }

    /// Changes what is kept of a host, which may be nothing.
    fn keep(&self, name: ServerName<'static>, change: impl FnOnce(&mut OfHost)) {
        let mut hosts = self.lock();
        if let Some(host) = hosts.get(&name) {
            return change(host);
        }
        let mut host = OfHost::default();
        change(&mut host);
        hosts.insert(name, host);
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        if Some(group) != self.guess {
            self.keep(name, |host| host.group = Some(group));
        } else if let Some(host) = self.lock().get(&name) {
            host.group = None;
        }
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().get(&name.to_owned())?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.keep(name, |host| (host.tls12, host.tickets) = (Some(Box::new(session)), Default::default()));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.lock().get(&name.to_owned())?.tls12.as_deref().cloned()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(host) = self.lock().get(name) {
            host.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.keep(name, |host| {
            host.tls12 = None;
            let [newer, older] = &mut host.tickets;
            if let Some(before) = newer.replace(Box::new(ticket)) {
                *older = Some(before);
            }
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut hosts = self.lock();
        let [newer, older] = &mut hosts.get(name)?.tickets;
        newer.take().or_else(|| older.take()).map(|ticket| *ticket)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
