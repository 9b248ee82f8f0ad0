//! Finds the processes that listen on ports of the host, of any user.

use std::collections::BTreeSet;
use std::fs;

use ostler_model::{ExecutionId, PortHolder};

use super::diag::TcpRow;
use super::listen_tables::ListenTables;
use super::tree_listeners::sockets_of;
use crate::shim::EXECUTION_VARIABLE;
use crate::sys::proc;

/// How many characters of a command line are reported.
const COMMAND_CHARS: usize = 200;
/// How many bytes of a command line are read for them.
const COMMAND_BYTES: u64 = 4 * 1024;
/// How many ancestors are searched for the execution a process belongs to.
const ANCESTORS_MAX: usize = 16;

/// A listening socket with a process that holds it.
type PortRow<'a> = (&'a TcpRow, Option<i32>);

/// The holders of these ports, by port. Only root can inspect processes of other users: their
/// sockets have no pid. `execution_of_shim` returns the execution that the shim with a pid runs.
pub(in crate::local) fn port_holders(
    tables: &ListenTables,
    ports: &[u16],
    execution_of_shim: impl Fn(i32) -> Option<ExecutionId>,
) -> Vec<PortHolder> {
    let rows = tables.own_tcp_uncached();
    let port_rows = matching_rows(&rows, ports);
    let describe = |it| describe_holder(it, &execution_of_shim);
    port_rows.into_iter().map(describe).collect()
}

/// Sorted by port; a port that one process listens on several times is reported once.
fn matching_rows<'a>(rows: &'a [TcpRow], ports: &[u16]) -> Vec<PortRow<'a>> {
    let mut rows_owned: Vec<PortRow<'_>> = rows
        .iter()
        .filter(|row| ports.contains(&row.address.port()))
        .map(|row| (row, None))
        .collect();
    find_owners(&mut rows_owned);
    rows_owned.sort_by_key(|(row, pid)| (row.address.port(), *pid, row.address));
    let mut reported = BTreeSet::new();
    rows_owned.retain(|(row, pid)| reported.insert((row.address.port(), *pid)));
    rows_owned
}

fn find_owners(rows: &mut [PortRow<'_>]) {
    let mut missing = rows.len();
    if missing == 0 {
        return;
    }
    let mut pids = proc::all();
    // Of the processes that share a socket, the oldest has usually opened it.
    pids.sort_unstable();
    for pid in pids {
        if missing == 0 {
            return;
        }
        let sockets = sockets_of(pid);
        for (row, owner) in rows.iter_mut() {
            if owner.is_none() && sockets.iter().any(|(it, _)| *it == row.inode) {
                *owner = Some(pid);
                missing -= 1;
            }
        }
    }
}

fn describe_holder(
    (row, pid): PortRow<'_>,
    execution_of_shim: impl Fn(i32) -> Option<ExecutionId>,
) -> PortHolder {
    let name = pid.and_then(|pid| {
        let (_, name) = proc::named_stat(pid)?;
        Some(proc::display_name(pid, name))
    });
    PortHolder {
        address: row.address,
        pid: pid.map(i32::unsigned_abs),
        process: escape(&name.unwrap_or_default()),
        command: pid.map(command_line).unwrap_or_default(),
        execution: pid.and_then(|pid| execution_of(pid, execution_of_shim)),
    }
}

/// The arguments of a process, separated by spaces.
fn command_line(pid: i32) -> String {
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
    escape(words.join(" ").trim_end())
}

/// Makes a text one line, without control characters, and limits its length.
fn escape(text: &str) -> String {
    let visible = |it: char| -> Box<dyn Iterator<Item = char>> {
        if it.is_control() {
            Box::new(it.escape_default())
        } else {
            Box::new(std::iter::once(it))
        }
    };
    text.chars().flat_map(visible).take(COMMAND_CHARS).collect()
}

/// The execution a process belongs to. Servers that overwrite their environment with a title have
/// ancestors that do not, and a shim above all of them.
fn execution_of(
    pid: i32,
    execution_of_shim: impl Fn(i32) -> Option<ExecutionId>,
) -> Option<ExecutionId> {
    let mut ancestor = pid;
    for _ in 0..ANCESTORS_MAX {
        if ancestor <= 1 {
            return None;
        }
        if proc::has_role(ancestor) {
            return execution_of_shim(ancestor);
        }
        if let Some(id) = proc::environ_variable(ancestor, EXECUTION_VARIABLE.as_bytes()) {
            return std::str::from_utf8(&id).ok()?.parse().ok();
        }
        ancestor = proc::stat(ancestor)?.parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_holds_our_own_ports_is_us() {
        let four = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = four.local_addr().expect("bound").port();
        let _six = TcpListener::bind(("::1", port));
        let free = TcpListener::bind("127.0.0.1:0").expect("bound");
        let unused = free.local_addr().expect("bound").port();
        drop(free);
        let rows = ListenTables::default().own_tcp_uncached();
        let found = matching_rows(&rows, &[port, unused]);
        let [found] = found.as_slice() else {
            panic!("one holder, not {found:?}");
        };
        let holder = describe_holder(*found, |_| None);
        assert_eq!(holder.address.port(), port);
        assert_eq!(holder.pid, Some(std::process::id()));
        assert!(!holder.process.is_empty() && !holder.command.is_empty());
    }

    #[test]
    fn lines_are_escaped_and_clipped() {
        assert_eq!(escape("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
        assert_eq!(escape(&"x".repeat(1_000)).len(), COMMAND_CHARS);
    }
}
