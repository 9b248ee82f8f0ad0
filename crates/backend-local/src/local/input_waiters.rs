//! Finds the process of a tree that waits for the execution's input, from proc(5).
//!
//! Only the execution's own input counts: the terminal, or the pipe its shim writes to. A `cat` in
//! a pipeline waits for the command before it, not for an answer.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ostler_backend::spec_file::ShimIdentity;
use ostler_model::snapshot::ForegroundProcess;
use ostler_sys::process_stat::ProcessStat;
use rustix::fs::{Mode, OFlags};
use rustix::termios::LocalModes;

use super::blocked_on::{self, BlockedOn};

/// How many threads of one process are inspected.
const THREADS_MAX: usize = 256;
/// The device number of `/dev/tty`, whatever terminal it refers to.
const DEV_TTY: DeviceNumber = DeviceNumber { major: 5, minor: 0 };
/// The descriptor of standard input.
const STDIN: u32 = 0;

/// The kind of an execution's input.
enum InputChannel {
    /// The terminal with this device number.
    Terminal(DeviceNumber),
    /// The same for processes of other sessions, to which `/dev/tty` is another terminal.
    ForeignTerminal(DeviceNumber),
    /// Pipes, by the targets of their links: `pipe:[123]`.
    Pipes(Vec<PathBuf>),
}

/// The process of a tree, its leader first, that waits for input; else the one that would receive
/// it. None for an empty tree.
pub(super) fn inspect(
    shim: &ShimIdentity,
    stats: &[(i32, ProcessStat)],
) -> Option<ForegroundProcess> {
    let (leader, stat) = stats.first()?;
    let foreground_pids = foreground_group(stats, stat.terminal);
    // A command on pipes may have the daemon's terminal as its own, where it is never in the
    // foreground.
    if stat.terminal != 0 && !foreground_pids.is_empty() {
        let outer = inspect_terminal(stat.terminal, &foreground_pids);
        let hidden = match (outer.reads, outer.polls) {
            (Some(_), _) => None,
            // A program that forwards keys to a terminal of its own (sudo, script) waits for both
            // sides.
            (None, true) => inspect_inner_terminals(stats, stat.terminal),
            (None, false) => inspect_other_sessions(stats, stat.terminal),
        };
        return Some(hidden.unwrap_or(outer));
    }
    let pids: Vec<i32> = stats.iter().map(|(pid, _)| *pid).collect();
    Some(first_waiter(
        &pids,
        &InputChannel::Pipes(input_pipes(shim, *leader)),
    ))
}

fn inspect_terminal(terminal: i32, foreground_pids: &[i32]) -> ForegroundProcess {
    let device = device_number(terminal);
    let waiter = first_waiter(foreground_pids, &InputChannel::Terminal(device));
    with_modes(waiter, foreground_pids, device)
}

/// The same with the modes of its terminal, which these processes use.
fn with_modes(waiter: ForegroundProcess, pids: &[i32], device: DeviceNumber) -> ForegroundProcess {
    let modes = terminal_modes(&waiter, pids, device);
    ForegroundProcess {
        echo: modes.map(|modes| modes.contains(LocalModes::ECHO)),
        lines: modes.map(|modes| modes.contains(LocalModes::ICANON)),
        ..waiter
    }
}

/// The process of another session that reads or polls the terminal while the foreground waits for
/// it, as below `su USER -c` and `setsid --wait`: it is in no foreground group.
fn inspect_other_sessions(
    stats: &[(i32, ProcessStat)],
    terminal: i32,
) -> Option<ForegroundProcess> {
    let others = stats.iter().filter(|(_, it)| it.terminal != terminal);
    let pids: Vec<i32> = others.map(|(pid, _)| *pid).collect();
    let device = device_number(terminal);
    let waiter = first_waiter(&pids, &InputChannel::ForeignTerminal(device));
    let is_waiting = waiter.reads.is_some() || waiter.polls;
    is_waiting.then(|| with_modes(waiter, &pids, device))
}

/// The process of the tree in the foreground of another terminal than the leader's that reads from
/// it.
fn inspect_inner_terminals(stats: &[(i32, ProcessStat)], outer: i32) -> Option<ForegroundProcess> {
    let inner: BTreeSet<i32> = stats.iter().map(|(_, it)| it.terminal).collect();
    let others = inner.into_iter().filter(|it| *it != 0 && *it != outer);
    others
        .map(|terminal| inspect_terminal(terminal, &foreground_group(stats, terminal)))
        .find(|waiter| waiter.reads.is_some())
}

/// The members of a terminal's foreground group.
fn foreground_group(stats: &[(i32, ProcessStat)], terminal: i32) -> Vec<i32> {
    let in_front = |stat: &ProcessStat| stat.terminal == terminal && stat.group == stat.foreground;
    let found = stats.iter().filter(|(_, stat)| in_front(stat));
    found.map(|(pid, _)| *pid).collect()
}

