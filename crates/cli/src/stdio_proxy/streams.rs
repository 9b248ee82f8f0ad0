//! The standard streams of the proxy, or their replacements.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::relay::StreamRelay;
use crate::daemon::streams::is_passable;

/// Whether the client may still send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientPresence {
    Connected,
    /// It has closed its side; earlier requests may be unread.
    Disconnected,
}

/// The streams that are passed.
#[derive(Debug)]
pub(crate) enum ProxyStreams {
    /// Standard input and output themselves, and their flags before the daemon set its own.
    Own { input: OFlags, output: OFlags },
    /// One end of a socket pair; the relay copies between the other end and the standard streams.
    Relayed { end: OwnedFd, relay: StreamRelay },
}

impl ProxyStreams {
    /// The standard streams if both can be passed, else a relay.
    ///
    /// # Errors
    /// When they are closed, or no socket pair can be created.
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

    /// The two descriptors to pass.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        match self {
            Self::Own { .. } => [rustix::stdio::stdin(), rustix::stdio::stdout()],
            Self::Relayed { end, .. } => [end.as_fd(), end.as_fd()],
        }
    }

    /// Waits until the client sends something or closes the streams.
    ///
    /// # Errors
    /// Those of poll(2).
    pub(crate) fn wait_for_client(&self) -> io::Result<()> {
        let [input, _] = self.fds();
        let mut fds = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        Ok(())
    }

    /// Waits for `pause`, or until the client closes the streams; with `until_input`, at most until
    /// it sends something.
    ///
    /// # Errors
    /// Those of poll(2).
    pub(crate) fn pause(&self, pause: Duration, until_input: bool) -> io::Result<ClientPresence> {
        let deadline = Instant::now() + pause;
        let [input, _] = self.fds();
        // poll(2) reports a pipe without a writer in any case.
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

    /// Ends the session: relays what is pending, and restores the flags of streams that are shared
    /// with other processes.
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
