//! Listening sockets of one network namespace by sock_diag(7): the kernel walks its listening
//! sockets only, where reading `/proc/net/tcp` walks every bucket of its connection table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use ostler_model::ByteString;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// How many bytes of replies are read at once; the kernel puts no more into one message.
const ANSWER_BYTES: usize = 32 * 1024;
/// How many sockets of one kind are read.
const ROWS_MAX: usize = 1_000_000;
/// The bit of `TCP_LISTEN`, for unix sockets too.
const LISTENING: u32 = 1 << 10;
/// The size of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Messages and attributes begin at multiples of this.
const ALIGNMENT: usize = 4;

// Constants of linux/sock_diag.h and linux/unix_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UDIAG_SHOW_NAME: u32 = 1;
const UNIX_DIAG_NAME: u16 = 0;
// Constants of linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The size of `struct inet_diag_sockid`.
const SOCKID_BYTES: usize = 48;
/// Offsets in `struct inet_diag_msg`: source port, source address, length of the accept queue, and
/// inode.
const INET_PORT: usize = 4;
const INET_SOURCE: usize = 8;
const INET_QUEUE: usize = 56;
const INET_INODE: usize = 68;
/// Offsets in `struct unix_diag_msg`: its inode, and its end.
const UNIX_INODE: usize = 4;
const UNIX_BYTES: usize = 16;

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpRow {
    pub(super) inode: u64,
    pub(super) address: SocketAddr,
    /// How many connections wait to be accepted.
    pub(super) accept_queue: u32,
}

/// A listening unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnixRow {
    pub(super) inode: u64,
    pub(super) path: ByteString,
}

/// The arguments of socket(2) for a [`SockDiag`].
pub(super) fn socket_params() -> (AddressFamily, SocketType, Option<rustix::net::Protocol>) {
    let protocol = Some(netlink::SOCK_DIAG);
    (AddressFamily::NETLINK, SocketType::DGRAM, protocol)
}

/// A sock_diag socket of the network namespace it was opened in.
#[derive(Debug)]
pub(super) struct SockDiag(OwnedFd);

impl SockDiag {
    /// Opens one in the calling thread's namespace.
    pub(super) fn open() -> Result<Self, Errno> {
        let (family, kind, protocol) = socket_params();
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self(socket))
    }

    /// Wraps a socket created with [`socket_params`].
    pub(super) const fn from_socket(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Every listening TCP socket, MPTCP's among them.
    pub(super) fn tcp(&self) -> Result<Vec<TcpRow>, Errno> {
        let mut rows = Vec::new();
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            self.dump(&tcp_request(family), |message| {
                rows.extend(tcp_row(message));
                rows.len() < ROWS_MAX
            })?;
        }
        Ok(rows)
    }

    /// Every listening unix socket that has a name.
    pub(super) fn unix(&self) -> Result<Vec<UnixRow>, Errno> {
        let mut rows = Vec::new();
        self.dump(&unix_request(), |message| {
            rows.extend(unix_row(message));
            rows.len() < ROWS_MAX
        })?;
        Ok(rows)
    }

    /// Sends a request and passes on the messages of the reply until one is refused.
    fn dump(&self, body: &[u8], mut on_message: impl FnMut(&[u8]) -> bool) -> Result<(), Errno> {
        rustix::net::send(&self.0, &request(body), SendFlags::empty())?;
        let mut buffer = vec![0; ANSWER_BYTES];
        let mut more = true;
        loop {
            let received = rustix::io::retry_on_intr(|| {
                rustix::net::recv(&self.0, &mut buffer[..], RecvFlags::empty())
            });
            let mut rest = &buffer[..received?.0];
            if rest.is_empty() {
                return Err(Errno::PROTO);
            }
            while let Some((kind, body, after)) = split_message(rest) {
                match kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return Err(error_code(body)),
                    SOCK_DIAG_BY_FAMILY if more => more = on_message(body),
                    _ => {}
                }
                rest = after;
            }
        }
    }
}

fn request(body: &[u8]) -> Vec<u8> {
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_DUMP).unwrap_or(0);
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    // Sequence and port: one request at a time needs neither.
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

/// Encodes a `struct inet_diag_req_v2`.
fn tcp_request(family: AddressFamily) -> Vec<u8> {
    let tcp = libc::IPPROTO_TCP.to_le_bytes()[0];
    let mut body = vec![family.as_raw().to_le_bytes()[0], tcp, 0, 0];
    body.extend_from_slice(&LISTENING.to_ne_bytes());
    body.resize(body.len() + SOCKID_BYTES, 0);
    body
}

/// Encodes a `struct unix_diag_req`.
fn unix_request() -> Vec<u8> {
    let mut body = vec![AddressFamily::UNIX.as_raw().to_le_bytes()[0], 0, 0, 0];
    for word in [LISTENING, 0, UDIAG_SHOW_NAME, 0, 0] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    body
}

