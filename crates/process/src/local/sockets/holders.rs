//! Who holds ports of the host, whosever they are.

use std::collections::BTreeSet;
use std::fs;

use ostler_model::{ExecutionId, Holder};

use super::diag::TcpRow;
use super::listing::sockets_of;
use crate::local::members;
use crate::local::supply::Supply;
use crate::shim::EXECUTION_VARIABLE;
use crate::sys::proc;

/// Characters of a command line that are told.
const COMMAND_CHARS: usize = 200;
/// Bytes of a command line that are read for them.
const COMMAND_BYTES: u64 = 4 * 1024;
/// Ancestors that are asked whose a process is.
const ANCESTORS_MAX: usize = 16;

/// A listening socket with one who holds it.
type Owned<'a> = (&'a TcpRow, Option<i32>);

/// The holders of these ports, by port. Processes of other users cannot be looked at but by
/// root: their sockets have no pid.
pub(in crate::local) fn holders(supply: &Supply, ports: &[u16]) -> Vec<Holder> {
    let rows = supply.tables.own();
    let owned = owned(&rows, ports);
    let holder = |it| holder(it, |shim| members::carried_by(supply, shim));
    owned.into_iter().map(holder).collect()
}

/// By port; a port that one process listens on several times is told once.
fn owned<'a>(rows: &'a [TcpRow], ports: &[u16]) -> Vec<Owned<'a>> {
    let mut owned: Vec<Owned<'_>> = rows
        .iter()
        .filter(|row| ports.contains(&row.address.port()))
        .map(|row| (row, None))
        .collect();
    find_owners(&mut owned);
    owned.sort_by_key(|(row, pid)| (row.address.port(), *pid, row.address));
    let mut told = BTreeSet::new();
    owned.retain(|(row, pid)| told.insert((row.address.port(), *pid)));
    owned
}

fn find_owners(owned: &mut [Owned<'_>]) {
    let mut missing = owned.len();
    if missing == 0 {
        return;
    }
    let mut pids = proc::all();
    // Of those who share a socket, who opened it is usually the oldest.
    pids.sort_unstable();
    for pid in pids {
        if missing == 0 {
            return;
        }
        let sockets = sockets_of(pid);
        for (row, owner) in owned.iter_mut() {
            if owner.is_none() && sockets.iter().any(|(it, _)| *it == row.inode) {
                *owner = Some(pid);
                missing -= 1;
            }
        }
    }
}

fn holder((row, pid): Owned<'_>, carried_by: impl Fn(i32) -> Option<ExecutionId>) -> Holder {
    let name = pid.and_then(|pid| {
        let (_, name) = proc::named_stat(pid)?;
        Some(proc::shown_name(pid, name))
    });
    Holder {
        address: row.address,
        pid: pid.map(i32::unsigned_abs),
        process: escaped(&name.unwrap_or_default()),
        command: pid.map(command).unwrap_or_default(),
        execution: pid.and_then(|pid| execution(pid, carried_by)),
    }
}

/// The arguments of a process, with blanks between them.
fn command(pid: i32) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/cmdline"));
    if let Ok(file) = file {
        let _as_far_as_it_can_be_read = file.take(COMMAND_BYTES).read_to_end(&mut bytes);
    }
    let words: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    escaped(words.join(" ").trim_end())
}

/// On one line, without control characters, and not too long.
fn escaped(text: &str) -> String {
    let visible = |it: char| -> Box<dyn Iterator<Item = char>> {
        if it.is_control() {
            Box::new(it.escape_default())
        } else {
            Box::new(std::iter::once(it))
        }
    };
    text.chars().flat_map(visible).take(COMMAND_CHARS).collect()
}

/// The execution a process belongs to. Servers that write their state over their environment
/// have ancestors that do not, and a shim above all of them.
fn execution(pid: i32, carried_by: impl Fn(i32) -> Option<ExecutionId>) -> Option<ExecutionId> {
    let mut at = pid;
    for _ in 0..ANCESTORS_MAX {
        if at <= 1 {
            return None;
        }
        if proc::has_role(at) {
            return carried_by(at);
        }
        if let Some(id) = proc::variable(at, EXECUTION_VARIABLE.as_bytes()) {
            return std::str::from_utf8(&id).ok()?.parse().ok();
        }
        at = proc::stat(at)?.parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::local::sockets::Tables;

    #[test]
    fn who_holds_our_own_ports_is_us() {
        let four = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = four.local_addr().expect("bound").port();
        let _six = TcpListener::bind(("::1", port));
        let free = TcpListener::bind("127.0.0.1:0").expect("bound");
        let unused = free.local_addr().expect("bound").port();
        drop(free);
        let rows = Tables::default().own();
        let found = owned(&rows, &[port, unused]);
        let [found] = found.as_slice() else {
            panic!("one holder, not {found:?}");
        };
        let holder = holder(*found, |_| None);
        assert_eq!(holder.address.port(), port);
        assert_eq!(holder.pid, Some(std::process::id()));
        assert!(!holder.process.is_empty() && !holder.command.is_empty());
    }

    #[test]
    fn lines_are_escaped_and_clipped() {
        assert_eq!(escaped("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
        assert_eq!(escaped(&"x".repeat(1_000)).len(), COMMAND_CHARS);
    }
}
