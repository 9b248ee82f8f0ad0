//! Both directions of one client: a pair of descriptors, or any reader and writer.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_sys::async_fd;
use rustix::fs::{SeekFrom, sendfile};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, Interest};

use crate::connection_log::{ConnectionLog, OutputKind, ReadOutcome};

/// The most bytes of one write.
const CHUNK_BYTES: usize = 64 * 1024;
/// The most bytes of one read of a stream.
const STREAM_BYTES: usize = 16 * 1024;

/// Source of the client's bytes.
pub(super) enum StdioSource {
    Descriptor(AsyncFd<OwnedFd>),
    Stream(Box<dyn AsyncRead + Send + Unpin>),
}

impl fmt::Debug for StdioSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl StdioSource {
    /// Takes over a pipe or a socket.
    ///
    /// # Errors
    /// When it cannot be polled.
    pub(super) fn from_descriptor(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self::Descriptor(async_fd::register(
            fd,
            Interest::READABLE,
        )?))
    }

    /// Reads once into the log. Cancel safe: dropped before it is ready, it has read nothing.
    ///
    /// # Errors
    /// When it cannot be read, or the log cannot be written.
    pub(super) async fn read_into_log(&mut self, log: &ConnectionLog) -> io::Result<ReadOutcome> {
        match self {
            Self::Descriptor(fd) => loop {
                let mut ready = fd.readable().await?;
                let read = |fd: &AsyncFd<OwnedFd>| {
                    log.read_into(|bytes| {
                        let count = rustix::io::retry_on_intr(|| {
                            rustix::io::read(fd.get_ref(), &mut *bytes)
                        })?;
                        Ok(count)
                    })
                };
                if let Ok(filled) = ready.try_io(read) {
                    return filled;
                }
            },
            Self::Stream(stream) => {
                let mut bytes = vec![0; STREAM_BYTES];
                let count = stream.read(&mut bytes).await?;
                log.add_input(&bytes[..count])
            }
        }
    }
}

/// Sink of lines to the client. Lines are written in the order of their `push`; a dropped write is
/// continued by the next one.
pub(super) enum StdioSink {
    /// Written from the log's file.
    Descriptor {
        fd: AsyncFd<OwnedFd>,
        unsent: VecDeque<Range<u64>>,
        /// The file's offset; none before the first write.
        offset: Option<u64>,
    },
    Stream {
        stream: Box<dyn AsyncWrite + Send + Unpin>,
        buffer: Vec<u8>,
        sent: usize,
    },
}

impl fmt::Debug for StdioSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

impl StdioSink {
    /// Takes over a pipe or a socket, and the ranges still to be written to it.
    ///
    /// # Errors
    /// When it cannot be polled.
    pub(super) fn from_descriptor(fd: OwnedFd, unsent: Vec<Range<u64>>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self::Descriptor {
            fd: async_fd::register(fd, Interest::WRITABLE)?,
            unsent: unsent.into(),
            offset: None,
        })
    }

    pub(super) fn from_stream(stream: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::Stream {
            stream: Box::new(stream),
            buffer: Vec::new(),
            sent: 0,
        }
    }

    /// Queues one line.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(super) fn push(
        &mut self,
        log: &ConnectionLog,
        output: OutputKind,
        line: &[u8],
    ) -> io::Result<()> {
        let range = log.add_output(output, line)?;
        match self {
            Self::Descriptor { .. } if range.is_empty() => {}
            Self::Descriptor { unsent, .. } => unsent.push_back(range),
            Self::Stream { buffer, .. } => buffer.extend_from_slice(line),
        }
        Ok(())
    }

    /// Writes the queued lines.
    ///
    /// # Errors
    /// When the client does not read any more.
    pub(super) async fn flush(&mut self, log: &ConnectionLog) -> io::Result<()> {
        match self {
            Self::Descriptor { fd, unsent, offset } => {
                let Some(file) = log.file() else {
                    return Err(io::ErrorKind::Unsupported.into());
                };
                while let Some(range) = unsent.front_mut() {
                    let mut ready = fd.writable().await?;
                    let send =
                        |fd: &AsyncFd<OwnedFd>| send_from_file(fd.as_fd(), file, range, offset);
                    match ready.try_io(send) {
                        Ok(sent) => sent?,
                        Err(_would_block) => continue,
                    }
                    if range.is_empty() {
                        unsent.pop_front();
                    }
                }
                log.compact()
            }
            Self::Stream {
                stream,
                buffer,
                sent,
            } => {
                while *sent < buffer.len() {
                    match stream.write(&buffer[*sent..]).await? {
                        0 => return Err(io::ErrorKind::WriteZero.into()),
                        count => *sent += count,
                    }
                }
                (*buffer, *sent) = (Vec::new(), 0);
                stream.flush().await
            }
        }
    }
}

/// Writes once from the file; the same system call advances its offset.
fn send_from_file(
    to: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    range: &mut Range<u64>,
    offset: &mut Option<u64>,
) -> io::Result<()> {
    if *offset != Some(range.start) {
        rustix::fs::seek(file, SeekFrom::Start(range.start))?;
        *offset = Some(range.start);
    }
    let left = usize::try_from(range.end - range.start).unwrap_or(CHUNK_BYTES);
    let sent = rustix::io::retry_on_intr(|| sendfile(to, file, None, left));
    let count = match sent {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => count as u64,
        // Some sandboxes have no sendfile(2) between these.
        Err(Errno::INVAL | Errno::NOSYS) => copy_from_file(to, file, range)?,
        Err(error) => return Err(error.into()),
    };
    range.start += count;
    *offset = Some(range.start);
    Ok(())
}

fn copy_from_file(to: BorrowedFd<'_>, file: BorrowedFd<'_>, range: &Range<u64>) -> io::Result<u64> {
    let left = usize::try_from(range.end - range.start).unwrap_or(CHUNK_BYTES);
    let mut bytes = vec![0; left.min(CHUNK_BYTES)];
    let count = rustix::io::pread(file, bytes.as_mut_slice(), range.start)?;
    let count = rustix::io::retry_on_intr(|| rustix::io::write(to, &bytes[..count]))? as u64;
    rustix::fs::seek(file, SeekFrom::Start(range.start + count))?;
    Ok(count)
}
