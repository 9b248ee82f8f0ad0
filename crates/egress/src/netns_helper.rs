//! The namespace helper: the child of the egress proxy that runs inside the jail's user and network
//! namespaces. It sets up the sockets the proxy listens on, hands them over, and from then on
//! creates a socket inside whenever the proxy requests one. It never reads a byte that comes from
//! the jail.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_sys::process_role::{self, Forked};
use ostler_sys::seqpacket::{self, ReceiveMode};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType};
use serde::{Deserialize, Serialize};

use crate::client::NAMESERVER;
use crate::netlink::{IpNet, Netlink, RouteKind};
use crate::protocol::{EgressStep, decode, encode};
use crate::rules::EgressRules;

/// The helper's name in `ps` and `top`.
const NAME: &std::ffi::CStr = c"ostler-netns";
/// The name of both interfaces of the pair.
const INTERFACE: &str = "gate0";
/// The index of the loopback interface, the first one in every namespace.
const LOOPBACK: u32 = 1;
/// How many connections the kernel completes before the proxy accepts them, per port.
const BACKLOG: i32 = 128;
/// The size of the largest message between proxy and helper, in bytes.
const MESSAGE_BYTES: usize = 64;

/// Turns off replies to ICMP echo requests, in the network namespace of the process that opens it.
const IGNORE_ECHO: &str = "/proc/sys/net/ipv4/icmp_echo_ignore_all";

/// The network of the fake addresses.
pub(crate) const FAKE_NET: IpNet = IpNet {
    address: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)),
    prefix: 16,
};
const PROXY_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1));
const JAIL_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 2));
const LINK_V4_PREFIX: u8 = 30;
const PROXY_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd4f, 0x7374, 0x6c72, 0, 0, 0, 0, 1));
const JAIL_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd4f, 0x7374, 0x6c72, 0, 0, 0, 0, 2));
const LINK_V6_PREFIX: u8 = 64;

/// From the helper to the proxy.
#[derive(Debug, Serialize, Deserialize)]
enum HelperMessage {
    /// A datagram socket bound to the name server's address comes with this.
    DnsSocket,
    /// A listening socket comes with this.
    Listener,
    /// All sockets were sent.
    Ready,
    /// The set-up failed; the helper exits.
    Failed { step: EgressStep, errno: i32 },
    /// A requested socket comes with this.
    Socket,
    /// The requested socket could not be created.
    NoSocket { errno: i32 },
}

/// From the proxy to the helper: a request for a stream socket inside, IPv4 or IPv6.
#[derive(Debug, Serialize, Deserialize)]
struct SocketRequest {
    v6: bool,
}

/// Why the helper could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {errno}", step.name())]
pub(crate) struct NetnsHelperError {
    /// At which step.
    pub(crate) step: EgressStep,
    /// The error.
    pub(crate) errno: Errno,
}

impl EgressStep {
    fn failed(self) -> impl Fn(Errno) -> NetnsHelperError {
        move |errno| NetnsHelperError { step: self, errno }
    }
}

/// How the jail's namespaces are entered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NetnsEntry<'a> {
    /// Through its warden's pidfd.
    Init(BorrowedFd<'a>),
    /// Through its user and its network namespace.
    Namespaces(BorrowedFd<'a>, BorrowedFd<'a>),
}

impl NetnsEntry<'_> {
    fn enter(self) -> Result<(), Errno> {
        let enter_namespace =
            |namespace, kind| rustix::thread::move_into_link_name_space(namespace, Some(kind));
        match self {
            Self::Init(init) => {
                let namespaces = ThreadNameSpaceType::USER | ThreadNameSpaceType::NETWORK;
                rustix::thread::move_into_thread_name_spaces(init, namespaces)
            }
            Self::Namespaces(user, network) => {
                enter_namespace(user, LinkNameSpaceType::User)?;
                enter_namespace(network, LinkNameSpaceType::Network)
            }
        }
    }
}

/// The sockets the helper created.
#[derive(Debug)]
pub(crate) struct NetnsHelper {
    /// The socket for DNS queries; none without rules.
    pub(crate) dns_socket: Option<OwnedFd>,
    /// Where connections arrive.
    pub(crate) listeners: Vec<OwnedFd>,
    /// The socket to the helper, for [`request_socket`] and [`receive_socket`].
    pub(crate) channel: OwnedFd,
    /// The helper's pidfd.
    pub(crate) process: OwnedFd,
}

/// Forks the helper and waits until it has made everything. The calling process must be
/// single-threaded; `control` is what the child must not hold.
pub(crate) fn fork(
    entry: NetnsEntry<'_>,
    rules: &EgressRules,
    control: &mut OwnedFd,
) -> Result<NetnsHelper, NetnsHelperError> {
    let (ours, theirs) = seqpacket::pair().map_err(EgressStep::Helper.failed())?;
    match process_role::fork().map_err(EgressStep::Helper.failed())? {
        Forked::Child => {
            drop(ours);
            process_role::replace_with_null(&mut [control]);
            run(&theirs, entry, rules)
        }
        Forked::Parent(pid) => {
            drop(theirs);
            // Not reaped before: the pid is the helper's.
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH);
            let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
            collect_sockets(ours, process.map_err(EgressStep::Helper.failed())?)
        }
    }
}

