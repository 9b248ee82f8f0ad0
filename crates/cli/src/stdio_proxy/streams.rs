//! Our own standard streams, or stand-ins for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::relay::StreamRelay;
use crate::daemon::streams::is_passable;

/// Whether the client may still say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientPresence {
    Connected,
    /// It has closed its side; what it said before may be unread.
    Disconnected,
}

/// What is handed over.
#[derive(Debug)]
pub(crate) enum ProxyStreams {
    /// Standard input and output themselves, and their flags before the daemon set its own.
    Own { input: OFlags, output: OFlags },
    /// One end of a socket pair; the relay moves bytes between the other and our streams.
    Relayed { end: OwnedFd, relay: StreamRelay },
}

impl ProxyStreams {
    /// Ours where both can be handed over, else stand-ins.
    ///
    /// # Errors
    /// When they are closed, or no pair can be made.
    pub(crate) fn open() -> io::Result<Self> {
        let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        if is_passable(stdin) && is_passable(stdout) {
            return Ok(Self::Own {
                input: fcntl_getfl(stdin)?,
                output: fcntl_getfl(stdout)?,
            });
        }
        let (local, remote) = UnixStream::pair()?;
        Ok(Self::Relayed {
            end: remote.into(),
            relay: StreamRelay::start(local)?,
        })
    }

    /// The two descriptors to hand over.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        match self {
            Self::Own { .. } => [rustix::stdio::stdin(), rustix::stdio::stdout()],
            Self::Relayed { end, .. } => [end.as_fd(), end.as_fd()],
        }
    }

    /// Waits until the client says something or goes away.
    ///
    /// # Errors
    /// As poll(2).
    pub(crate) fn wait_for_client(&self) -> io::Result<()> {
        let [input, _] = self.fds();
        let mut fds = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        Ok(())
    }

    /// Waits this long, or until the client goes away; where `until_input`, also no longer than
    /// until it says something.
    ///
    /// # Errors
    /// As poll(2).
    pub(crate) fn pause(&self, pause: Duration, until_input: bool) -> io::Result<ClientPresence> {
        let deadline = Instant::now() + pause;
        let [input, _] = self.fds();
        // That a pipe has no writer is told without being asked for.
        let mut events = PollFlags::RDHUP;
        events.set(PollFlags::IN, until_input);
        let mut fds = [PollFd::from_borrowed_fd(input, events)];
        rustix::io::retry_on_intr(|| {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let remaining = Timespec::try_from(remaining).map_err(|_| Errno::INVAL)?;
            poll(&mut fds, Some(&remaining))
        })?;
        let hangup = fds[0].revents().difference(PollFlags::IN);
        Ok(if hangup.is_empty() {
            ClientPresence::Connected
        } else {
            ClientPresence::Disconnected
        })
    }

    /// The conversation is over: what is still on its way goes out, and flags of streams we
    /// share with others are what they were.
    pub(crate) fn finish(self) {
        match self {
            Self::Own { input, output } => {
                restore_flags(rustix::stdio::stdin(), input);
                restore_flags(rustix::stdio::stdout(), output);
            }
            Self::Relayed { end, relay } => {
                drop(end);
                relay.finish();
            }
        }
    }
}

fn restore_flags(stream: BorrowedFd<'_>, flags: OFlags) {
    if fcntl_setfl(stream, flags).is_err() {
        crate::print_note("the flags of a standard stream cannot be restored");
    }
}
