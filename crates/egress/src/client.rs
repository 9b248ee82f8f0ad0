//! The shim's side of the egress proxy.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_model::sandbox_spec::{HOSTS_MAX, HostRule};
use ostler_sandbox::spawn::wait;
use ostler_sys::seqpacket::{self, PACKET_BYTES, ReceiveMode};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::protocol::{EgressCounts, EgressEvent, EgressRequest, EgressStep, decode, encode};
use crate::rules::{EgressRules, PORTS_MAX};

/// The single command-line argument that makes an executable run as the egress proxy.
pub const EGRESS_ARGUMENT: &str = "__gate";
/// The address of the name server of a jail with an allow list, which its `/etc/resolv.conf` names.
pub const NAMESERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// How long an egress proxy may take to become ready, in milliseconds.
const START_TIMEOUT_MS: u64 = 10_000;
/// How long an egress proxy may take to exit by itself, in milliseconds.
const SHUTDOWN_TIMEOUT_MS: u64 = 1_000;

/// What starting an egress proxy needs.
#[derive(Debug)]
pub struct EgressConfig<'a> {
    /// An executable that runs as the proxy when started with [`EGRESS_ARGUMENT`]; in a shim,
    /// `/proc/self/exe`.
    pub executable: &'a Path,
    /// A pidfd of the jail's init: its user and network namespaces are entered, and when it ends
    /// the proxy exits.
    pub init: BorrowedFd<'a>,
    /// The same namespaces as descriptors. Without them they are entered through the pidfd, which a
    /// process of an ordinary user may do only while the init is dumpable (prctl(2),
    /// `PR_SET_DUMPABLE`).
    pub namespaces: Option<JailNamespaces<'a>>,
    /// The hosts that may be reached. With none the proxy only serves
    /// [`EgressClient::request_connection`] and [`EgressClient::request_forward`], and the jail's
    /// network has nothing but its loopback.
    pub hosts: &'a [HostRule],
    /// `network.jsonl`, open for appending.
    pub log: Option<BorrowedFd<'a>>,
}

/// The namespaces of a jail: `/proc/<init>/ns/{user,net}`, open.
#[derive(Debug, Clone, Copy)]
pub struct JailNamespaces<'a> {
    /// The user namespace.
    pub user: BorrowedFd<'a>,
    /// The network namespace, which that user namespace owns.
    pub network: BorrowedFd<'a>,
}

/// Why there is no egress proxy, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The allow list has too many rules or names too many ports.
    #[error("the list names more than {HOSTS_MAX} hosts or {PORTS_MAX} ports")]
    TooManyRules,
    /// It could not be started.
    #[error("cannot start the gate: {0}")]
    Start(#[from] io::Error),
    /// It could not set up the jail's network.
    #[error("{} failed: {errno}", step.name())]
    Setup {
        /// The step that failed.
        step: EgressStep,
        /// The error number.
        errno: Errno,
    },
    /// It did not answer in time.
    #[error("the gate does not answer")]
    Timeout,
    /// It has exited.
    #[error("the gate has ended")]
    Closed,
    /// The port of the host cannot be bound.
    #[error("{0}")]
    Port(Errno),
}

impl From<Errno> for EgressError {
    fn from(errno: Errno) -> Self {
        Self::Start(errno.into())
    }
}

/// A response of the egress proxy; `serial` is that of its request.
#[derive(Debug)]
pub enum EgressResponse {
    /// A connection made inside the jail: a non-blocking stream socket.
    Connected {
        /// The serial of the request.
        serial: u32,
        /// The connection.
        socket: OwnedFd,
    },
    /// The host's port is forwarded into the jail from now on.
    Forwarding {
        /// The serial of the request.
        serial: u32,
        /// The port of the host.
        host_port: u16,
    },
    /// Nothing listens inside the jail, or the host's port cannot be bound.
    Refused {
        /// The serial of the request.
        serial: u32,
        /// The error number.
        errno: Errno,
    },
    /// The counters so far.
    Counts {
        /// The serial of the request.
        serial: u32,
        /// The counters.
        counts: EgressCounts,
    },
}

/// A running egress proxy and the connection to it. Dropping it ends the proxy;
/// [`EgressClient::shutdown`] also waits.
///
/// Nothing here blocks but [`EgressClient::start`] and [`EgressClient::shutdown`], both within bounds.
/// Answers come in any order: poll the descriptor and ask [`EgressClient::try_receive`].
#[derive(Debug)]
pub struct EgressClient {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    last_serial: u32,
}

