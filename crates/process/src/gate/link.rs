//! The shim's side of a gate.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_model::confinement::{HOSTS_MAX, HostRule};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::rules::{PORTS_MAX, Rules};
use super::wire::{Counts, FromGate, Step, ToGate};
use crate::proto::{decode, encode};
use crate::sys::packet::{self, PACKET_BYTES, Patience};
use crate::sys::wait;

/// The one argument an executable is started with to become a gate.
pub const GATE_ARGUMENT: &str = "__gate";
/// The name server a cell with an allow list asks: what its `/etc/resolv.conf` names.
pub const NAMESERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// How long a gate may take to be ready, in milliseconds.
const START_MS: u64 = 10_000;
/// How long a gate may take to end by itself, in milliseconds.
const END_MS: u64 = 1_000;

/// What a gate begins with.
#[derive(Debug)]
pub struct GateStart<'a> {
    /// Becomes the gate when started with [`GATE_ARGUMENT`]; in a shim, `/proc/self/exe`.
    pub executable: &'a Path,
    /// A pidfd of the cell's warden: its user and network namespaces are entered, and its end
    /// is the gate's.
    pub warden: BorrowedFd<'a>,
    /// The same namespaces by descriptors. Without them they are entered through the pidfd,
    /// which a process of an ordinary user may do only while the warden is dumpable (prctl(2),
    /// `PR_SET_DUMPABLE`).
    pub spaces: Option<Spaces<'a>>,
    /// What may be reached; with none the gate only serves [`GateLink::connect`] and
    /// [`GateLink::forward`], and the cell's network gets nothing but its loopback.
    pub hosts: &'a [HostRule],
    /// `network.jsonl`, open for appending.
    pub log: Option<BorrowedFd<'a>>,
}

/// Namespaces of a cell: `/proc/<warden>/ns/{user,net}`, open.
#[derive(Debug, Clone, Copy)]
pub struct Spaces<'a> {
    /// The user namespace.
    pub user: BorrowedFd<'a>,
    /// The network namespace, which that one owns.
    pub network: BorrowedFd<'a>,
}

/// Why there is no gate, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// More rules than one list may have, or more ports.
    #[error("the list names more than {HOSTS_MAX} hosts or {PORTS_MAX} ports")]
    TooMany,
    /// It could not be started.
    #[error("cannot start the gate: {0}")]
    Start(#[from] io::Error),
    /// It could not set up the cell's network.
    #[error("{} failed: {errno}", step.name())]
    Setup {
        /// At which step.
        step: Step,
        /// Why.
        errno: Errno,
    },
    /// It said nothing for too long.
    #[error("the gate does not answer")]
    Silent,
    /// It has ended.
    #[error("the gate has ended")]
    Gone,
    /// A port of the host cannot be had.
    #[error("{0}")]
    Port(Errno),
}

impl From<Errno> for GateError {
    fn from(errno: Errno) -> Self {
        Self::Start(errno.into())
    }
}

/// What a gate says to a question; `serial` is the question's.
#[derive(Debug)]
pub enum Answer {
    /// A connection made inside: a non-blocking stream socket.
    Connected {
        /// Of the question.
        serial: u32,
        /// The connection.
        socket: OwnedFd,
    },
    /// The host's port leads inside from now on.
    Forwarding {
        /// Of the question.
        serial: u32,
        /// Which port it is.
        host_port: u16,
    },
    /// Nobody listens inside, or the host's port cannot be had.
    Refused {
        /// Of the question.
        serial: u32,
        /// Why.
        errno: Errno,
    },
    /// What happened so far.
    Counted {
        /// Of the question.
        serial: u32,
        /// The numbers.
        counts: Counts,
    },
}

/// A running gate, and the line to it. Dropping it ends the gate; [`GateLink::end`] also waits.
///
/// Nothing here blocks but [`GateLink::start`] and [`GateLink::end`], both within bounds.
/// Answers come in any order: poll the descriptor and ask [`GateLink::answer`].
#[derive(Debug)]
pub struct GateLink {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    asked: u32,
}

