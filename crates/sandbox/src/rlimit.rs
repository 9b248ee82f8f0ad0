//! Per-process limits by setrlimit(2). Only ever lowered: raising needs privileges that even root
//! may lack.

use ostler_model::Limits;

/// `(resource, limit)` pairs for a child to lower before exec: open files and file size.
#[must_use]
pub fn child_limits(limits: &Limits) -> Vec<(i32, u64)> {
    let open_files = limits
        .open_files
        .map(|count| (number(libc::RLIMIT_NOFILE), u64::from(count)));
    let file_bytes = limits
        .file_bytes
        .map(|bytes| (number(libc::RLIMIT_FSIZE), bytes));
    open_files.into_iter().chain(file_bytes).collect()
}

/// The most queued signals, and with them POSIX timers, of one jail.
const PENDING_SIGNALS: u64 = 1_024;
/// The most bytes of POSIX message queues of one jail: two with the default attributes.
const MESSAGE_QUEUE_BYTES: u64 = 204_800;
/// The most bytes that each process of a jail may lock into memory, and that all of them may lock
/// of shared memory.
const LOCKED_BYTES: u64 = 8 << 20;

/// The same for a command of a jail, with its share of what the kernel counts per user. The kernel
/// counts per user and user namespace (since Linux 5.14), and the namespace is the jail's own: the
/// host user's use does not count here. Processes are limited in the same way where no cgroup
/// counts them (`cgroup_counts_pids`).
#[must_use]
pub fn jail_limits(limits: &Limits, cgroup_counts_pids: bool) -> Vec<(i32, u64)> {
    const INIT: u64 = 1;
    let mut all = child_limits(limits);
    let count = limits.pids.filter(|_| !cgroup_counts_pids);
    let count = count.map(|count| u64::from(count) + INIT);
    all.extend(count.map(|count| (number(libc::RLIMIT_NPROC), count)));
    all.extend([
        (number(libc::RLIMIT_SIGPENDING), PENDING_SIGNALS),
        (number(libc::RLIMIT_MSGQUEUE), MESSAGE_QUEUE_BYTES),
        (number(libc::RLIMIT_MEMLOCK), LOCKED_BYTES),
    ]);
    all
}

/// The C libraries differ in the type of a resource's number, not in the number.
const fn number(resource: libc::__rlimit_resource_t) -> i32 {
    resource as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requested_limits_are_lowered() {
        assert_eq!(child_limits(&Limits::default()), []);
        let limits = Limits {
            open_files: Some(64),
            ..Limits::default()
        };
        assert_eq!(child_limits(&limits), [(number(libc::RLIMIT_NOFILE), 64)]);
        let limits = Limits {
            pids: Some(8),
            ..Limits::default()
        };
        assert_eq!(child_limits(&limits), []);
        let processes = (number(libc::RLIMIT_NPROC), 9);
        assert_eq!(jail_limits(&limits, false).first(), Some(&processes));
        assert!(!jail_limits(&limits, true).contains(&processes));
    }

    #[test]
    fn a_jail_has_a_share_of_what_is_counted_per_user() {
        let all = jail_limits(&Limits::default(), true);
        let of = |resource| all.iter().find(|(it, _)| *it == number(resource));
        for resource in [
            libc::RLIMIT_SIGPENDING,
            libc::RLIMIT_MSGQUEUE,
            libc::RLIMIT_MEMLOCK,
        ] {
            assert!(of(resource).is_some_and(|(_, limit)| *limit < 10 << 20));
        }
    }
}
