//! The socket of a container's init, seen from the host.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use ostler_container_init::protocol::SOCKET_NAME;
use ostler_sys::{peer, seqpacket};

use super::driver::ContainerPool;
use crate::identity::ContainerName;

/// How long an init may take to accept a connection whose queue is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Whether the init with this pid listens in the directory of this container.
pub(super) async fn listens_in(pool: &ContainerPool, name: &ContainerName, init_pid: u32) -> bool {
    let dir = pool.dirs.of_container(name);
    let listens = move || listens(&dir, init_pid).is_ok_and(|it| it);
    let connect = pool.config.tasks.spawn_blocking(listens);
    connect.await.unwrap_or(false)
}

/// Whether the init with this pid listens in this directory. Blocks, within its limit. The
/// connection is closed at once.
///
/// # Errors
/// As connect(2).
fn listens(dir: &Path, init_pid: u32) -> io::Result<bool> {
    let dir = File::open(dir)?;
    let connection = seqpacket::connect(dir.as_fd(), SOCKET_NAME, CONNECT_LIMIT)?;
    Ok(peer::pid(&connection)? == Some(init_pid))
}