/// The first that reads, else the first that polls, else the first.
fn first_waiter(pids: &[i32], channel: &InputChannel) -> ForegroundProcess {
    let candidates: Vec<ForegroundProcess> = pids
        .iter()
        .map(|pid| inspect_process(*pid, channel))
        .collect();
    let reading = candidates.iter().find(|it| it.reads.is_some());
    let polling = || candidates.iter().find(|it| it.polls);
    let waiter = reading.or_else(polling).or_else(|| candidates.first());
    waiter.copied().unwrap_or_default()
}

fn inspect_process(pid: i32, channel: &InputChannel) -> ForegroundProcess {
    let mut waiter = ForegroundProcess {
        pid: pid.unsigned_abs(),
        ..ForegroundProcess::default()
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten().take(THREADS_MAX);
    for thread in threads {
        match blocked_on::inspect_thread(pid, &thread.path()) {
            None => {}
            Some(BlockedOn::Read(descriptor)) => {
                waiter.reads = Some(descriptor).filter(|it| channel.is_input(pid, *it));
            }
            Some(BlockedOn::Any {
                descriptors: on,
                no_timeout: forever,
            }) => {
                let is_input = |it: &&u32| channel.is_input(pid, **it);
                let inputs = on.iter().filter(is_input).count();
                // A thread that waits for nothing else reads it next.
                let only = forever && inputs > 0 && inputs == on.len();
                waiter.reads = on.first().copied().filter(|_| only);
                waiter.polls |= inputs > 0;
            }
            Some(BlockedOn::Unknown) => waiter.polls |= channel.is_input(pid, STDIN),
        }
        if waiter.reads.is_some() {
            waiter.polls = false;
            return waiter;
        }
    }
    waiter
}

impl InputChannel {
    /// Whether a descriptor of a process is the execution's input.
    fn is_input(&self, pid: i32, descriptor: u32) -> bool {
        let link = format!("/proc/{pid}/fd/{descriptor}");
        match self {
            Self::Terminal(terminal) => {
                device_of(&link).is_some_and(|it| it == *terminal || it == DEV_TTY)
            }
            Self::ForeignTerminal(terminal) => device_of(&link) == Some(*terminal),
            Self::Pipes(pipes) => fs::read_link(link).is_ok_and(|it| pipes.contains(&it)),
        }
    }
}

/// The pipes whose other ends the shim holds. Where it cannot be inspected, the leader's standard
/// input.
fn input_pipes(shim: &ShimIdentity, leader: i32) -> Vec<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", shim.shim_pid));
    let descriptors = descriptors.into_iter().flatten().flatten();
    let links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    let pipes: Vec<PathBuf> = links.filter(|it| is_pipe(it)).collect();
    if !pipes.is_empty() {
        return pipes;
    }
    let own = fs::read_link(format!("/proc/{leader}/fd/{STDIN}"));
    own.into_iter().filter(|it| is_pipe(it)).collect()
}

fn is_pipe(link: &Path) -> bool {
    link.as_os_str().as_encoded_bytes().starts_with(b"pipe:[")
}

/// Major and minor number of a terminal from the encoding in proc(5)'s `stat`.
const fn device_number(terminal: i32) -> DeviceNumber {
    let bits = terminal.cast_unsigned();
    DeviceNumber {
        major: (bits >> 8) & 0xfff,
        minor: (bits & 0xff) | ((bits >> 12) & 0xf_ff00),
    }
}

/// The number of a device file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeviceNumber {
    major: u32,
    minor: u32,
}

/// The modes of a terminal, read through a descriptor of a foreground process: the one that is
/// read, else a standard one. `/dev/tty` would refer to another terminal here.
fn terminal_modes(
    waiter: &ForegroundProcess,
    foreground_pids: &[i32],
    device: DeviceNumber,
) -> Option<LocalModes> {
    let reader = i32::try_from(waiter.pid).ok()?;
    let read = waiter.reads.map(|descriptor| (reader, descriptor));
    let standard = |pid: i32| (0..3).map(move |descriptor| (pid, descriptor));
    let others = foreground_pids.iter().copied().flat_map(standard);
    read.into_iter()
        .chain(standard(reader))
        .chain(others)
        .find_map(|(pid, descriptor)| terminal_modes_via(pid, descriptor, device))
}

fn terminal_modes_via(pid: i32, descriptor: u32, device: DeviceNumber) -> Option<LocalModes> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    if device_of(&link) != Some(device) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(link, flags, Mode::empty()).ok()?;
    Some(rustix::termios::tcgetattr(&terminal).ok()?.local_modes)
}

fn device_of(link: &str) -> Option<DeviceNumber> {
    let device = fs::metadata(link).ok()?.rdev();
    Some(DeviceNumber {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_terminals() {
        let number = |major, minor| DeviceNumber { major, minor };
        assert_eq!(device_number(0x8803), number(136, 3));
        assert_eq!(device_number(0x10_8803), number(136, 0x103));
    }
}
