//! The ear: the gate's child that is inside the cell's user and network namespaces. It sets up
//! what the gate hears, hands the sockets over, and from then on makes a socket inside
//! whenever the gate asks. It never reads a byte that comes from the cell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType, UnshareFlags};
use serde::{Deserialize, Serialize};

use super::link::NAMESERVER;
use super::netlink::{Net, Netlink, Way};
use super::rules::Rules;
use super::wire::Step;
use crate::proto::{decode, encode};
use crate::sys::packet::{self, Patience};
use crate::sys::role::{self, Forked};

/// The ear's name in `ps` and `top`.
const NAME: &std::ffi::CStr = c"ostler-ear";
/// Both ends of the pair of interfaces are called so.
const INTERFACE: &str = "gate0";
/// Every kernel's first interface.
const LOOPBACK: u32 = 1;
/// Connections the kernel completes before the gate takes them, per port.
const BACKLOG: i32 = 128;
/// Bytes of the largest message between gate and ear.
const MESSAGE_BYTES: usize = 64;

/// Has the kernel answer no ICMP echo, in the network namespace of whoever opens it.
const IGNORE_ECHO: &str = "/proc/sys/net/ipv4/icmp_echo_ignore_all";

/// The network of the fake addresses.
pub(super) const FAKES: Net = Net {
    address: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)),
    prefix: 16,
};
const HERE_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1));
const CELL_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 2));
const LINK_V4_PREFIX: u8 = 30;
const HERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd4f, 0x7374, 0x6c72, 0, 0, 0, 0, 1));
const CELL_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd4f, 0x7374, 0x6c72, 0, 0, 0, 0, 2));
const LINK_V6_PREFIX: u8 = 64;

/// Ear to gate.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// A datagram socket on the name server's address.
    Names,
    /// A listening socket.
    Listener,
    /// All of them were handed over.
    Ready,
    /// It went wrong; the ear is gone.
    Failed { step: Step, errno: i32 },
    /// A socket inside.
    Socket,
    /// None could be made.
    NoSocket { errno: i32 },
}

/// Gate to ear: a stream socket inside, of IPv4 or IPv6.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    v6: bool,
}

/// Why there is no ear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {errno}", step.name())]
pub(super) struct EarError {
    /// At which step.
    pub(super) step: Step,
    /// Why.
    pub(super) errno: Errno,
}

impl Step {
    fn failed(self) -> impl Fn(Errno) -> EarError {
        move |errno| EarError { step: self, errno }
    }
}

/// How the cell is entered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Door<'a> {
    /// Through its warden's pidfd.
    Warden(BorrowedFd<'a>),
    /// Through its user and its network namespace.
    Spaces(BorrowedFd<'a>, BorrowedFd<'a>),
}

impl Door<'_> {
    fn enter(self) -> Result<(), Errno> {
        let by_link = |space, kind| rustix::thread::move_into_link_name_space(space, Some(kind));
        match self {
            Self::Warden(warden) => {
                let spaces = ThreadNameSpaceType::USER | ThreadNameSpaceType::NETWORK;
                rustix::thread::move_into_thread_name_spaces(warden, spaces)
            }
            Self::Spaces(user, network) => {
                by_link(user, LinkNameSpaceType::User)?;
                by_link(network, LinkNameSpaceType::Network)
            }
        }
    }
}

/// What the ear made.
#[derive(Debug)]
pub(super) struct Heard {
    /// Where names are asked for; none without rules.
    pub(super) names: Option<OwnedFd>,
    /// Where connections arrive.
    pub(super) listeners: Vec<OwnedFd>,
    /// The line to the ear, for [`ask_for_socket`] and [`take_socket`].
    pub(super) ear: OwnedFd,
}

/// Forks the ear and waits until it has made everything. The calling process must be
/// single-threaded; `control` is what the child must not hold.
pub(super) fn fork(
    door: Door<'_>,
    rules: &Rules,
    control: &mut OwnedFd,
) -> Result<Heard, EarError> {
    let (ours, theirs) = packet::pair().map_err(Step::Ear.failed())?;
    match role::fork().map_err(Step::Ear.failed())? {
        Forked::Child => {
            drop(ours);
            role::close_beside(&mut [control]);
            live(&theirs, door, rules)
        }
        Forked::Parent(_) => {
            drop(theirs);
            hear(ours)
        }
    }
}