impl AsFd for GateLink {
    /// Readable when an answer is there, or the gate has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl GateLink {
    /// Starts a gate and waits until the cell's network is in place, at most ten seconds. Must
    /// be called before the command runs.
    ///
    /// # Errors
    /// No process could be started, or the network could not be set up; nothing is left then.
    pub fn start(start: &GateStart<'_>) -> Result<Self, GateError> {
        let ports = Rules::new(start.hosts.to_vec()).ports().len();
        if start.hosts.len() > HOSTS_MAX || ports > PORTS_MAX {
            return Err(GateError::TooMany);
        }
        let (ours, theirs) = packet::pair()?;
        let child = Command::new(start.executable)
            .arg(GATE_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(start.warden.try_clone_to_owned()?))
            .stderr(Stdio::null())
            .spawn()?;
        let pid = i32::try_from(child.id()).unwrap_or(0);
        let Some(known) = Pid::from_raw(pid) else {
            return Err(GateError::Gone);
        };
        let pidfd = rustix::process::pidfd_open(known, PidfdFlags::empty())?;
        let link = Self {
            pid,
            pidfd,
            control: ours,
            asked: 0,
        };
        let rules = start.hosts.iter().map(Into::into).collect();
        let begin = ToGate::Begin {
            rules,
            spaces: start.spaces.is_some(),
        };
        let mut begun = link.tell(&begin, start.log);
        for space in start.spaces.iter().flat_map(|it| [it.user, it.network]) {
            begun = begun.and_then(|()| link.tell(&ToGate::Space, Some(space)));
        }
        match begun.and_then(|()| link.await_ready()) {
            Ok(()) => Ok(link),
            Err(error) => {
                link.end();
                Err(error)
            }
        }
    }

    /// Its process, a child of the caller's. Neither a member nor a leftover of the command.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Readable when it has ended.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Asks for a connection to `port` of the cell's loopback (IPv4, then IPv6): the serial of
    /// an [`Answer::Connected`] or [`Answer::Refused`].
    ///
    /// # Errors
    /// The gate has ended or does not read.
    pub fn connect(&mut self, port: u16) -> Result<u32, GateError> {
        let serial = self.next_serial();
        self.tell(&ToGate::Connect { serial, port }, None)?;
        Ok(serial)
    }

    /// Asks that `127.0.0.1:host_port` leads to `inside_port` of the cell's loopback: the
    /// serial of an [`Answer::Forwarding`] or [`Answer::Refused`]. Port 0 is any free one.
    ///
    /// # Errors
    /// The gate has ended or does not read.
    pub fn forward(&mut self, host_port: u16, inside_port: u16) -> Result<u32, GateError> {
        let serial = self.next_serial();
        let message = ToGate::Forward {
            serial,
            host_port,
            inside_port,
        };
        self.tell(&message, None)?;
        Ok(serial)
    }

    /// Closes a port that was opened by [`GateLink::forward`]; its connections go on.
    ///
    /// # Errors
    /// The gate has ended or does not read.
    pub fn unforward(&mut self, host_port: u16) -> Result<(), GateError> {
        self.tell(&ToGate::Unforward { host_port }, None)
    }

    /// As [`GateLink::forward`], and waits until it is so: for a gate that nobody asked
    /// anything yet. Blocks within the bounds of a start.
    ///
    /// # Errors
    /// The port cannot be had, or the gate has ended.
    pub fn forward_now(&mut self, host_port: u16, inside_port: u16) -> Result<u16, GateError> {
        let asked = self.forward(host_port, inside_port)?;
        let limit = Instant::now() + Duration::from_millis(START_MS);
        loop {
            if !readable(self.control.as_fd(), limit) {
                return Err(GateError::Silent);
            }
            match self.answer()? {
                Some(Answer::Forwarding { serial, host_port }) if serial == asked => {
                    return Ok(host_port);
                }
                Some(Answer::Refused { serial, errno }) if serial == asked => {
                    return Err(GateError::Port(errno));
                }
                Some(_) | None => {}
            }
        }
    }

