//! Finds out what a blocked thread waits for, from proc(5): the system call it sleeps in, the
//! descriptors it was called with, and its timeout.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Calls that read one descriptor, the first argument.
const READS: &[libc::c_long] = &[libc::SYS_read, libc::SYS_readv];
/// poll(2) and its variants.
#[cfg(target_arch = "x86_64")]
const POLLS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_ppoll];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: &[libc::c_long] = &[libc::SYS_ppoll];
/// select(2) and its variants.
#[cfg(target_arch = "x86_64")]
const SELECTS: &[libc::c_long] = &[libc::SYS_select, libc::SYS_pselect6];
#[cfg(not(target_arch = "x86_64"))]
const SELECTS: &[libc::c_long] = &[libc::SYS_pselect6];
/// epoll_wait(2) and its variants.
#[cfg(target_arch = "x86_64")]
const EPOLLS: &[libc::c_long] = &[
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];
#[cfg(not(target_arch = "x86_64"))]
const EPOLLS: &[libc::c_long] = &[libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];
/// Calls of these families whose timeout is a pointer, null for none.
const POINTER_TIMEOUT: &[libc::c_long] = &[libc::SYS_ppoll, libc::SYS_epoll_pwait2];
/// How many descriptors of one call are inspected.
const DESCRIPTORS_MAX: usize = 1_024;
/// The size of `struct pollfd`.
const POLLFD_BYTES: usize = 8;
/// Kernel functions in which readers sleep (`wchan`): pipes, terminals, poll, select, epoll.
const INPUT_WCHANS: &[&str] = &[
    "pipe_read",
    "n_tty_read",
    "wait_woken",
    "do_poll",
    "poll_schedule_timeout",
    "do_select",
    "ep_poll",
];

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockedOn {
    /// A read of this descriptor.
    Read(u32),
    /// Input from any of these.
    Any {
        /// The descriptors.
        descriptors: Vec<u32>,
        /// Whether it waits without a timeout.
        no_timeout: bool,
    },
    /// Perhaps input, from descriptors that may not be inspected.
    Unknown,
}

/// What a thread waits for; none where it runs or waits for no input. `thread` is its directory in
/// proc(5).
pub(super) fn inspect_thread(pid: i32, thread: &Path) -> Option<BlockedOn> {
    match fs::read_to_string(thread.join("syscall")) {
        Ok(text) => decode(pid, &text),
        // Where system calls are visible to a parent only (Yama, after a restart of the daemon),
        // there is still the function it sleeps in.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let wchan = fs::read_to_string(thread.join("wchan")).unwrap_or_default();
            let may_read = INPUT_WCHANS.iter().any(|known| wchan.contains(known));
            may_read.then_some(BlockedOn::Unknown)
        }
        Err(_) => None,
    }
}

fn decode(pid: i32, text: &str) -> Option<BlockedOn> {
    let (call, arguments) = blocked_in(text)?;
    if READS.contains(&call) {
        return Some(BlockedOn::Read(u32::try_from(arguments[0]).ok()?));
    }
    let (descriptors, no_timeout) = if POLLS.contains(&call) {
        (
            poll_descriptors(pid, arguments),
            has_no_timeout(call, arguments[2]),
        )
    } else if SELECTS.contains(&call) {
        (select_descriptors(pid, arguments), arguments[4] == 0)
    } else if EPOLLS.contains(&call) {
        (
            epoll_descriptors(pid, arguments),
            has_no_timeout(call, arguments[3]),
        )
    } else {
        return None;
    };
    Some(descriptors.map_or(BlockedOn::Unknown, |on| BlockedOn::Any {
        descriptors: on,
        no_timeout,
    }))
}

/// Number and arguments of the system call a thread is blocked in.
fn blocked_in(text: &str) -> Option<(libc::c_long, [u64; 6])> {
    let mut words = text.split_ascii_whitespace();
    let call = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
    }
    Some((call, arguments))
}

/// Whether a timeout argument means none: a null pointer, or a negative number of milliseconds.
fn has_no_timeout(call: libc::c_long, limit: u64) -> bool {
    if POINTER_TIMEOUT.contains(&call) {
        limit == 0
    } else {
        // An `int` in a register: its upper half is undefined.
        (limit & 0xffff_ffff) >= 0x8000_0000
    }
}

