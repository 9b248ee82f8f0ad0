//! Inbound connections: to servers inside the jail, for the shim and for ports of the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as StdStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ostler_sys::async_fd;
use ostler_sys::errno::errno_of;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::netns_helper;
use crate::proxy::EgressProxy;
use crate::relay::{relay, reset};

/// How long a server inside may take to accept, in milliseconds.
const CONNECT_TIMEOUT_MS: u64 = 2_000;
/// How many ports of the host may be forwarded at a time.
const FORWARDS_MAX: usize = 32;
/// How many connections may be forwarded at a time, over all ports.
const INBOUND_MAX: usize = 128;

/// Opens and forwards connections into the jail.
#[derive(Debug)]
pub(crate) struct InboundForwarder {
    proxy: Rc<EgressProxy>,
    helper: AsyncFd<OwnedFd>,
    /// Allows one request to the namespace helper at a time.
    request_lock: Mutex<()>,
    permits: Arc<Semaphore>,
    forwards: RefCell<HashMap<u16, CancellationToken>>,
}

impl InboundForwarder {
    /// Registers the connection to the namespace helper with the runtime.
    pub(crate) fn new(proxy: Rc<EgressProxy>, helper: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            proxy,
            helper: async_fd::register(helper, Interest::READABLE)?,
            request_lock: Mutex::default(),
            permits: Arc::new(Semaphore::new(INBOUND_MAX)),
            forwards: RefCell::default(),
        })
    }

    /// The state that all tasks share.
    pub(crate) fn proxy(&self) -> &Rc<EgressProxy> {
        &self.proxy
    }

    /// Connects to a port of the jail's loopback, by IPv4 or else IPv6.
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

    /// Opens a port of the host's loopback that leads to one inside; returns its number.
    pub(crate) async fn forward(
        self: &Rc<Self>,
        host_port: u16,
        inside_port: u16,
    ) -> Result<u16, Errno> {
        if self.forwards.borrow().len() >= FORWARDS_MAX {
            return Err(Errno::MFILE);
        }
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, host_port)).await;
        let listener = bound.map_err(|error| errno_of(&error))?;
        let host_port = listener.local_addr().map_err(|error| errno_of(&error))?;
        let cancelled = CancellationToken::new();
        let mut forwards = self.forwards.borrow_mut();
        forwards.insert(host_port.port(), cancelled.clone());
        let accepting = Rc::clone(self).accept(listener, inside_port);
        self.proxy.tasks.spawn_local(async move {
            cancelled.run_until_cancelled(accepting).await;
        });
        Ok(host_port.port())
    }

    async fn accept(self: Rc<Self>, listener: TcpListener, inside_port: u16) {
        loop {
            let Some((client, _)) = self.proxy.accept(&listener).await else {
                continue;
            };
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
                return;
            };
            let inbound = Rc::clone(&self);
            self.proxy.tasks.spawn_local(async move {
                let _permit = permit;
                match inbound.connect(inside_port).await {
                    Ok(server) => {
                        let relayed = relay(server, client, &inbound.proxy.senders).await;
                        inbound.proxy.log.count(|counts| {
                            counts.bytes_out += relayed.out;
                            counts.bytes_in += relayed.back;
                        });
                    }
                    Err(_) => reset(&client),
                }
            });
        }
    }
}
