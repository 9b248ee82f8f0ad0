//! Telling that a limit was reached while the command runs: descriptors to poll, and what the
//! kernel counted.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::files;
use super::limits::Means;

/// Bytes of an events file that are read; each has a few short lines.
const EVENTS_BYTES: usize = 512;

/// News of one limit.
#[derive(Debug)]
pub(super) enum Alarm {
    /// An events file: poll(2) tells when a number in it has changed since it was read.
    Counter {
        /// The file.
        file: File,
        /// The line that counts what is asked about.
        key: &'static str,
        /// What it said last.
        seen: u64,
    },
    /// An eventfd(2) that version 1 raises when memory is out.
    Bell(OwnedFd),
}

impl Alarm {
    /// Of the limit on processes.
    pub(super) fn of_pids(means: &Means) -> Option<Self> {
        match means {
            Means::Unified(directory) | Means::Legacy(directory) => {
                Self::counter(&directory.join("pids.events"), "max")
            }
            Means::Absent => None,
        }
    }

    /// Of the limit on memory.
    pub(super) fn of_memory(means: &Means) -> Option<Self> {
        match means {
            Means::Unified(directory) => {
                Self::counter(&directory.join("memory.events"), "oom_kill")
            }
            Means::Legacy(directory) => {
                let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
                let file = File::open(directory.join("memory.oom_control")).ok()?;
                let order = format!("{} {}", bell.as_raw_fd(), file.as_raw_fd());
                files::write(&directory.join("cgroup.event_control"), &order).ok()?;
                Some(Self::Bell(bell))
            }
            Means::Absent => None,
        }
    }

    fn counter(path: &std::path::Path, key: &'static str) -> Option<Self> {
        let file = File::open(path).ok()?;
        let seen = count(&file, key).ok()?;
        Some(Self::Counter { file, key, seen })
    }

    /// What to poll, and for what.
    pub(super) fn polled(&self) -> (BorrowedFd<'_>, PollFlags) {
        match self {
            Self::Counter { file, .. } => (file.as_fd(), PollFlags::PRI),
            Self::Bell(bell) => (bell.as_fd(), PollFlags::IN),
        }
    }

    /// Whether the limit was reached since this was asked last; an error when nothing more
    /// will be told.
    pub(super) fn has_rung(&mut self) -> io::Result<bool> {
        match self {
            Self::Counter { file, key, seen } => {
                let now = count(file, key)?;
                Ok(now > std::mem::replace(seen, now))
            }
            Self::Bell(bell) => match rustix::io::read(bell, &mut [0; 8]) {
                Ok(_) => Ok(true),
                Err(rustix::io::Errno::AGAIN) => Ok(false),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// The number after `key`, 0 where the kernel does not count it.
fn count(file: &File, key: &str) -> io::Result<u64> {
    let mut bytes = [0; EVENTS_BYTES];
    let len = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    Ok(files::number_in(&text, key).unwrap_or(0))
}
