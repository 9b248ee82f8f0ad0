//! Connections to ports of a running tree, made within its own network namespace.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::ExecutionId;
use ostler_sys::async_fd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use tokio::io::Interest;
use tokio::time::timeout;

use super::shim_manager::ShimManager;

use super::sockets::{self, ConnectNamespace};
use crate::shim::socket_in_container;
use crate::sys::netns::{self, SocketKind};

/// How long a connection may take, in milliseconds: every destination is on loopback.
pub(super) const CONNECT_MS: u64 = 2_000;

/// A connected non-blocking stream socket.
pub(super) async fn connect(
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
    let tree = shims.process_trees.info(id).ok_or(Errno::NOENT)?;
    if let Some(container) = shims.process_trees.container(&tree, id) {
        return socket_in_container(&container.attachment, address.is_ipv6());
    }
    let kind = SocketKind {
        family: match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        },
        kind: SocketType::STREAM,
        protocol: Some(ipproto::TCP),
    };
    let members = shims.process_trees.live_members(&tree, id);
    let pids: Vec<i32> = members.iter().map(|it| it.pid).collect();
    let (tables, diags) = (&shims.tables, &tree.netns_diags);
    let namespace = sockets::connect_namespace(tables, diags, &pids, address.port());
    match namespace.ok_or(Errno::NOENT)? {
        ConnectNamespace::OfProcess(pid) => netns::socket_in_netns(pid, &kind),
        ConnectNamespace::Own => {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            rustix::net::socket_with(kind.family, kind.kind, flags, kind.protocol)
        }
    }
}