/// The proxy's side: receives the sockets the helper created.
fn collect_sockets(channel: OwnedFd, process: OwnedFd) -> Result<NetnsHelper, NetnsHelperError> {
    // Blocks like any other read until the runtime takes over.
    rustix::io::ioctl_fionbio(&channel, false).map_err(EgressStep::Helper.failed())?;
    let (mut dns_socket, mut listeners) = (None, Vec::new());
    loop {
        let (message, descriptor) =
            receive(&channel, ReceiveMode::Wait).map_err(EgressStep::Helper.failed())?;
        match message {
            HelperMessage::DnsSocket => dns_socket = descriptor,
            HelperMessage::Listener => listeners.extend(descriptor),
            HelperMessage::Failed { step, errno } => {
                let errno = Errno::from_raw_os_error(errno);
                return Err(NetnsHelperError { step, errno });
            }
            HelperMessage::Ready | HelperMessage::Socket | HelperMessage::NoSocket { .. } => break,
        }
    }
    rustix::io::ioctl_fionbio(&channel, true).map_err(EgressStep::Helper.failed())?;
    Ok(NetnsHelper {
        dns_socket,
        listeners,
        channel,
        process,
    })
}

fn receive(
    channel: &OwnedFd,
    mode: ReceiveMode,
) -> Result<(HelperMessage, Option<OwnedFd>), Errno> {
    let mut buffer = [0; MESSAGE_BYTES];
    let packet = seqpacket::receive(channel, &mut buffer, mode)?;
    if packet.len == 0 {
        return Err(Errno::PIPE);
    }
    let message = decode(&buffer[..packet.len]).map_err(|_| Errno::PROTO)?;
    Ok((message, packet.descriptor))
}

/// Asks for a socket inside; does not block.
pub(crate) fn request_socket(channel: BorrowedFd<'_>, v6: bool) -> Result<(), Errno> {
    let bytes = encode(&SocketRequest { v6 }).map_err(|_| Errno::PROTO)?;
    seqpacket::send(channel, &bytes, None)
}

/// The helper's reply, with `AGAIN` while there is none.
pub(crate) fn receive_socket(channel: &OwnedFd) -> Result<OwnedFd, Errno> {
    match receive(channel, ReceiveMode::NonBlocking)? {
        (HelperMessage::Socket, Some(socket)) => Ok(socket),
        (HelperMessage::NoSocket { errno }, _) => Err(Errno::from_raw_os_error(errno)),
        (HelperMessage::Socket, None) => Err(Errno::MFILE),
        (
            HelperMessage::DnsSocket
            | HelperMessage::Listener
            | HelperMessage::Ready
            | HelperMessage::Failed { .. },
            _,
        ) => Err(Errno::PROTO),
    }
}

/// Runs the helper in the child.
fn run(proxy: &OwnedFd, entry: NetnsEntry<'_>, rules: &EgressRules) -> ! {
    process_role::set_name(NAME);
    let kill = Some(rustix::process::Signal::KILL);
    let _bound = rustix::process::set_parent_process_death_signal(kill);
    match set_up(proxy, entry, rules) {
        Ok(()) => serve_requests(proxy),
        Err(NetnsHelperError { step, errno }) => {
            let errno = errno.raw_os_error();
            let _sent = send(proxy, &HelperMessage::Failed { step, errno }, None);
        }
    }
    process_role::exit_now(0)
}

fn send(
    proxy: &OwnedFd,
    message: &HelperMessage,
    socket: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let bytes = encode(message).map_err(|_| Errno::PROTO)?;
    loop {
        match seqpacket::send(proxy.as_fd(), &bytes, socket) {
            Err(Errno::AGAIN) => {
                use rustix::event::{PollFd, PollFlags, poll};
                poll(&mut [PollFd::new(proxy, PollFlags::OUT)], None)?;
            }
            sent => return sent,
        }
    }
}

