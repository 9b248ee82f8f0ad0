//! The way in: connections to servers inside the cell, for the shim and for ports of the host.

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

use super::ear;
use super::serve::Gate;
use super::splice::{reset, splice};
use crate::sys::reactor;

/// How long a server inside may take to accept, in milliseconds.
const CONNECT_MS: u64 = 2_000;
/// Ports of the host that lead inside at a time.
const FORWARDS_MAX: usize = 32;
/// Connections that come in at a time, through all of them.
const COMING_MAX: usize = 128;

/// What leads inside.
#[derive(Debug)]
pub(super) struct Inward {
    ear: AsyncFd<OwnedFd>,
    /// One question to the ear at a time.
    turn: Mutex<()>,
    places: Arc<Semaphore>,
    forwards: RefCell<HashMap<u16, CancellationToken>>,
}

impl Inward {
    /// Takes the line to the ear into the runtime.
    pub(super) fn new(ear: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            ear: reactor::register(ear, Interest::READABLE)?,
            turn: Mutex::default(),
            places: Arc::new(Semaphore::new(COMING_MAX)),
            forwards: RefCell::default(),
        })
    }

    /// A connection to a port of the cell's loopback, of IPv4 or else IPv6.
    pub(super) async fn connect(&self, port: u16) -> Result<TcpStream, Errno> {
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
        let socket = self.socket(address.is_ipv6()).await?;
        let connecting = TcpSocket::from_std_stream(StdStream::from(socket))
            .connect(SocketAddr::new(address, port));
        let limit = Duration::from_millis(CONNECT_MS);
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(|error| errno_of(&error)),
            Err(_) => Err(Errno::TIMEDOUT),
        }
    }

    /// A socket inside. Not to be cut short: the next one to ask would get this answer.
    async fn socket(&self, v6: bool) -> Result<OwnedFd, Errno> {
        let _turn = self.turn.lock().await;
        ear::ask_for_socket(self.ear.get_ref().as_fd(), v6)?;
        loop {
            let mut ready = self.ear.readable().await.map_err(|it| errno_of(&it))?;
            match ear::take_socket(self.ear.get_ref()) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                taken => return taken,
            }
        }
    }

    /// Closes a port of the host.
    pub(super) fn unforward(&self, host_port: u16) {
        if let Some(open) = self.forwards.borrow_mut().remove(&host_port) {
            open.cancel();
        }
    }
}

/// Opens a port of the host's loopback that leads to one inside; says which.
pub(super) async fn forward(
    gate: &Rc<Gate>,
    host_port: u16,
    inside_port: u16,
) -> Result<u16, Errno> {
    if gate.inward.forwards.borrow().len() >= FORWARDS_MAX {
        return Err(Errno::MFILE);
    }
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, host_port)).await;
    let listener = bound.map_err(|error| errno_of(&error))?;
    let host_port = listener.local_addr().map_err(|error| errno_of(&error))?;
    let closed = CancellationToken::new();
    let mut forwards = gate.inward.forwards.borrow_mut();
    forwards.insert(host_port.port(), closed.clone());
    let serving = accept(Rc::clone(gate), listener, inside_port);
    gate.tasks.spawn_local(async move {
        closed.run_until_cancelled(serving).await;
    });
    Ok(host_port.port())
}

async fn accept(gate: Rc<Gate>, listener: TcpListener, inside_port: u16) {
    loop {
        let Some((outside, _)) = gate.accept(&listener).await else {
            continue;
        };
        let Ok(place) = Arc::clone(&gate.inward.places).acquire_owned().await else {
            return;
        };
        let gate_ = Rc::clone(&gate);
        gate.tasks.spawn_local(async move {
            let _place = place;
            match gate_.inward.connect(inside_port).await {
                Ok(inside) => {
                    let carried = splice(inside, outside).await;
                    gate_.log.count(|counts| {
                        counts.bytes_out += carried.out;
                        counts.bytes_in += carried.back;
                    });
                }
                Err(_) => reset(&outside),
            }
        });
    }
}

pub(super) fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
