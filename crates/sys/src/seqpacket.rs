//! Sequenced-packet sockets (unix(7), `SOCK_SEQPACKET`) between the processes of one executable:
//! whole messages or nothing, each with at most one descriptor (`SCM_RIGHTS`).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
    socketpair,
};

/// The largest message; larger plans travel in a memory file.
pub const PACKET_BYTES: usize = 128 * 1024;

/// A connected pair, closed on exec: the caller's end, which does not block, and the other.
///
/// # Errors
/// As socketpair(2).
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let family = AddressFamily::UNIX;
    let (ours, theirs) = socketpair(family, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

/// Listens on a socket of this name in a directory, however long the directory's path is.
///
/// # Errors
/// As bind(2) and listen(2).
pub fn listen(dir: BorrowedFd<'_>, name: &str, backlog: i32) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    rustix::net::bind(&socket, &address(dir, name)?)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

/// Connects to the socket of this name in a directory, and waits at most this long where many
/// others do. The connection does not block.
///
/// # Errors
/// As connect(2); `AGAIN` where the time is over.
pub fn connect(dir: BorrowedFd<'_>, name: &str, limit: Duration) -> Result<OwnedFd, Errno> {
    let family = AddressFamily::UNIX;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::SEQPACKET, flags, None)?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    let address = address(dir, name)?;
    retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// The address of a socket in an open directory.
fn address(dir: BorrowedFd<'_>, name: &str) -> Result<SocketAddrUnix, Errno> {
    use std::os::fd::AsRawFd;
    SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}

/// Whether a call may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Answer at once, with `RESTART` where nothing can be done.
    NonBlocking,
    /// By the descriptor's mode.
    Wait,
}

/// Sends one packet at once or not at all, with a descriptor where one is given; never raises
/// SIGPIPE.
///
/// # Errors
/// As sendmsg(2); `AGAIN` where the peer does not read.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let slot: [BorrowedFd<'_>; 1];
    if let Some(descriptor) = descriptor {
        slot = [descriptor];
        ancillary.push(SendAncillaryMessage::ScmRights(&slot));
    }
    let parts = [IoSlice::new(bytes)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    retry_on_intr(|| sendmsg(socket, &parts, &mut ancillary, flags)).map(|_| ())
}

/// The result of one receive.
#[derive(Debug)]
pub struct Packet {
    /// Bytes of the message at the start of the buffer; 0 is the peer's end.
    pub len: usize,
    /// The descriptor that came with it.
    pub descriptor: Option<OwnedFd>,
}

/// Receives one packet.
///
/// # Errors
/// As recvmsg(2).
pub fn receive(socket: impl AsFd, buffer: &mut [u8], mode: ReceiveMode) -> Result<Packet, Errno> {
    let flags = match mode {
        ReceiveMode::NonBlocking => RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        ReceiveMode::Wait => RecvFlags::CMSG_CLOEXEC,
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let received = retry_on_intr(|| recvmsg(&socket, &mut parts, &mut ancillary, flags))?;
    let mut descriptor = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptor = received.into_iter().next().or(descriptor);
        }
    }
    Ok(Packet {
        len: received.bytes,
        descriptor,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_packet_arrives_whole_with_its_descriptor() {
        let (ours, theirs) = pair().expect("a pair");
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        send(ours.as_fd(), b"one", None).expect("sent");
        send(ours.as_fd(), b"two", Some(writer.as_fd())).expect("sent");
        drop(writer);
        let mut buffer = [0; 16];
        let first = receive(&theirs, &mut buffer, ReceiveMode::Wait).expect("received");
        assert_eq!(
            (&buffer[..first.len], first.descriptor.is_some()),
            (&b"one"[..], false)
        );
        let second = receive(&theirs, &mut buffer, ReceiveMode::NonBlocking).expect("received");
        assert_eq!(&buffer[..second.len], b"two");
        let mut passed = std::fs::File::from(second.descriptor.expect("a descriptor"));
        passed.write_all(b"written").expect("open");
        drop(passed);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("ended");
        assert_eq!(text, "written");
    }

    #[test]
    fn an_empty_socket_does_not_block_and_a_closed_one_is_an_end() {
        let (ours, theirs) = pair().expect("a pair");
        let mut buffer = [0; 16];
        let empty = receive(&theirs, &mut buffer, ReceiveMode::NonBlocking);
        assert_eq!(empty.err(), Some(Errno::AGAIN));
        drop(ours);
        let end = receive(&theirs, &mut buffer, ReceiveMode::Wait).expect("the end");
        assert_eq!(end.len, 0);
        assert_eq!(send(theirs.as_fd(), b"late", None), Err(Errno::PIPE));
    }
}