impl AsFd for EgressClient {
    /// Readable when a response is there, or the proxy has exited.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl EgressClient {
    /// Starts an egress proxy and waits until the jail's network is in place, at most ten seconds.
    /// Must be called before the command runs.
    ///
    /// # Errors
    /// When no process could be started, or the network could not be set up; nothing is left then.
    pub fn start(start: &EgressConfig<'_>) -> Result<Self, EgressError> {
        let ports = EgressRules::new(start.hosts.to_vec()).ports().len();
        if start.hosts.len() > HOSTS_MAX || ports > PORTS_MAX {
            return Err(EgressError::TooManyRules);
        }
        let (ours, theirs) = seqpacket::pair()?;
        let child = Command::new(start.executable)
            .arg(EGRESS_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(start.init.try_clone_to_owned()?))
            .stderr(Stdio::null())
            .spawn()?;
        let pid = i32::try_from(child.id()).unwrap_or(0);
        let Some(child_pid) = Pid::from_raw(pid) else {
            return Err(EgressError::Closed);
        };
        let pidfd = rustix::process::pidfd_open(child_pid, PidfdFlags::empty())?;
        let client = Self {
            pid,
            pidfd,
            control: ours,
            last_serial: 0,
        };
        let rules = start.hosts.iter().map(Into::into).collect();
        let setup = EgressRequest::Setup {
            rules,
            namespaces: start.namespaces.is_some(),
        };
        let mut sent = client.send(&setup, start.log);
        for namespace in start.namespaces.iter().flat_map(|it| [it.user, it.network]) {
            sent = sent.and_then(|()| client.send(&EgressRequest::Namespace, Some(namespace)));
        }
        match sent.and_then(|()| client.wait_ready()) {
            Ok(()) => Ok(client),
            Err(error) => {
                client.shutdown();
                Err(error)
            }
        }
    }

    /// The pid of the proxy, a child of the caller's. It is neither a member nor a leftover of the
    /// command.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// A pidfd of the proxy, readable when it has exited.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Requests a connection to `port` of the jail's loopback (IPv4, then IPv6) and returns the
    /// serial of the [`EgressResponse::Connected`] or [`EgressResponse::Refused`] to come.
    ///
    /// # Errors
    /// When the proxy has exited or does not read.
    pub fn request_connection(&mut self, port: u16) -> Result<u32, EgressError> {
        let serial = self.next_serial();
        self.send(&EgressRequest::Connect { serial, port }, None)?;
        Ok(serial)
    }

    /// Requests that `127.0.0.1:host_port` be forwarded to `inside_port` of the jail's loopback and
    /// returns the serial of the [`EgressResponse::Forwarding`] or [`EgressResponse::Refused`] to
    /// come. Port 0 picks any free one.
    ///
    /// # Errors
    /// When the proxy has exited or does not read.
    pub fn request_forward(
        &mut self,
        host_port: u16,
        inside_port: u16,
    ) -> Result<u32, EgressError> {
        let serial = self.next_serial();
        let message = EgressRequest::Forward {
            serial,
            host_port,
            inside_port,
        };
        self.send(&message, None)?;
        Ok(serial)
    }

    /// Closes a port that was opened by [`EgressClient::request_forward`]; its connections
    /// continue.
    ///
    /// # Errors
    /// When the proxy has exited or does not read.
    pub fn remove_forward(&mut self, host_port: u16) -> Result<(), EgressError> {
        self.send(&EgressRequest::Unforward { host_port }, None)
    }

    /// As [`EgressClient::request_forward`], and waits for the response: for a proxy without other
    /// requests under way. Blocks within the bounds of a start.
    ///
    /// # Errors
    /// When the port cannot be bound, or the proxy has exited.
    pub fn forward_blocking(
        &mut self,
        host_port: u16,
        inside_port: u16,
    ) -> Result<u16, EgressError> {
        let requested = self.request_forward(host_port, inside_port)?;
        let limit = Instant::now() + Duration::from_millis(START_TIMEOUT_MS);
        loop {
            if !wait_readable(self.control.as_fd(), limit) {
                return Err(EgressError::Timeout);
            }
            match self.try_receive()? {
                Some(EgressResponse::Forwarding { serial, host_port }) if serial == requested => {
                    return Ok(host_port);
                }
                Some(EgressResponse::Refused { serial, errno }) if serial == requested => {
                    return Err(EgressError::Port(errno));
                }
                Some(_) | None => {}
            }
        }
    }

