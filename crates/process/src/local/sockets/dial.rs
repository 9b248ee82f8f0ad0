//! Connections to ports of a running tree, made within its own network namespace.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::ExecutionId;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use tokio::io::Interest;
use tokio::time::timeout;

use super::listing::Held;
use super::tables::Network;
use crate::local::members::{self, Known};
use crate::local::supply::Supply;
use crate::sys::reactor;
use crate::sys::space::{self, SocketKind};

/// How long a connection may take, in milliseconds: nothing here is further than loopback.
pub(in crate::local) const CONNECT_MS: u64 = 2_000;

/// A connected non-blocking stream socket.
pub(in crate::local) async fn dial(
    supply: Arc<Supply>,
    id: ExecutionId,
    address: SocketAddr,
) -> io::Result<OwnedFd> {
    let asked = Arc::clone(&supply);
    let made = supply.blocking(move || Some(socket_for(&asked, id, address)));
    let socket = made.await.unwrap_or(Err(Errno::CANCELED))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let connecting = reactor::register(socket, Interest::WRITABLE)?;
    let limit = Duration::from_millis(CONNECT_MS);
    match timeout(limit, connecting.writable()).await {
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        Ok(ready) => drop(ready?),
    }
    let socket = connecting.into_inner();
    sockopt::socket_error(&socket)??;
    Ok(socket)
}

/// A stream socket where the tree listens.
fn socket_for(supply: &Supply, id: ExecutionId, address: SocketAddr) -> Result<OwnedFd, Errno> {
    let known = members::known(supply, id).ok_or(Errno::NOENT)?;
    let wanted = SocketKind {
        family: match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        },
        kind: SocketType::STREAM,
        protocol: Some(ipproto::TCP),
    };
    match foreign(supply, &known, id, address)? {
        Some(network) => space::socket_of(network.pid, &wanted),
        None => {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            rustix::net::socket_with(wanted.family, wanted.kind, flags, wanted.protocol)
        }
    }
}

/// The namespace to dial in where it is not ours: the one in which a member listens on that
/// port, else the leader's.
fn foreign(
    supply: &Supply,
    known: &Known,
    id: ExecutionId,
    address: SocketAddr,
) -> Result<Option<Network>, Errno> {
    let pids: Vec<i32> = members::of(supply, known, id)
        .iter()
        .map(|it| it.pid)
        .collect();
    let networks: Vec<Network> = pids.iter().filter_map(|pid| Network::of(*pid)).collect();
    let first = *networks.first().ok_or(Errno::NOENT)?;
    if networks.iter().all(|it| it.inode == first.inode) {
        return Ok((!first.is_ours()).then_some(first));
    }
    let listens = |held: &Held| {
        let rows = supply.tables.tcp(held.network, &known.inside);
        let here = |it: &&super::diag::TcpRow| it.address.port() == address.port();
        let mut rows = rows.iter().filter(here);
        rows.any(|it| held.holder(it.inode).is_some())
    };
    let held = Held::by(pids.iter().copied());
    let network = held.iter().find(|it| listens(it)).map(|it| it.network);
    let network = network.unwrap_or(first);
    Ok((!network.is_ours()).then_some(network))
}
