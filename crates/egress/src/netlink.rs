//! Interfaces, addresses and routes by rtnetlink(7): the handful of requests that join two
//! network namespaces.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The size of the largest reply, in bytes: an error with the request it is about.
const ANSWER_BYTES: usize = 4096;
/// The size of a message header (`struct nlmsghdr`), in bytes.
const HEADER_BYTES: usize = 16;

// Constants of linux/if_link.h and linux/veth.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
// Constants of linux/if_addr.h.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
// Constants of linux/rtnetlink.h.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTPROT_STATIC: u8 = 4;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
const TYPE_UNICAST: u8 = 1;
const TYPE_LOCAL: u8 = 2;

/// An address with a prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpNet {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl IpNet {
    /// The network: the address with the bits beyond the prefix cleared.
    fn base(self) -> IpAddr {
        ostler_model::host_pattern::mask_address(self.address, self.prefix)
    }

    const fn family(self) -> u8 {
        match self.address {
            IpAddr::V4(_) => AddressFamily::INET.as_raw().to_le_bytes()[0],
            IpAddr::V6(_) => AddressFamily::INET6.as_raw().to_le_bytes()[0],
        }
    }
}

/// Where a route leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// Local: the network counts as this namespace's own.
    Local,
    /// Directly out of the interface; takes precedence over any wider [`RouteKind::Local`].
    OnLink,
    /// Through this gateway.
    Via(IpAddr),
}

/// An rtnetlink socket of the network namespace it was opened in.
#[derive(Debug)]
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens one in the calling thread's namespace.
    pub(crate) fn open() -> Result<Self, Errno> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        // No protocol is number 0: NETLINK_ROUTE.
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok(Self(socket))
    }

    /// Makes a pair of interfaces, both of this name: one here, one in another namespace.
    pub(crate) fn create_veth(&self, name: &str, peer_netns: BorrowedFd<'_>) -> Result<(), Errno> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut message = NetlinkRequest::new(libc::RTM_NEWLINK, flags);
        message.link(0, 0);
        message.text(IFLA_IFNAME, name);
        let info = message.nest(IFLA_LINKINFO);
        message.text(IFLA_INFO_KIND, "veth");
        let data = message.nest(IFLA_INFO_DATA);
        let peer = message.nest(VETH_INFO_PEER);
        message.link(0, 0);
        message.text(IFLA_IFNAME, name);
        message.attribute(IFLA_NET_NS_FD, &peer_netns.as_raw_fd().to_ne_bytes());
        for nest in [peer, data, info] {
            message.close(nest);
        }
        self.request(message)
    }

    /// Removes an interface, and with it the other end of its pair.
    pub(crate) fn delete_link(&self, index: u32) -> Result<(), Errno> {
        let mut message = NetlinkRequest::new(libc::RTM_DELLINK, 0);
        message.link(index, 0);
        self.request(message)
    }

    /// Brings an interface up.
    pub(crate) fn set_link_up(&self, index: u32) -> Result<(), Errno> {
        let mut message = NetlinkRequest::new(libc::RTM_NEWLINK, 0);
        message.link(index, libc::IFF_UP.cast_unsigned());
        self.request(message)
    }

    /// Gives an interface an address.
    pub(crate) fn add_address(&self, index: u32, net: IpNet) -> Result<(), Errno> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let mut message = NetlinkRequest::new(libc::RTM_NEWADDR, flags);
        message.put(&[net.family(), net.prefix, IFA_F_NODAD, SCOPE_UNIVERSE]);
        message.put(&index.to_ne_bytes());
        message.ip(IFA_LOCAL, net.address);
        message.ip(IFA_ADDRESS, net.address);
        self.request(message)
    }

    /// Adds a route to a network.
    pub(crate) fn add_route(
        &self,
        index: u32,
        net: IpNet,
        route_kind: RouteKind,
    ) -> Result<(), Errno> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let mut message = NetlinkRequest::new(libc::RTM_NEWROUTE, flags);
        let (table, scope, kind) = match route_kind {
            RouteKind::Local => (TABLE_LOCAL, SCOPE_HOST, TYPE_LOCAL),
            RouteKind::OnLink => (TABLE_LOCAL, SCOPE_LINK, TYPE_UNICAST),
            RouteKind::Via(_) => (TABLE_MAIN, SCOPE_UNIVERSE, TYPE_UNICAST),
        };
        message.put(&[net.family(), net.prefix, 0, 0]);
        message.put(&[table, RTPROT_STATIC, scope, kind]);
        message.put(&0_u32.to_ne_bytes());
        message.ip(RTA_DST, net.base());
        message.attribute(RTA_OIF, &index.to_ne_bytes());
        if let RouteKind::Via(neighbour) = route_kind {
            message.ip(RTA_GATEWAY, neighbour);
        }
        self.request(message)
    }

    /// The index of an interface.
    pub(crate) fn index(&self, name: &str) -> Result<u32, Errno> {
        rustix::net::netdevice::name_to_index(&self.0, name)
    }

    fn request(&self, message: NetlinkRequest) -> Result<(), Errno> {
        let bytes = message.finish();
        rustix::net::send(&self.0, &bytes, SendFlags::empty())?;
        let mut answer = [0; ANSWER_BYTES];
        let (length, _) = rustix::net::recv(&self.0, &mut answer[..], RecvFlags::empty())?;
        let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4);
        let code = code.filter(|_| length >= HEADER_BYTES + 4);
        let code = code.and_then(|code| <[u8; 4]>::try_from(code).ok());
        match code.map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(code) => Err(Errno::from_raw_os_error(code.saturating_neg())),
            None => Err(Errno::PROTO),
        }
    }
}

/// A request message under construction.
struct NetlinkRequest(Vec<u8>);

impl NetlinkRequest {
    fn new(kind: u16, flags: libc::c_int) -> Self {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags;
        let mut message = Self(Vec::with_capacity(256));
        // The length is written last; one request at a time needs no sequence number.
        message.put(&[0; 4]);
        message.put(&kind.to_ne_bytes());
        message.put(&u16::try_from(flags).unwrap_or(0).to_ne_bytes());
        message.put(&[0; 8]);
        message
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes a `struct ifinfomsg`: an interface, and the flags of it to be set.
    fn link(&mut self, index: u32, flags: u32) {
        self.put(&[0; 4]);
        self.put(&index.to_ne_bytes());
        self.put(&flags.to_ne_bytes());
        self.put(&flags.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let nest = self.nest(kind);
        self.put(value);
        self.close(nest);
    }

    fn text(&mut self, kind: u16, value: &str) {
        self.attribute(kind, &[value.as_bytes(), b"\0"].concat());
    }

    fn ip(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => self.attribute(kind, &v4.octets()),
            IpAddr::V6(v6) => self.attribute(kind, &v6.octets()),
        }
    }

    /// Begins an attribute whose length is not known yet.
    fn nest(&mut self, kind: u16) -> usize {
        let start = self.0.len();
        self.put(&[0; 2]);
        self.put(&kind.to_ne_bytes());
        start
    }

    /// Ends the attribute: writes its length and the padding.
    fn close(&mut self, start: usize) {
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}