/// Creates sockets until the proxy exits.
fn serve_requests(proxy: &OwnedFd) {
    let mut buffer = [0; MESSAGE_BYTES];
    loop {
        match seqpacket::receive(proxy, &mut buffer, ReceiveMode::Wait) {
            Ok(packet) if packet.len > 0 => {
                let created = decode::<SocketRequest>(&buffer[..packet.len])
                    .map_err(|_| Errno::PROTO)
                    .and_then(|request| stream_socket(request.v6));
                let sent = match created {
                    Ok(socket) => send(proxy, &HelperMessage::Socket, Some(socket.as_fd())),
                    Err(errno) => {
                        let errno = errno.raw_os_error();
                        send(proxy, &HelperMessage::NoSocket { errno }, None)
                    }
                };
                if sent.is_err() {
                    return;
                }
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// A non-blocking stream socket in the namespace of this process.
fn stream_socket(v6: bool) -> Result<OwnedFd, Errno> {
    let family = if v6 {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

/// Enters the jail and, where there are rules, creates the proxy namespace. Ends in the jail's
/// network namespace; the proxy namespace is kept alive by the sockets that were created there.
fn set_up(
    proxy: &OwnedFd,
    entry: NetnsEntry<'_>,
    rules: &EgressRules,
) -> Result<(), NetnsHelperError> {
    entry.enter().map_err(EgressStep::Enter.failed())?;
    if !rules.is_empty() {
        let jail_netns = open_own_netns().map_err(EgressStep::Enter.failed())?;
        let jail_net = Netlink::open().map_err(EgressStep::Enter.failed())?;
        process_role::unshare_network().map_err(EgressStep::Unshare.failed())?;
        let proxy_net = Netlink::open().map_err(EgressStep::Unshare.failed())?;
        create_veth(&proxy_net, &jail_net, jail_netns.as_fd())
            .map_err(EgressStep::Interfaces.failed())?;
        add_routes(&proxy_net, &jail_net, rules).map_err(EgressStep::Routes.failed())?;
        open_sockets(proxy, rules).map_err(EgressStep::Listen.failed())?;
        let network = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(jail_netns.as_fd(), network)
            .map_err(EgressStep::Enter.failed())?;
    }
    send(proxy, &HelperMessage::Ready, None).map_err(EgressStep::Serve.failed())
}

fn open_own_netns() -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open("/proc/self/ns/net", flags, Mode::empty())
}

fn create_veth(
    proxy_net: &Netlink,
    jail_net: &Netlink,
    jail_netns: BorrowedFd<'_>,
) -> Result<(), Errno> {
    proxy_net.set_link_up(LOOPBACK)?;
    jail_net.set_link_up(LOOPBACK)?;
    // Best effort: a ping that is answered here would look as if the host had answered.
    let quiet = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(IGNORE_ECHO, quiet, Mode::empty()) {
        let _written = rustix::io::write(&file, b"1");
    }
    match proxy_net.create_veth(INTERFACE, jail_netns) {
        // Left by an earlier proxy: the kernel removes a network namespace asynchronously.
        Err(Errno::EXIST) => {
            jail_net.delete_link(jail_net.index(INTERFACE)?)?;
            proxy_net.create_veth(INTERFACE, jail_netns)?;
        }
        created => created?,
    }
    proxy_net.set_link_up(proxy_net.index(INTERFACE)?)?;
    jail_net.set_link_up(jail_net.index(INTERFACE)?)
}

fn add_routes(proxy_net: &Netlink, jail_net: &Netlink, rules: &EgressRules) -> Result<(), Errno> {
    let interfaces = (proxy_net.index(INTERFACE)?, jail_net.index(INTERFACE)?);
    let mut networks = rules.routed_nets();
    let v6 = networks.iter().any(|net| net.address.is_ipv6());
    networks.push(FAKE_NET);
    let mut ends = vec![(PROXY_V4, JAIL_V4, LINK_V4_PREFIX)];
    if v6 {
        ends.push((PROXY_V6, JAIL_V6, LINK_V6_PREFIX));
    }
    for (address, neighbour, prefix) in ends {
        proxy_net.add_address(interfaces.0, IpNet { address, prefix })?;
        // A rule such as `0.0.0.0/0` would otherwise make the jail's own end local here.
        proxy_net.add_route(interfaces.0, IpNet { address, prefix }, RouteKind::OnLink)?;
        let address = neighbour;
        jail_net.add_address(interfaces.1, IpNet { address, prefix })?;
    }
    for net in networks {
        let gateway = if net.address.is_ipv4() {
            PROXY_V4
        } else {
            PROXY_V6
        };
        proxy_net.add_route(LOOPBACK, net, RouteKind::Local)?;
        jail_net.add_route(interfaces.1, net, RouteKind::Via(gateway))?;
    }
    Ok(())
}

fn open_sockets(proxy: &OwnedFd, rules: &EgressRules) -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let dns_socket = rustix::net::socket_with(family, kind, flags, None)?;
    let port = crate::dns::PORT;
    rustix::net::bind(&dns_socket, &SocketAddr::from((NAMESERVER, port)))?;
    send(proxy, &HelperMessage::DnsSocket, Some(dns_socket.as_fd()))?;
    let v6 = rules.routed_nets().iter().any(|net| net.address.is_ipv6());
    let mut ports = rules.ports();
    ports.insert(port);
    for port in ports {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        send(
            proxy,
            &HelperMessage::Listener,
            Some(listener(any)?.as_fd()),
        )?;
        if v6 {
            let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
            send(
                proxy,
                &HelperMessage::Listener,
                Some(listener(any)?.as_fd()),
            )?;
        }
    }
    Ok(())
}

fn listener(any: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = stream_socket(any.is_ipv6())?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if any.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &any)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}
