//! Synchronisation with a test's commands: lines they report, and processes to wait for.

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::time::timeout;

use crate::common::PATIENCE;

/// Creates a FIFO.
pub(crate) fn fifo(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let (kind, mode) = (FileType::Fifo, Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    path
}

/// Receives what commands write into `bell` in their working directory.
pub(crate) struct Bell(Lines<BufReader<Receiver>>);

impl Bell {
    pub(crate) fn new(directory: &Path) -> Self {
        let path = fifo(directory, "bell");
        // Opened for reading and writing, so that it never reaches end of file.
        let receiver = OpenOptions::new()
            .read_write(true)
            .open_receiver(&path)
            .unwrap();
        Self(BufReader::new(receiver).lines())
    }

    /// The next line.
    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.0.next_line()).await;
        line.expect("a line in time").unwrap().unwrap()
    }

    /// The next line, a process id.
    pub(crate) async fn process(&mut self) -> Process {
        let pid = self.line().await.trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        Process(pidfd_open(pid, PidfdFlags::empty()).ok())
    }
}

/// A process that may have exited already.
pub(crate) struct Process(Option<std::os::fd::OwnedFd>);

impl Process {
    /// Waits until it has exited.
    pub(crate) async fn gone(self) {
        let Some(pidfd) = self.0 else { return };
        let ended = timeout(PATIENCE, ostler_sys::pidfd::wait(pidfd)).await;
        ended.expect("the process ends in time").unwrap();
    }

    /// Whether it is running.
    pub(crate) fn lives(&self) -> bool {
        let Some(pidfd) = &self.0 else { return false };
        let mut polled = [rustix::event::PollFd::new(
            pidfd,
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::time::Timespec::default();
        rustix::event::poll(&mut polled, Some(&now)).unwrap() == 0
    }
}
