//! The descriptor one stream is read from: the read end of a pipe, or the master of a terminal.
//!
//! A pipe whose write end is closed has ended. A terminal has not: a leader that closes its own
//! descriptors can open `/dev/tty` again. Until then the master cannot be polled, as it reports a
//! hang-up all the time, and must not be closed, as that hangs up the terminal. It is registered
//! edge-triggered with an epoll(7) descriptor, which reports changes only.

use std::os::fd::OwnedFd;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

/// The state of one stream's source.
#[derive(Debug)]
pub(super) enum OutputSource {
    /// A process has the other end open, as far as is known.
    Open(OwnedFd),
    /// No process does, and one may open it again.
    Quiet {
        terminal: OwnedFd,
        /// Readable when its state changes; none where the kernel refused to create one, and then
        /// it is read at the leader's end.
        epoll: Option<OwnedFd>,
    },
    /// No process can open it again.
    Over,
}

impl OutputSource {
    /// The descriptor to read.
    pub(super) const fn descriptor(&self) -> Option<&OwnedFd> {
        match self {
            Self::Open(descriptor)
            | Self::Quiet {
                terminal: descriptor,
                ..
            } => Some(descriptor),
            Self::Over => None,
        }
    }

    /// The descriptor to poll.
    pub(super) const fn polled(&self) -> Option<&OwnedFd> {
        match self {
            Self::Open(descriptor) => Some(descriptor),
            Self::Quiet { epoll: news, .. } => news.as_ref(),
            Self::Over => None,
        }
    }

    /// Whether a process has the other end open.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Records that a read found the other end closed.
    pub(super) fn mark_closed(&mut self, is_terminal: bool) {
        *self = match std::mem::replace(self, Self::Over) {
            Self::Open(terminal) if is_terminal => Self::Quiet {
                epoll: watch_terminal(&terminal).ok(),
                terminal,
            },
            quiet @ Self::Quiet { .. } => quiet,
            Self::Open(_) | Self::Over => Self::Over,
        };
    }

    /// Records that a read found the other end open.
    pub(super) fn mark_open(&mut self) {
        if let Self::Quiet { .. } = self
            && let Self::Quiet { terminal, .. } = std::mem::replace(self, Self::Over)
        {
            *self = Self::Open(terminal);
        }
    }

    /// Consumes pending events; called before a read, so that later changes are reported again.
    pub(super) fn clear_events(&self) {
        const AT_ONCE: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if let Self::Quiet {
            epoll: Some(news), ..
        } = self
        {
            let mut events = [epoll::Event {
                flags: EventFlags::empty(),
                data: EventData::new_u64(0),
            }];
            let _none = epoll::wait(news, &mut events, Some(&AT_ONCE));
        }
    }
}

fn watch_terminal(terminal: &OwnedFd) -> Result<OwnedFd, Errno> {
    let epoll_fd = epoll::create(CreateFlags::CLOEXEC)?;
    let flags = EventFlags::IN | EventFlags::ET;
    epoll::add(&epoll_fd, terminal, EventData::new_u64(0), flags)?;
    Ok(epoll_fd)
}