/// Type and body of the first message, and the remaining bytes.
fn split_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(word(bytes, 0)?).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(HEADER_BYTES..length)?;
    let next = length.next_multiple_of(ALIGNMENT).min(bytes.len());
    Some((kind, body, &bytes[next..]))
}

fn error_code(body: &[u8]) -> Errno {
    let code = word(body, 0).map_or(0, u32::cast_signed);
    Errno::from_raw_os_error(code.saturating_neg())
}

fn tcp_row(body: &[u8]) -> Option<TcpRow> {
    let family = u16::from(*body.first()?);
    let port = u16::from_be_bytes(body.get(INET_PORT..INET_PORT + 2)?.try_into().ok()?);
    let source: [u8; 16] = body.get(INET_SOURCE..INET_SOURCE + 16)?.try_into().ok()?;
    let ip = if family == AddressFamily::INET.as_raw() {
        let [a, b, c, d, ..] = source;
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    } else {
        // An IPv4-mapped IPv6 address is reported as IPv4.
        IpAddr::V6(Ipv6Addr::from(source)).to_canonical()
    };
    Some(TcpRow {
        inode: u64::from(word(body, INET_INODE)?),
        address: SocketAddr::new(ip, port),
        accept_queue: word(body, INET_QUEUE)?,
    })
}

fn unix_row(body: &[u8]) -> Option<UnixRow> {
    let inode = u64::from(word(body, UNIX_INODE)?);
    let mut rest = body.get(UNIX_BYTES..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        if kind == UNIX_DIAG_NAME {
            let path = ByteString::from(display_name(value));
            return Some(UnixRow { inode, path });
        }
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..)?;
    }
}

/// A path as it is; an abstract name with its NUL bytes shown as `@`.
fn display_name(name: &[u8]) -> Vec<u8> {
    if name.first() == Some(&0) {
        let shown = |byte: &u8| if *byte == 0 { b'@' } else { *byte };
        return name.iter().map(shown).collect();
    }
    let end = name.iter().position(|byte| *byte == 0);
    name[..end.unwrap_or(name.len())].to_vec()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

    use super::*;

    fn inode(descriptor: &impl AsRawFd) -> u64 {
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let target = std::fs::read_link(link).expect("open");
        let text = target.to_string_lossy().into_owned();
        let inode = text
            .trim_start_matches("socket:[")
            .trim_end_matches(']')
            .parse();
        inode.expect("an inode")
    }

    #[test]
    fn own_listeners_are_reported() {
        let diag = SockDiag::open().expect("opened");
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let expected = TcpRow {
                inode: inode(&listener),
                address: listener.local_addr().expect("bound"),
                accept_queue: 0,
            };
            let rows = diag.tcp().expect("told");
            assert!(rows.contains(&expected), "{address}: {rows:?}");
            drop(listener);
            let rows = diag.tcp().expect("told");
            assert!(!rows.contains(&expected));
        }
    }

    #[test]
    fn connections_that_are_not_accepted_are_counted() {
        let diag = SockDiag::open().expect("opened");
        let listener = TcpListener::bind("[::ffff:127.0.0.1]:0").expect("bound");
        let port = listener.local_addr().expect("bound").port();
        let _waiting = std::net::TcpStream::connect(("127.0.0.1", port)).expect("queued");
        let inode = inode(&listener);
        let rows = diag.tcp().expect("told");
        let row = rows.iter().find(|row| row.inode == inode).expect("there");
        assert_eq!(
            (row.address, row.accept_queue),
            (([127, 0, 0, 1], port).into(), 1)
        );
    }

    #[test]
    fn unix_sockets_are_reported_with_their_names() {
        let diag = SockDiag::open().expect("opened");
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("server.sock");
        let named = UnixListener::bind(&path).expect("bound");
        let name = format!("ostler-test-{}", std::process::id());
        let address = UnixAddress::from_abstract_name(&name).expect("a name");
        let hidden = UnixListener::bind_addr(&address).expect("bound");
        let rows = diag.unix().expect("told");
        for (inode, path) in [
            (inode(&named), ByteString::from(path)),
            (inode(&hidden), ByteString::from(format!("@{name}"))),
        ] {
            assert!(rows.contains(&UnixRow { inode, path }), "{rows:?}");
        }
    }

    #[test]
    fn garbled_answers_are_no_rows() {
        assert_eq!(tcp_row(&[2, 10, 0]), None);
        assert_eq!(unix_row(&[1; 20]), None);
        assert!(split_message(&[255; 16]).is_none());
        assert!(split_message(&[0; 16]).is_none());
        assert_eq!(display_name(b"/run/a.sock\0\0"), b"/run/a.sock");
        assert_eq!(display_name(b"\0a\0b"), b"@a@b");
    }
}