    /// Requests the counters and returns the serial of the [`EgressResponse::Counts`] to come.
    ///
    /// # Errors
    /// When the proxy has exited or does not read.
    pub fn request_counts(&mut self) -> Result<u32, EgressError> {
        let serial = self.next_serial();
        self.send(&EgressRequest::Count { serial }, None)?;
        Ok(serial)
    }

    /// The next response, if one is there; does not block.
    ///
    /// # Errors
    /// When the proxy has exited.
    pub fn try_receive(&self) -> Result<Option<EgressResponse>, EgressError> {
        let Some((message, descriptor)) = self.receive()? else {
            return Ok(None);
        };
        Ok(match (message, descriptor) {
            (EgressEvent::Connected { serial }, Some(socket)) => {
                Some(EgressResponse::Connected { serial, socket })
            }
            (EgressEvent::Connected { serial }, None) => Some(EgressResponse::Refused {
                serial,
                errno: Errno::MFILE,
            }),
            (EgressEvent::Forwarding { serial, host_port }, _) => {
                Some(EgressResponse::Forwarding { serial, host_port })
            }
            (EgressEvent::Refused { serial, errno }, _) => Some(EgressResponse::Refused {
                serial,
                errno: Errno::from_raw_os_error(errno),
            }),
            (EgressEvent::Counts { serial, counts }, _) => {
                Some(EgressResponse::Counts { serial, counts })
            }
            (EgressEvent::Ready | EgressEvent::Failed { .. }, _) => None,
        })
    }

    /// Ends the proxy and waits for it at most a second, then kills it.
    pub fn shutdown(self) {
        drop(self.control);
        let limit = Instant::now() + Duration::from_millis(SHUTDOWN_TIMEOUT_MS);
        if !wait_readable(self.pidfd.as_fd(), limit) {
            let _ended = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        wait::reap_blocking(self.pid);
    }

    const fn next_serial(&mut self) -> u32 {
        self.last_serial = self.last_serial.wrapping_add(1);
        self.last_serial
    }

    fn wait_ready(&self) -> Result<(), EgressError> {
        let limit = Instant::now() + Duration::from_millis(START_TIMEOUT_MS);
        loop {
            if !wait_readable(self.control.as_fd(), limit) {
                return Err(EgressError::Timeout);
            }
            match self.receive()? {
                Some((EgressEvent::Ready, _)) => return Ok(()),
                Some((EgressEvent::Failed { step, errno }, _)) => {
                    let errno = Errno::from_raw_os_error(errno);
                    return Err(EgressError::Setup { step, errno });
                }
                Some(_) | None => {}
            }
        }
    }

    fn receive(&self) -> Result<Option<(EgressEvent, Option<OwnedFd>)>, EgressError> {
        let mut buffer = [0; MESSAGE_BYTES];
        match seqpacket::receive(&self.control, &mut buffer, ReceiveMode::NonBlocking) {
            Err(Errno::AGAIN) => Ok(None),
            Err(_) => Err(EgressError::Closed),
            Ok(packet) if packet.len == 0 => Err(EgressError::Closed),
            Ok(packet) => {
                let message = decode(&buffer[..packet.len]).map_err(|_| EgressError::Closed)?;
                Ok(Some((message, packet.descriptor)))
            }
        }
    }

    fn send(
        &self,
        message: &EgressRequest,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), EgressError> {
        let bytes = encode(message).map_err(|_| EgressError::TooManyRules)?;
        if bytes.len() > PACKET_BYTES {
            return Err(EgressError::TooManyRules);
        }
        match seqpacket::send(self.control.as_fd(), &bytes, descriptor) {
            Ok(()) => Ok(()),
            Err(Errno::AGAIN) => Err(EgressError::Timeout),
            Err(_) => Err(EgressError::Closed),
        }
    }
}

/// The size of the largest message of the proxy, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 256;

/// Waits until a descriptor is readable; false when the deadline passes first.
fn wait_readable(descriptor: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(remaining.subsec_nanos()),
        };
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(_) if remaining.is_zero() => return false,
            Err(_) => {}
        }
    }
}
