//! The standard streams of a stdio proxy, as the daemon reads and writes them.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// The stream that a client writes to.
pub(crate) type StdioInput = Box<dyn AsyncRead + Send + Unpin>;
/// The stream that a client reads from.
pub(crate) type StdioOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// Reads `fd`, a pipe or a socket.
///
/// # Errors
/// When it is neither; proxies relay such streams.
pub(crate) fn input(fd: OwnedFd) -> io::Result<StdioInput> {
    if is_socket(&fd)? {
        return Ok(Box::new(socket(fd)?));
    }
    Ok(Box::new(pipe::Receiver::from_owned_fd(fd)?))
}

/// Writes `fd`, a pipe or a socket.
///
/// # Errors
/// As [`input`].
pub(crate) fn output(fd: OwnedFd) -> io::Result<StdioOutput> {
    if is_socket(&fd)? {
        return Ok(Box::new(socket(fd)?));
    }
    Ok(Box::new(pipe::Sender::from_owned_fd(fd)?))
}

/// Whether a descriptor can be passed to the daemon: a pipe or a socket.
pub(crate) fn is_passable(fd: impl std::os::fd::AsFd) -> bool {
    fstat(fd).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::Fifo | FileType::Socket)
    })
}

fn is_socket(fd: &OwnedFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
    Ok(kind == FileType::Socket)
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// The standard streams of this process; by threads where they are neither pipes nor sockets.
///
/// # Errors
/// When they are closed.
pub(crate) fn standard_streams() -> io::Result<(StdioInput, StdioOutput)> {
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    if is_passable(stdin) && is_passable(stdout) {
        let pair = (stdin.try_clone_to_owned()?, stdout.try_clone_to_owned()?);
        return Ok((input(pair.0)?, output(pair.1)?));
    }
    #[expect(clippy::disallowed_methods, reason = "an MCP client reads it")]
    let stdout = tokio::io::stdout();
    Ok((Box::new(tokio::io::stdin()), Box::new(stdout)))
}
