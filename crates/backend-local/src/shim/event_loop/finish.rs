//! The end of an attempt: exit record, last messages, clean-up.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use ostler_backend::execution_dir;
use ostler_backend::{EXIT_RECORD_VERSION, ExitRecord, LeaderOutcome, ProcessEvent};
use ostler_model::Usage;
use ostler_sandbox::cgroup::CgroupSlot;
use ostler_sys::seqpacket::ReceiveMode;
use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

use super::{AttemptEnd, AttemptRunner, RETRY_MS};
use crate::shim::container_tree::ContainerTree;
use crate::shim::daemon_connection::{self, CONTROL_SOCKET, DaemonEvent};
use crate::sys::time::ClockReading;

/// The most survivors an exit record names.
const SURVIVORS_MAX: usize = 256;
/// [`RETRY_MS`] for poll(2).
const RETRY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: RETRY_MS.cast_signed() * 1_000_000,
};

/// How long the shim waits for a full disk when the record can no longer be read, because its
/// directory was removed or its file system unmounted, in milliseconds.
const UNREACHABLE_MS: u64 = 10_000;
/// How long the record of an end waits for output that is in memory only, in milliseconds.
const MEMORY_KEPT_MS: u64 = 10_000;

impl AttemptRunner<'_> {
    /// Ends the attempt: writes the record, reports it, and cleans up.
    pub(super) fn finish(mut self, clean: bool) -> AttemptEnd {
        let buffer = self.shim.buffer.as_mut_slice();
        let bytes = self.streams.drain(buffer, &mut self.sink);
        self.on_output(bytes);
        if self.detached {
            self.ended = Some(ClockReading::now());
        }
        self.record_exit(clean);
        if !self.daemon.has_daemon() {
            execution_dir::remove(self.dir.as_fd(), CONTROL_SOCKET);
        }
        if self.spare_socket.take().is_some() {
            daemon_connection::remove_spare(self.dir.as_fd());
        }
        self.daemon.flush_blocking();
        if clean && !self.exit_unrecorded && self.daemon.has_daemon() {
            AttemptEnd::Recycle(self.daemon)
        } else {
            AttemptEnd::Leave
        }
    }

    fn record_exit(&mut self, idle: bool) {
        self.streams.flush(None, &mut self.sink);
        self.sink.return_to_disk();
        self.send_sink_events();
        self.wait_for_disk();
        let mut record = self.exit_record(idle);
        let mut written = self.write_exit_record(&record);
        if let Err(error) = written {
            written = self.retry_until_recorded(&mut record, error);
        }
        match written {
            Ok(()) => self.sink.mark_end_recorded(),
            Err(error) => {
                record.journal_error =
                    Some(format!("cannot write or sync the exit record: {error}"));
                self.exit_unrecorded = true;
            }
        }
        let idle = idle && !self.exit_unrecorded;
        let record = Box::new(record);
        self.daemon
            .send(&ProcessEvent::Exited { record, idle }, None);
    }

    fn write_exit_record(&self, record: &ExitRecord) -> Result<(), Errno> {
        execution_dir::write_exit_record(self.dir.as_fd(), record, self.shim.identity.durability)
    }

    /// With a full disk and no daemon, output in memory exists only in this process. Waits a while
    /// until the disk takes it, or a daemon connects, which reads it from memory. Then the end is
    /// recorded in space that was reserved, with what was lost.
    fn wait_for_disk(&mut self) {
        let began = Instant::now();
        while self.sink.is_in_memory()
            && !self.daemon.has_daemon()
            && began.elapsed() < Duration::from_millis(MEMORY_KEPT_MS)
        {
            self.retry_while_waiting();
        }
    }

    /// With a full disk and no daemon the record exists only in this process. Stays until there is
    /// space for it, a daemon connects, or it could no longer be found.
    fn retry_until_recorded(&mut self, record: &mut ExitRecord, error: Errno) -> Result<(), Errno> {
        let mut result = Err(error);
        let mut reachable_at = Instant::now();
        while let Err(Errno::NOSPC | Errno::DQUOT | Errno::ROFS) = result
            && !self.daemon.has_daemon()
            && reachable_at.elapsed() < Duration::from_millis(UNREACHABLE_MS)
        {
            if is_reachable(self.dir.as_fd()) {
                reachable_at = Instant::now();
            }
            self.retry_while_waiting();
            record.journal_error = self.sink.error().map(str::to_owned);
            record.lost_bytes = self.sink.lost_bytes();
            result = self.write_exit_record(record);
        }
        result
    }

    /// Waits for a daemon, and tries the disk again.
    fn retry_while_waiting(&mut self) {
        if self.listen_at.is_some() {
            self.open_control_socket();
        }
        let mut polled: Vec<PollFd<'_>> = self.daemon.poll_fd().into_iter().collect();
        let _woken = rustix::event::poll(&mut polled, Some(&RETRY));
        let buffer = self.shim.buffer.as_mut_slice();
        if let DaemonEvent::Reconnected = self.daemon.receive(buffer, ReceiveMode::NonBlocking) {
            self.send_hello();
        }
        self.sink.return_to_disk();
        self.send_sink_events();
    }

    /// The usage of reaped processes, and at level high what the slot counted: children of an init
    /// are reaped by the kernel, and counted nowhere else.
    fn usage(&self) -> Usage {
        let mut usage = self.tree.usage();
        if let Some(before) = self.cpu_before
            && let Some(now) = self.shim.slot.as_ref().and_then(CgroupSlot::cpu_time)
        {
            usage.user_us = usage.user_us.max(now.0.saturating_sub(before.0));
            usage.system_us = usage.system_us.max(now.1.saturating_sub(before.1));
        }
        usage
    }

    fn exit_record(&mut self, idle: bool) -> ExitRecord {
        let out_of_memory = self.was_out_of_memory();
        let is_lost = self.tree.container().is_some_and(ContainerTree::is_lost);
        let outcome = match self.tree.final_status() {
            _ if is_lost && self.escalation.reason().is_none() => LeaderOutcome::ContainerLost,
            Some(status) => LeaderOutcome::Ended {
                status,
                kill_reason: self.escalation.reason(),
            },
            None => LeaderOutcome::Ended {
                status: ostler_model::termination::WaitStatus::Signal(ostler_model::Signal::KILL),
                kill_reason: self.escalation.reason(),
            },
        };
        let ended = self.ended.unwrap_or_else(ClockReading::now);
        let survivors = if idle {
            Vec::new()
        } else {
            let members = self.tree.members().into_iter();
            members.take(SURVIVORS_MAX).map(i32::unsigned_abs).collect()
        };
        ExitRecord {
            version: EXIT_RECORD_VERSION,
            attempt: self.plan.attempt,
            pid: self.tree.pid(),
            started_at: self.started.timestamp(),
            ended_at: ended.timestamp(),
            lived_ms: ended.ms_since(&self.started),
            outcome,
            leftovers: self.tree.left_behind(),
            survivors,
            out_of_memory,
            limits_hit: self.limits_hit.clone(),
            usage: self.usage(),
            output_end: self.sink.end(),
            journal_error: self.sink.error().map(str::to_owned),
            lost_bytes: self.sink.lost_bytes(),
            autorun: Box::new(self.tree.autorun()),
            lost_capabilities: self.lost_capabilities.clone(),
        }
    }
}

/// Whether a directory is still at its path; true where that cannot be determined.
fn is_reachable(dir: BorrowedFd<'_>) -> bool {
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let (Ok(path), Ok(own)) = (
        rustix::fs::readlink(link, Vec::new()),
        rustix::fs::fstat(dir),
    ) else {
        return true;
    };
    rustix::fs::stat(path)
        .is_ok_and(|found| (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_removed_is_not_reachable() {
        let parent = tempfile::TempDir::new().expect("a directory");
        let path = parent.path().join("execution");
        std::fs::create_dir(&path).expect("room");
        let dir = std::fs::File::open(&path).expect("there");
        assert!(is_reachable(dir.as_fd()));
        let moved = parent.path().join("moved");
        std::fs::rename(&path, &moved).expect("room");
        assert!(is_reachable(dir.as_fd()), "it is found where it is now");
        std::fs::remove_dir(&moved).expect("empty");
        assert!(!is_reachable(dir.as_fd()));
        std::fs::create_dir(&moved).expect("room");
        assert!(!is_reachable(dir.as_fd()), "another one of the same name");
    }
}
