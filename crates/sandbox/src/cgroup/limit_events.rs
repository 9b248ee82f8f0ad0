//! Notifies that a limit was reached while the command runs: descriptors to poll, and the kernel's
//! counters.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::files;
use super::limits::LimitMechanism;

/// How many bytes of an events file are read; each has a few short lines.
const EVENTS_BYTES: usize = 512;

/// Watches one limit.
#[derive(Debug)]
pub(super) enum LimitWatch {
    /// An events file: poll(2) reports that a counter has changed since the last read.
    EventsFile {
        /// The file.
        file: File,
        /// The key of the counter.
        key: &'static str,
        /// The last value read.
        last_count: u64,
    },
    /// An eventfd(2) that version 1 signals when memory is exhausted.
    EventFd(OwnedFd),
}

impl LimitWatch {
    /// Watches the limit on processes.
    pub(super) fn for_pids(mechanism: &LimitMechanism) -> Option<Self> {
        match mechanism {
            LimitMechanism::Unified(directory) | LimitMechanism::Legacy(directory) => {
                Self::events_file(&directory.join("pids.events"), "max")
            }
            LimitMechanism::Absent => None,
        }
    }

    /// Watches the limit on memory.
    pub(super) fn for_memory(mechanism: &LimitMechanism) -> Option<Self> {
        match mechanism {
            LimitMechanism::Unified(directory) => {
                Self::events_file(&directory.join("memory.events"), "oom_kill")
            }
            LimitMechanism::Legacy(directory) => {
                let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
                let file = File::open(directory.join("memory.oom_control")).ok()?;
                let registration = format!("{} {}", event_fd.as_raw_fd(), file.as_raw_fd());
                files::write(&directory.join("cgroup.event_control"), &registration).ok()?;
                Some(Self::EventFd(event_fd))
            }
            LimitMechanism::Absent => None,
        }
    }

    fn events_file(path: &std::path::Path, key: &'static str) -> Option<Self> {
        let file = File::open(path).ok()?;
        let last_count = read_count(&file, key).ok()?;
        Some(Self::EventsFile {
            file,
            key,
            last_count,
        })
    }

    /// The descriptor to poll, and the events to poll for.
    pub(super) fn poll_target(&self) -> (BorrowedFd<'_>, PollFlags) {
        match self {
            Self::EventsFile { file, .. } => (file.as_fd(), PollFlags::PRI),
            Self::EventFd(bell) => (bell.as_fd(), PollFlags::IN),
        }
    }

    /// Whether the limit was reached since the last call; an error when no more notifications will
    /// come.
    pub(super) fn has_fired(&mut self) -> io::Result<bool> {
        match self {
            Self::EventsFile {
                file,
                key,
                last_count,
            } => {
                let now = read_count(file, key)?;
                Ok(now > std::mem::replace(last_count, now))
            }
            Self::EventFd(bell) => match rustix::io::read(bell, &mut [0; 8]) {
                Ok(_) => Ok(true),
                Err(rustix::io::Errno::AGAIN) => Ok(false),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// The number after `key`, 0 where the kernel has no such counter.
fn read_count(file: &File, key: &str) -> io::Result<u64> {
    let mut bytes = [0; EVENTS_BYTES];
    let len = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    Ok(files::parse_number(&text, key).unwrap_or(0))
}
