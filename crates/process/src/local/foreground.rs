//! Who of a tree waits for the execution's input, by proc(5).
//!
//! Only the execution's own input counts: the terminal, or the pipe its shim writes to. A
//! `cat` behind another command's pipe waits for that command, not for anybody's answer.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ostler_model::evidence::Foreground;
use rustix::fs::{Mode, OFlags};
use rustix::termios::LocalModes;

use super::waits::{self, Wait};
use crate::spec_file::BootStamp;
use crate::sys::proc::Stat;

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
    let in_front = front(stats, stat.terminal);
    // A command in pipes may stand under our own terminal, which it never has in front.
    if stat.terminal != 0 && !in_front.is_empty() {
        let outer = on_terminal(stat.terminal, &in_front);
        // Who hands keys on to a terminal of its own (sudo, script) waits for both sides.
        let inner = || within(stats, stat.terminal);
        return Some(if outer.reads.is_none() && outer.polls {
            inner().unwrap_or(outer)
        } else {
            outer
        });
    }
    let pids: Vec<i32> = stats.iter().map(|(pid, _)| *pid).collect();
    Some(waiting(&pids, &Channel::Pipes(input_pipes(boot, *leader))))
}

fn on_terminal(terminal: i32, in_front: &[i32]) -> Foreground {
    let device = device(terminal);
    let mut seen = waiting(in_front, &Channel::Terminal(device));
    let modes = modes(&seen, in_front, device);
    seen.echo = modes.map(|modes| modes.contains(LocalModes::ECHO));
    seen.lines = modes.map(|modes| modes.contains(LocalModes::ICANON));
    seen
}

/// Who of the tree is in front of another terminal than the leader's and reads from it.
fn within(stats: &[(i32, Stat)], outer: i32) -> Option<Foreground> {
    let inner: BTreeSet<i32> = stats.iter().map(|(_, it)| it.terminal).collect();
    let others = inner.into_iter().filter(|it| *it != 0 && *it != outer);
    others
        .map(|terminal| on_terminal(terminal, &front(stats, terminal)))
        .find(|seen| seen.reads.is_some())
}

/// The members of a terminal's foreground group.
fn front(stats: &[(i32, Stat)], terminal: i32) -> Vec<i32> {
    let in_front = |stat: &Stat| stat.terminal == terminal && stat.group == stat.foreground;
    let found = stats.iter().filter(|(_, stat)| in_front(stat));
    found.map(|(pid, _)| *pid).collect()
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
        match waits::of(pid, &thread.path()) {
            None => {}
            Some(Wait::Read(descriptor)) => {
                seen.reads = Some(descriptor).filter(|it| channel.is_open(pid, *it));
            }
            Some(Wait::Several { on, forever }) => {
                let ours = |it: &&u32| channel.is_open(pid, **it);
                let found = on.iter().filter(ours).count();
                // Who waits for nothing else reads it next.
                let only = forever && found > 0 && found == on.len();
                seen.reads = on.first().copied().filter(|_| only);
                seen.polls |= found > 0;
            }
            Some(Wait::Unknown) => seen.polls |= channel.is_open(pid, INPUT),
        }
        if seen.reads.is_some() {
            seen.polls = false;
            return seen;
        }
    }
    seen
}

impl Channel {
    /// Whether a descriptor of a process is the execution's input.
    fn is_open(&self, pid: i32, descriptor: u32) -> bool {
        let link = format!("/proc/{pid}/fd/{descriptor}");
        match self {
            Self::Terminal(terminal) => {
                device_of(&link).is_some_and(|it| it == *terminal || it == OWN_TERMINAL)
            }
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

/// How a terminal treats what is typed, asked through a descriptor of somebody in front of it:
/// the one that is read, else a standard one. What was opened as `/dev/tty` would be another
/// terminal here.
fn modes(seen: &Foreground, in_front: &[i32], device: (u32, u32)) -> Option<LocalModes> {
    let reader = i32::try_from(seen.pid).ok()?;
    let read = seen.reads.map(|descriptor| (reader, descriptor));
    let standard = |pid: i32| (0..3).map(move |descriptor| (pid, descriptor));
    let others = in_front.iter().copied().flat_map(standard);
    read.into_iter()
        .chain(standard(reader))
        .chain(others)
        .find_map(|(pid, descriptor)| modes_through(pid, descriptor, device))
}

fn modes_through(pid: i32, descriptor: u32, device: (u32, u32)) -> Option<LocalModes> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    if device_of(&link) != Some(device) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(link, flags, Mode::empty()).ok()?;
    Some(rustix::termios::tcgetattr(&terminal).ok()?.local_modes)
}

fn device_of(link: &str) -> Option<(u32, u32)> {
    let device = fs::metadata(link).ok()?.rdev();
    Some((rustix::fs::major(device), rustix::fs::minor(device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_terminals() {
        assert_eq!(device(0x8803), (136, 3));
        assert_eq!(device(0x10_8803), (136, 0x103));
    }
}
