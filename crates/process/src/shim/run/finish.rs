//! The end of a tree: the record, the news, the clean-up.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use ostler_model::Usage;
use ostler_sandbox::cgroup::Slot;
use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

use super::{End, RETRY_MS, Run};
use crate::place::{EXIT_RECORD_VERSION, ExitRecord, Outcome};
use crate::proto::FromShim;
use crate::shim::link::Incoming;
use crate::shim::record;
use crate::sys::packet::Patience;
use crate::sys::time::Moment;

/// Survivors that are named.
const SURVIVORS_MAX: usize = 256;
/// [`RETRY_MS`] for poll(2).
const RETRY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: RETRY_MS.cast_signed() * 1_000_000,
};

/// How long a full disk is waited for that nobody could read the record from any more, in
/// milliseconds: its directory was removed, or its file system was taken away.
const UNREACHABLE_MS: u64 = 10_000;

impl Run<'_> {
    /// Everything is over: the record, the news, the clean-up.
    pub(super) fn finish(mut self, clean: bool) -> End {
        let buffer = self.shim.buffer.as_mut_slice();
        let bytes = self.streams.drain(buffer, &mut self.sink);
        self.heard(bytes);
        if self.detached {
            self.ended = Some(Moment::now());
        }
        self.tell_exit(clean);
        if !self.link.has_daemon() {
            record::remove(self.dir.as_fd(), record::CONTROL_SOCKET);
        }
        self.link.farewell();
        if clean && !self.unrecorded && self.link.has_daemon() {
            End::Recycle(self.link)
        } else {
            End::Leave
        }
    }

    fn tell_exit(&mut self, idle: bool) {
        self.streams.flush(None, &mut self.sink);
        self.sink.return_to_disk();
        self.tell_news();
        let mut record = self.exit_record(idle);
        let mut written = record::finish(self.dir.as_fd(), &record);
        if let Err(error) = written {
            written = self.hold_out(&mut record, error);
        }
        match written {
            Ok(()) => self.sink.end_is_recorded(),
            Err(error) => {
                record.journal_error = Some(format!("cannot write the exit record: {error}"));
                self.unrecorded = true;
            }
        }
        let idle = idle && !self.unrecorded;
        self.link.send(&FromShim::Exited { record, idle }, None);
    }

    /// A full disk and no daemon: the truth is only here. Stays until there is room for the
    /// record, or a daemon to tell, or nobody could find the record.
    fn hold_out(&mut self, record: &mut ExitRecord, why: Errno) -> Result<(), Errno> {
        let mut why = Err(why);
        let mut reachable_at = Instant::now();
        while let Err(Errno::NOSPC | Errno::DQUOT | Errno::ROFS) = why
            && !self.link.has_daemon()
            && reachable_at.elapsed() < Duration::from_millis(UNREACHABLE_MS)
        {
            if is_reachable(self.dir.as_fd()) {
                reachable_at = Instant::now();
            }
            if self.listen_at.is_some() {
                self.listen();
            }
            let mut polled: Vec<PollFd<'_>> = self.link.poll_fd().into_iter().collect();
            let _woken = rustix::event::poll(&mut polled, Some(&RETRY));
            let buffer = self.shim.buffer.as_mut_slice();
            if let Incoming::Called = self.link.receive(buffer, Patience::Now) {
                self.greet();
            }
            self.sink.return_to_disk();
            self.tell_news();
            record.journal_error = self.sink.error().map(str::to_owned);
            record.lost_bytes = self.sink.lost_bytes();
            why = record::finish(self.dir.as_fd(), record);
        }
        why
    }

    /// What was waited for, and at level high what the slot counted: a warden's children are
    /// reaped by the kernel, and counted nowhere else.
    fn usage(&self) -> Usage {
        let mut usage = self.tree.usage();
        if let Some(before) = self.cpu_before
            && let Some(now) = self.shim.slot.as_ref().and_then(Slot::cpu_time)
        {
            usage.user_us = usage.user_us.max(now.0.saturating_sub(before.0));
            usage.system_us = usage.system_us.max(now.1.saturating_sub(before.1));
        }
        usage
    }

    fn exit_record(&mut self, idle: bool) -> ExitRecord {
        let out_of_memory = self.judge_end();
        let outcome = match self.tree.end() {
            Some(status) => Outcome::Ended {
                status,
                ladder: self.descent.why(),
            },
            None => Outcome::Ended {
                status: ostler_model::ending::WaitStatus::Signal(ostler_model::Signal::KILL),
                ladder: self.descent.why(),
            },
        };
        let ended = self.ended.unwrap_or_else(Moment::now);
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
        }
    }
}

/// Whether a directory is where its path says; true where that cannot be found out.
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
