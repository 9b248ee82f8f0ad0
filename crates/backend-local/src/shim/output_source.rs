//! One end of a pipe, or the master of a terminal, over its life.
//!
//! A pipe whose other end is closed is over. A terminal is not: a leader that closes its own
//! descriptors can open `/dev/tty` again. Until then the master cannot be polled, as it is hung
//! up all the time, and must not be closed, as that is a hang-up of the terminal. It waits
//! edge-triggered behind an epoll(7) descriptor, which tells of news alone.

use std::os::fd::OwnedFd;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

/// Where one stream is read from.
#[derive(Debug)]
pub(super) enum OutputSource {
    /// Somebody holds the other end, as far as is known.
    Open(OwnedFd),
    /// Nobody does, and somebody may again.
    Quiet {
        terminal: OwnedFd,
        /// Readable when something happens to it; none where the kernel refused one, and then
        /// it is read at the leader's end.
        epoll: Option<OwnedFd>,
    },
    /// Nobody ever will.
    Over,
}

impl OutputSource {
    /// What is read.
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

    /// What is polled.
    pub(super) const fn polled(&self) -> Option<&OwnedFd> {
        match self {
            Self::Open(descriptor) => Some(descriptor),
            Self::Quiet { epoll: news, .. } => news.as_ref(),
            Self::Over => None,
        }
    }

    /// Whether somebody holds the other end.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// A read told that nobody holds the other end.
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

    /// A read told that somebody does.
    pub(super) fn mark_open(&mut self) {
        if let Self::Quiet { .. } = self
            && let Self::Quiet { terminal, .. } = std::mem::replace(self, Self::Over)
        {
            *self = Self::Open(terminal);
        }
    }

    /// Uses up what was told so far; before a read, so that what comes after it is told anew.
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