/// The gate's side: takes what the ear made.
fn hear(ear: OwnedFd) -> Result<Heard, EarError> {
    // Waits like any other blocking read until the runtime takes over.
    rustix::io::ioctl_fionbio(&ear, false).map_err(Step::Ear.failed())?;
    let (mut names, mut listeners) = (None, Vec::new());
    loop {
        let (said, descriptor) = receive(&ear, Patience::Wait).map_err(Step::Ear.failed())?;
        match said {
            Said::Names => names = descriptor,
            Said::Listener => listeners.extend(descriptor),
            Said::Failed { step, errno } => {
                let errno = Errno::from_raw_os_error(errno);
                return Err(EarError { step, errno });
            }
            Said::Ready | Said::Socket | Said::NoSocket { .. } => break,
        }
    }
    rustix::io::ioctl_fionbio(&ear, true).map_err(Step::Ear.failed())?;
    Ok(Heard {
        names,
        listeners,
        ear,
    })
}

fn receive(ear: &OwnedFd, patience: Patience) -> Result<(Said, Option<OwnedFd>), Errno> {
    let mut buffer = [0; MESSAGE_BYTES];
    let packet = packet::receive(ear, &mut buffer, patience)?;
    if packet.len == 0 {
        return Err(Errno::PIPE);
    }
    let said = decode(&buffer[..packet.len]).map_err(|_| Errno::PROTO)?;
    Ok((said, packet.descriptor))
}

/// Asks for a socket inside; does not block.
pub(super) fn ask_for_socket(ear: BorrowedFd<'_>, v6: bool) -> Result<(), Errno> {
    let bytes = encode(&Wanted { v6 }).map_err(|_| Errno::PROTO)?;
    packet::send(ear, &bytes, None)
}

/// The ear's answer to that, with `AGAIN` while there is none.
pub(super) fn take_socket(ear: &OwnedFd) -> Result<OwnedFd, Errno> {
    match receive(ear, Patience::Now)? {
        (Said::Socket, Some(socket)) => Ok(socket),
        (Said::NoSocket { errno }, _) => Err(Errno::from_raw_os_error(errno)),
        (Said::Socket, None) => Err(Errno::MFILE),
        (Said::Names | Said::Listener | Said::Ready | Said::Failed { .. }, _) => Err(Errno::PROTO),
    }
}

/// The child's life.
fn live(gate: &OwnedFd, door: Door<'_>, rules: &Rules) -> ! {
    role::set_name(NAME);
    let kill = Some(rustix::process::Signal::KILL);
    let _bound = rustix::process::set_parent_process_death_signal(kill);
    match set_up(gate, door, rules) {
        Ok(()) => serve(gate),
        Err(EarError { step, errno }) => {
            let errno = errno.raw_os_error();
            let _told = say(gate, &Said::Failed { step, errno }, None);
        }
    }
    role::leave(0)
}

fn say(gate: &OwnedFd, said: &Said, socket: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let bytes = encode(said).map_err(|_| Errno::PROTO)?;
    loop {
        match packet::send(gate.as_fd(), &bytes, socket) {
            Err(Errno::AGAIN) => {
                use rustix::event::{PollFd, PollFlags, poll};
                poll(&mut [PollFd::new(gate, PollFlags::OUT)], None)?;
            }
            sent => return sent,
        }
    }
}