    /// Asks what happened so far: the serial of an [`Answer::Counted`].
    ///
    /// # Errors
    /// The gate has ended or does not read.
    pub fn count(&mut self) -> Result<u32, GateError> {
        let serial = self.next_serial();
        self.tell(&ToGate::Count { serial }, None)?;
        Ok(serial)
    }

    /// The next answer, if one is there; does not block.
    ///
    /// # Errors
    /// The gate has ended.
    pub fn answer(&self) -> Result<Option<Answer>, GateError> {
        let Some((message, descriptor)) = self.receive()? else {
            return Ok(None);
        };
        Ok(match (message, descriptor) {
            (FromGate::Connected { serial }, Some(socket)) => {
                Some(Answer::Connected { serial, socket })
            }
            (FromGate::Connected { serial }, None) => Some(Answer::Refused {
                serial,
                errno: Errno::MFILE,
            }),
            (FromGate::Forwarding { serial, host_port }, _) => {
                Some(Answer::Forwarding { serial, host_port })
            }
            (FromGate::Refused { serial, errno }, _) => Some(Answer::Refused {
                serial,
                errno: Errno::from_raw_os_error(errno),
            }),
            (FromGate::Counted { serial, counts }, _) => Some(Answer::Counted { serial, counts }),
            (FromGate::Ready | FromGate::Failed { .. }, _) => None,
        })
    }

    /// Ends the gate and waits for it, at most a second, then by force.
    pub fn end(self) {
        drop(self.control);
        let limit = Instant::now() + Duration::from_millis(END_MS);
        if !readable(self.pidfd.as_fd(), limit) {
            let _ended = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        wait::reap_blocking(self.pid);
    }

    const fn next_serial(&mut self) -> u32 {
        self.asked = self.asked.wrapping_add(1);
        self.asked
    }

    fn await_ready(&self) -> Result<(), GateError> {
        let limit = Instant::now() + Duration::from_millis(START_MS);
        loop {
            if !readable(self.control.as_fd(), limit) {
                return Err(GateError::Silent);
            }
            match self.receive()? {
                Some((FromGate::Ready, _)) => return Ok(()),
                Some((FromGate::Failed { step, errno }, _)) => {
                    let errno = Errno::from_raw_os_error(errno);
                    return Err(GateError::Setup { step, errno });
                }
                Some(_) | None => {}
            }
        }
    }

    fn receive(&self) -> Result<Option<(FromGate, Option<OwnedFd>)>, GateError> {
        let mut buffer = [0; MESSAGE_BYTES];
        match packet::receive(&self.control, &mut buffer, Patience::Now) {
            Err(Errno::AGAIN) => Ok(None),
            Err(_) => Err(GateError::Gone),
            Ok(packet) if packet.len == 0 => Err(GateError::Gone),
            Ok(packet) => {
                let message = decode(&buffer[..packet.len]).map_err(|_| GateError::Gone)?;
                Ok(Some((message, packet.descriptor)))
            }
        }
    }

    fn tell(&self, message: &ToGate, descriptor: Option<BorrowedFd<'_>>) -> Result<(), GateError> {
        let bytes = encode(message).map_err(|_| GateError::TooMany)?;
        if bytes.len() > PACKET_BYTES {
            return Err(GateError::TooMany);
        }
        match packet::send(self.control.as_fd(), &bytes, descriptor) {
            Ok(()) => Ok(()),
            Err(Errno::AGAIN) => Err(GateError::Silent),
            Err(_) => Err(GateError::Gone),
        }
    }
}

/// Bytes of the largest message a gate sends.
pub(super) const MESSAGE_BYTES: usize = 256;

/// Waits until a descriptor is readable; false when the time is up before.
fn readable(descriptor: BorrowedFd<'_>, limit: Instant) -> bool {
    loop {
        let left = limit.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(_) if left.is_zero() => return false,
            Err(_) => {}
        }
    }
}