fn poll_descriptors(pid: i32, [address, count, ..]: [u64; 6]) -> Option<Vec<u32>> {
    let count = usize::try_from(count).ok()?.min(DESCRIPTORS_MAX);
    let entries = read_memory(pid, address, count * POLLFD_BYTES)?;
    let entries = entries.chunks_exact(POLLFD_BYTES).filter_map(|entry| {
        let descriptor = i32::from_ne_bytes(entry[..4].try_into().ok()?);
        let events = i16::from_ne_bytes(entry[4..6].try_into().ok()?);
        let reads = events & libc::POLLIN != 0;
        u32::try_from(descriptor).ok().filter(|_| reads)
    });
    Some(entries.collect())
}

fn select_descriptors(pid: i32, [count, address, ..]: [u64; 6]) -> Option<Vec<u32>> {
    if address == 0 {
        return Some(Vec::new());
    }
    let count = usize::try_from(count).ok()?.min(DESCRIPTORS_MAX);
    let set = read_memory(pid, address, count.div_ceil(64) * 8)?;
    let words = set.chunks_exact(8);
    let words: Option<Vec<u64>> = words
        .map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
        .collect();
    let words = words?;
    let is_set = |descriptor: &usize| words[descriptor / 64] >> (descriptor % 64) & 1 == 1;
    let found = (0..count).filter(is_set);
    Some(found.filter_map(|it| u32::try_from(it).ok()).collect())
}

fn epoll_descriptors(pid: i32, [descriptor, ..]: [u64; 6]) -> Option<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
    Some(
        text.lines()
            .filter_map(parse_epoll_line)
            .take(DESCRIPTORS_MAX)
            .collect(),
    )
}

/// Parses `tfd:        0 events:       19 data: ...`; returns the descriptor where input is among
/// the events.
fn parse_epoll_line(line: &str) -> Option<u32> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let descriptor = words.next()?.parse().ok()?;
    let events = words.nth(1)?;
    let events = u32::from_str_radix(events, 16).ok()?;
    (events & libc::EPOLLIN.cast_unsigned() != 0).then_some(descriptor)
}

fn read_memory(pid: i32, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let file = File::open(format!("/proc/{pid}/mem")).ok()?;
    file.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_is_blocked_in() {
        let reads = "0 0x0 0x7ffd 0x400 0x0 0x0 0x0 0x7ffc 0x7f01";
        assert_eq!(blocked_in(reads), Some((0, [0, 0x7ffd, 0x400, 0, 0, 0])));
        assert_eq!(blocked_in("running"), None);
        assert_eq!(
            blocked_in("-1 0x7ffd 0x7f01"),
            Some((-1, [0x7ffd, 0x7f01, 0, 0, 0, 0]))
        );
        assert_eq!(blocked_in(""), None);
    }

    #[test]
    fn limits_are_numbers_or_pointers() {
        let epoll = libc::SYS_epoll_pwait;
        for (call, limit, none) in [
            (epoll, u64::MAX, true),
            (epoll, 0xffff_ffff, true),
            (epoll, 3_000, false),
            (epoll, 0, false),
            (libc::SYS_ppoll, 0, true),
            (libc::SYS_ppoll, 0x7ffc_0000, false),
        ] {
            assert_eq!(has_no_timeout(call, limit), none, "{call} {limit:#x}");
        }
    }

    #[test]
    fn what_an_epoll_descriptor_watches() {
        let line = "tfd:       12 events:       19 data:        c  pos:0 ino:3 sdev:8";
        assert_eq!(parse_epoll_line(line), Some(12));
        assert_eq!(parse_epoll_line(&line.replace("19", "18")), None);
        assert_eq!(parse_epoll_line("pos:\t0"), None);
    }

    #[test]
    fn descriptors_are_read_from_memory() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        let address = |place: *const u8| place as u64;
        let set = [1_u64 | 1 << 5, 1];
        let select = [70, address(set.as_ptr().cast()), 0, 0, 0, 0];
        assert_eq!(select_descriptors(own, select), Some(vec![0, 5, 64]));
        let entry = |fd, events| libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        let entries = [
            entry(3, libc::POLLIN),
            entry(4, libc::POLLOUT),
            entry(-1, libc::POLLIN),
        ];
        let poll = [address(entries.as_ptr().cast()), 3, 0, 0, 0, 0];
        assert_eq!(poll_descriptors(own, poll), Some(vec![3]));
        assert_eq!(poll_descriptors(own, [8, 3, 0, 0, 0, 0]), None, "no memory");
    }
}
