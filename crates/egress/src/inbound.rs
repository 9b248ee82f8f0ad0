//! Inbound connections: to servers inside the jail, for the shim and for ports of the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as StdStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::async_fd;
use crate::netns_helper;
use crate::relay::{relay, reset};
use crate::server::EgressProxy;

/// How long a server inside may take to accept, in milliseconds.
const CONNECT_TIMEOUT_MS: u64 = 2_000;
/// How many ports of the host may be forwarded at a time.
const FORWARDS_MAX: usize = 32;
/// How many connections may be forwarded at a time, over all ports.
const INBOUND_MAX: usize = 128;

/// Opens and forwards connections into the jail.
#[derive(Debug)]
pub(crate) struct InboundForwarder {
    helper: AsyncFd<OwnedFd>,
    /// Allows one request to the namespace helper at a time.
    request_lock: Mutex<()>,
    permits: Arc<Semaphore>,
    forwards: RefCell<HashMap<u16, CancellationToken>>,
}

impl InboundForwarder {
    /// Takes the line to the ear into the runtime.
    pub(crate) fn new(helper: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            helper: async_fd::register(helper, Interest::READABLE)?,
            request_lock: Mutex::default(),
            permits: Arc::new(Semaphore::new(INBOUND_MAX)),
            forwards: RefCell::default(),
        })
    }

    /// A connection to a port of the cell's loopback, of IPv4 or else IPv6.
    pub(crate) async fn connect(&self, port: u16) -> Result<TcpStream, Errno> {
        let v4 = self.connect_to(Ipv4Addr::LOCALHOST.into(), port).await;
        match v4 {
            Ok(stream) => Ok(stream),
            Err(errno) => {
                let v6 = self.connect_to(Ipv6Addr::LOCALHOST.into(), port).await;
                v6.map_err(|_| errno)
            }
        }
    }

    async fn connect_to(&self, address: IpAddr, port: u16) -> Result<TcpStream, Errno> {
        let socket = self.request_socket(address.is_ipv6()).await?;
        let connecting = TcpSocket::from_std_stream(StdStream::from(socket))
            .connect(SocketAddr::new(address, port));
        let limit = Duration::from_millis(CONNECT_TIMEOUT_MS);
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(|error| errno_of(&error)),
            Err(_) => Err(Errno::TIMEDOUT),
        }
    }

    /// A socket inside the jail. Must not be cancelled: the next request would receive this
    /// response.
    async fn request_socket(&self, v6: bool) -> Result<OwnedFd, Errno> {
        let _guard = self.request_lock.lock().await;
        netns_helper::request_socket(self.helper.get_ref().as_fd(), v6)?;
        loop {
            let mut ready = self.helper.readable().await.map_err(|it| errno_of(&it))?;
            match netns_helper::receive_socket(self.helper.get_ref()) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                received => return received,
            }
        }
    }

    /// Closes a port of the host.
    pub(crate) fn unforward(&self, host_port: u16) {
        if let Some(listener) = self.forwards.borrow_mut().remove(&host_port) {
            listener.cancel();
        }
    }
}

/// Opens a port of the host's loopback that leads to one inside; says which.
pub(crate) async fn forward(
    proxy: &Rc<EgressProxy>,
    host_port: u16,
    inside_port: u16,
) -> Result<u16, Errno> {
    if proxy.inbound.forwards.borrow().len() >= FORWARDS_MAX {
        return Err(Errno::MFILE);
    }
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, host_port)).await;
    let listener = bound.map_err(|error| errno_of(&error))?;
    let host_port = listener.local_addr().map_err(|error| errno_of(&error))?;
    let cancelled = CancellationToken::new();
    let mut forwards = proxy.inbound.forwards.borrow_mut();
    forwards.insert(host_port.port(), cancelled.clone());
    let accepting = accept(Rc::clone(proxy), listener, inside_port);
    proxy.tasks.spawn_local(async move {
        cancelled.run_until_cancelled(accepting).await;
    });
    Ok(host_port.port())
}

async fn accept(proxy: Rc<EgressProxy>, listener: TcpListener, inside_port: u16) {
    loop {
        let Some((client, _)) = proxy.accept(&listener).await else {
            continue;
        };
        let Ok(permit) = Arc::clone(&proxy.inbound.permits).acquire_owned().await else {
            return;
        };
        let shared = Rc::clone(&proxy);
        proxy.tasks.spawn_local(async move {
            let _permit = permit;
            match shared.inbound.connect(inside_port).await {
                Ok(server) => {
                    let relayed = relay(server, client).await;
                    shared.log.count(|counts| {
                        counts.bytes_out += relayed.out;
                        counts.bytes_in += relayed.back;
                    });
                }
                Err(_) => reset(&client),
            }
        });
    }
}

pub(crate) fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
