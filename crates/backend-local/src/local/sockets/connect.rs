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

use super::listen_tables::NetworkNamespace;
use super::tree_listeners::NetnsSockets;
use crate::local::shim_manager::ShimManager;
use crate::local::tree_members::{self, TreeInfo};
use crate::sys::async_fd;
use crate::sys::netns::{self, SocketKind};

/// How long a connection may take, in milliseconds: every destination is on loopback.
pub(in crate::local) const CONNECT_MS: u64 = 2_000;

/// A connected non-blocking stream socket.
pub(in crate::local) async fn connect(
    shims: Arc<ShimManager>,
    id: ExecutionId,
    address: SocketAddr,
) -> io::Result<OwnedFd> {
    let shared = Arc::clone(&shims);
    let created = shims.blocking(move || Some(open_socket(&shared, id, address)));
    let socket = created.await.unwrap_or(Err(Errno::CANCELED))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let connecting = async_fd::register(socket, Interest::WRITABLE)?;
    let limit = Duration::from_millis(CONNECT_MS);
    match timeout(limit, connecting.writable()).await {
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        Ok(ready) => drop(ready?),
    }
    let socket = connecting.into_inner();
    sockopt::socket_error(&socket)??;
    Ok(socket)
}

/// A stream socket in the namespace where the tree listens.
fn open_socket(
    shims: &ShimManager,
    id: ExecutionId,
    address: SocketAddr,
) -> Result<OwnedFd, Errno> {
    let tree = tree_members::tree_info(shims, id).ok_or(Errno::NOENT)?;
    let kind = SocketKind {
        family: match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        },
        kind: SocketType::STREAM,
        protocol: Some(ipproto::TCP),
    };
    match foreign_netns(shims, &tree, id, address)? {
        Some(network) => netns::socket_in_netns(network.pid, &kind),
        None => {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            rustix::net::socket_with(kind.family, kind.kind, flags, kind.protocol)
        }
    }
}

/// The namespace to connect in where it is not ours: the one in which a member listens on that
/// port, else the leader's.
fn foreign_netns(
    shims: &ShimManager,
    tree: &TreeInfo,
    id: ExecutionId,
    address: SocketAddr,
) -> Result<Option<NetworkNamespace>, Errno> {
    let pids: Vec<i32> = tree_members::live_members(shims, tree, id)
        .iter()
        .map(|it| it.pid)
        .collect();
    let networks: Vec<NetworkNamespace> = pids
        .iter()
        .filter_map(|pid| NetworkNamespace::of(*pid))
        .collect();
    let first = *networks.first().ok_or(Errno::NOENT)?;
    if networks.iter().all(|it| it.inode == first.inode) {
        return Ok((!first.is_own()).then_some(first));
    }
    let is_listening = |sockets: &NetnsSockets| {
        let rows = shims.tables.tcp(sockets.network, &tree.netns_diags);
        let here = |it: &&super::diag::TcpRow| it.address.port() == address.port();
        let mut rows = rows.iter().filter(here);
        rows.any(|it| sockets.owner(it.inode).is_some())
    };
    let all = NetnsSockets::group_by_netns(pids.iter().copied());
    let network = all.iter().find(|it| is_listening(it)).map(|it| it.network);
    let network = network.unwrap_or(first);
    Ok((!network.is_own()).then_some(network))
}
