//! Who of a tree waits for the execution's input, by proc(5).
//!
//! Only the execution's own input counts: the terminal, or the pipe its shim writes to. A
//! `cat` behind another command's pipe waits for that command, not for anybody's answer.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ostler_model::evidence::Foreground;
use rustix::fs::{Mode, OFlags};
use rustix::termios::LocalModes;

use crate::spec_file::BootStamp;
use crate::sys::proc::Stat;

/// System calls, as `/proc/<pid>/syscall` numbers them, whose first argument is the
/// descriptor that is read.
const READS: &[libc::c_long] = &[libc::SYS_read, libc::SYS_readv];
/// System calls that wait for several descriptors.
#[cfg(target_arch = "x86_64")]
const POLLS: &[libc::c_long] = &[
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];
/// Where the kernel lets readers sleep: pipes, terminals, poll, select, epoll.
const SLEEPS: &[&str] = &[
    "pipe_read",
    "n_tty_read",
    "wait_woken",
    "do_poll",
    "poll_schedule_timeout",
    "do_select",
    "ep_poll",
];
/// Threads of one process that are looked at.
const THREADS_MAX: usize = 256;
/// The device number of `/dev/tty`, whatever terminal that is.
const OWN_TERMINAL: (u32, u32) = (5, 0);
/// Standard input.
const INPUT: u32 = 0;

/// What an execution's input is.
enum Channel {
    /// The terminal with this device number.
    Terminal((u32, u32)),
    /// Pipes, by the targets of their links: `pipe:[123]`.
    Pipes(Vec<PathBuf>),
}

/// The process of a tree, its leader first, that waits for input; else the one that would get
/// it. None of an empty tree.
pub(super) fn look(boot: &BootStamp, stats: &[(i32, Stat)]) -> Option<Foreground> {
    let (leader, stat) = stats.first()?;
    let group = stat.foreground;
    let in_front: Vec<i32> = stats
        .iter()
        .filter(|(_, it)| it.terminal != 0 && it.group == group)
        .map(|(pid, _)| *pid)
        .collect();
    // A command in pipes may stand under our own terminal, which it never has in front.
    if stat.terminal != 0 && !in_front.is_empty() {
        let channel = Channel::Terminal(device(stat.terminal));
        let mut seen = waiting(&in_front, &channel);
        let modes = modes(i32::try_from(seen.pid).unwrap_or(0)).ok();
        seen.echo = modes.map(|modes| modes.contains(LocalModes::ECHO));
        seen.lines = modes.map(|modes| modes.contains(LocalModes::ICANON));
        return Some(seen);
    }
    let pids: Vec<i32> = stats.iter().map(|(pid, _)| *pid).collect();
    Some(waiting(&pids, &Channel::Pipes(input_pipes(boot, *leader))))
}

/// The first that reads, else the first that polls, else the first.
fn waiting(pids: &[i32], channel: &Channel) -> Foreground {
    let seen: Vec<Foreground> = pids.iter().map(|pid| one(*pid, channel)).collect();
    let reading = seen.iter().find(|it| it.reads.is_some());
    let polling = || seen.iter().find(|it| it.polls);
    let found = reading.or_else(polling).or_else(|| seen.first());
    found.copied().unwrap_or_default()
}

fn one(pid: i32, channel: &Channel) -> Foreground {
    let mut seen = Foreground {
        pid: pid.unsigned_abs(),
        ..Foreground::default()
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten().take(THREADS_MAX);
    for thread in threads {
        let text = match fs::read_to_string(thread.path().join("syscall")) {
            Ok(text) => text,
            Err(error) => {
                let hidden = error.kind() == io::ErrorKind::PermissionDenied;
                seen.polls |= hidden && may_read(&thread.path()) && channel.is_open(pid, INPUT);
                continue;
            }
        };
        let Some((call, first)) = blocked_in(&text) else {
            continue;
        };
        let descriptor = u32::try_from(first).ok();
        if READS.contains(&call) && descriptor.is_some_and(|it| channel.is_open(pid, it)) {
            seen.reads = descriptor;
            return seen;
        }
        seen.polls |= POLLS.contains(&call) && channel.is_open(pid, INPUT);
    }
    seen
}

/// Where system calls are shown to nobody but a parent (Yama, after a restart of ours): whether
/// a thread sleeps where readers do. On what, this does not tell.
fn may_read(thread: &Path) -> bool {
    let place = fs::read_to_string(thread.join("wchan")).unwrap_or_default();
    SLEEPS.iter().any(|known| place.contains(known))
}

/// Number and first argument of the system call a thread is blocked in.
fn blocked_in(text: &str) -> Option<(libc::c_long, u64)> {
    let mut words = text.split_ascii_whitespace();
    let call = words.next()?.parse().ok()?;
    let first = words.next()?.strip_prefix("0x")?;
    Some((call, u64::from_str_radix(first, 16).ok()?))
}

impl Channel {
    /// Whether a descriptor of a process is the execution's input.
    fn is_open(&self, pid: i32, descriptor: u32) -> bool {
        let link = format!("/proc/{pid}/fd/{descriptor}");
        match self {
            Self::Terminal(terminal) => fs::metadata(link).is_ok_and(|file| {
                let device = (
                    rustix::fs::major(file.rdev()),
                    rustix::fs::minor(file.rdev()),
                );
                device == *terminal || device == OWN_TERMINAL
            }),
            Self::Pipes(pipes) => fs::read_link(link).is_ok_and(|it| pipes.contains(&it)),
        }
    }
}

/// The pipes whose other ends the shim holds. Where it cannot be looked at, what the leader
/// has as its standard input.
fn input_pipes(boot: &BootStamp, leader: i32) -> Vec<PathBuf> {
    let held = fs::read_dir(format!("/proc/{}/fd", boot.shim_pid));
    let held = held.into_iter().flatten().flatten();
    let links = held.filter_map(|entry| fs::read_link(entry.path()).ok());
    let pipes: Vec<PathBuf> = links.filter(|it| is_pipe(it)).collect();
    if !pipes.is_empty() {
        return pipes;
    }
    let own = fs::read_link(format!("/proc/{leader}/fd/{INPUT}"));
    own.into_iter().filter(|it| is_pipe(it)).collect()
}

fn is_pipe(link: &Path) -> bool {
    link.as_os_str().as_encoded_bytes().starts_with(b"pipe:[")
}

/// Major and minor number of a terminal as proc(5)'s `stat` spells it.
const fn device(terminal: i32) -> (u32, u32) {
    let bits = terminal.cast_unsigned();
    (
        (bits >> 8) & 0xfff,
        (bits & 0xff) | ((bits >> 12) & 0xf_ff00),
    )
}

fn modes(pid: i32) -> io::Result<LocalModes> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let link = format!("/proc/{pid}/fd/{INPUT}");
    let terminal: OwnedFd = rustix::fs::open(link, flags, Mode::empty())?;
    Ok(rustix::termios::tcgetattr(&terminal)?.local_modes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_is_blocked_in() {
        let reads = "0 0x0 0x7ffd 0x400 0x0 0x0 0x0 0x7ffc 0x7f01";
        assert_eq!(blocked_in(reads), Some((0, 0)));
        assert_eq!(blocked_in("running"), None);
        assert_eq!(blocked_in("-1 0x7ffd 0x7f01"), Some((-1, 0x7ffd)));
        assert_eq!(blocked_in(""), None);
    }

    #[test]
    fn numbers_of_terminals() {
        assert_eq!(device(0x8803), (136, 3));
        assert_eq!(device(0x10_8803), (136, 0x103));
    }
}