/// Makes sockets until the gate is gone.
fn serve(gate: &OwnedFd) {
    let mut buffer = [0; MESSAGE_BYTES];
    loop {
        match packet::receive(gate, &mut buffer, Patience::Wait) {
            Ok(packet) if packet.len > 0 => {
                let made = decode::<Wanted>(&buffer[..packet.len])
                    .map_err(|_| Errno::PROTO)
                    .and_then(|wanted| stream(wanted.v6));
                let told = match made {
                    Ok(socket) => say(gate, &Said::Socket, Some(socket.as_fd())),
                    Err(errno) => {
                        let errno = errno.raw_os_error();
                        say(gate, &Said::NoSocket { errno }, None)
                    }
                };
                if told.is_err() {
                    return;
                }
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// A non-blocking stream socket of the namespace this process is in.
fn stream(v6: bool) -> Result<OwnedFd, Errno> {
    let family = if v6 {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

/// Enters the cell and, where there are rules, makes the antechamber. Ends in the cell's
/// network namespace; the antechamber lives on in the sockets that were made there.
fn set_up(gate: &OwnedFd, door: Door<'_>, rules: &Rules) -> Result<(), EarError> {
    door.enter().map_err(Step::Enter.failed())?;
    if !rules.is_empty() {
        let cell_space = own_network().map_err(Step::Enter.failed())?;
        let cell = Netlink::open().map_err(Step::Enter.failed())?;
        leave_network().map_err(Step::Antechamber.failed())?;
        let here = Netlink::open().map_err(Step::Antechamber.failed())?;
        join(&here, &cell, cell_space.as_fd()).map_err(Step::Interfaces.failed())?;
        routes(&here, &cell, rules).map_err(Step::Routes.failed())?;
        listen(gate, rules).map_err(Step::Listen.failed())?;
        let network = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(cell_space.as_fd(), network)
            .map_err(Step::Enter.failed())?;
    }
    say(gate, &Said::Ready, None).map_err(Step::Serve.failed())
}

fn own_network() -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open("/proc/self/ns/net", flags, Mode::empty())
}

#[expect(unsafe_code, reason = "unshare(2)")]
fn leave_network() -> Result<(), Errno> {
    // SAFETY: a new network namespace changes nothing that any object of this
    // single-threaded process relies on; descriptors are kept.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

fn join(here: &Netlink, cell: &Netlink, cell_space: BorrowedFd<'_>) -> Result<(), Errno> {
    here.up(LOOPBACK)?;
    cell.up(LOOPBACK)?;
    // Best effort: a ping that is answered here would look as if the host had answered.
    let quiet = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(IGNORE_ECHO, quiet, Mode::empty()) {
        let _written = rustix::io::write(&file, b"1");
    }
    match here.join(INTERFACE, cell_space) {
        // Of a gate that was here before: the kernel takes its time to clear an antechamber.
        Err(Errno::EXIST) => {
            cell.remove(cell.index(INTERFACE)?)?;
            here.join(INTERFACE, cell_space)?;
        }
        joined => joined?,
    }
    here.up(here.index(INTERFACE)?)?;
    cell.up(cell.index(INTERFACE)?)
}

fn routes(here: &Netlink, cell: &Netlink, rules: &Rules) -> Result<(), Errno> {
    let link = (here.index(INTERFACE)?, cell.index(INTERFACE)?);
    let mut networks = rules.routed();
    let v6 = networks.iter().any(|net| net.address.is_ipv6());
    networks.push(FAKES);
    let mut ends = vec![(HERE_V4, CELL_V4, LINK_V4_PREFIX)];
    if v6 {
        ends.push((HERE_V6, CELL_V6, LINK_V6_PREFIX));
    }
    for (address, neighbour, prefix) in ends {
        here.address(link.0, Net { address, prefix })?;
        // A rule as wide as the world would otherwise make the cell's own end local here.
        here.route(link.0, Net { address, prefix }, Way::Link)?;
        let address = neighbour;
        cell.address(link.1, Net { address, prefix })?;
    }
    for net in networks {
        let over = if net.address.is_ipv4() {
            HERE_V4
        } else {
            HERE_V6
        };
        here.route(LOOPBACK, net, Way::Here)?;
        cell.route(link.1, net, Way::Over(over))?;
    }
    Ok(())
}

fn listen(gate: &OwnedFd, rules: &Rules) -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let names = rustix::net::socket_with(family, kind, flags, None)?;
    let port = super::dns::PORT;
    rustix::net::bind(&names, &SocketAddr::from((NAMESERVER, port)))?;
    say(gate, &Said::Names, Some(names.as_fd()))?;
    let v6 = rules.routed().iter().any(|net| net.address.is_ipv6());
    let mut ports = rules.ports();
    ports.insert(port);
    for port in ports {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        say(gate, &Said::Listener, Some(listener(any)?.as_fd()))?;
        if v6 {
            let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
            say(gate, &Said::Listener, Some(listener(any)?.as_fd()))?;
        }
    }
    Ok(())
}

fn listener(any: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = stream(any.is_ipv6())?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if any.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &any)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}
