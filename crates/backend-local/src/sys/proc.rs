//! Reads information on processes from proc(5) that this crate alone needs.

use std::fs;
use std::io;

use ostler_sys::open_files;
pub(crate) use ostler_sys::proc::{
    ProcessWalk, all, boot_id, children, descendants, environ_variable, is_same, members,
    named_stat, start_time, stat,
};
use ostler_sys::process_stat::ProcessStat;

use super::process_name;

/// The name some runtimes give their first thread, and with it their process.
const ANONYMOUS: &str = "MainThread";
/// The length to which the kernel truncates a name, in bytes.
const NAME_CHARS: usize = 15;

/// The name of a process for display: its name, or, where that is a runtime's name for its first
/// thread (Node.js from 24 on), the base name of its program; without a suffix in parentheses,
/// which may be cut off anywhere.
pub(crate) fn display_name(pid: i32, mut name: String) -> String {
    if name != ANONYMOUS {
        let added = name.find(" (").filter(|at| *at > 0);
        name.truncate(added.unwrap_or(name.len()));
        return name;
    }
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = arguments.split(|byte| *byte == 0).next();
    let base = program.and_then(|it| it.rsplit(|byte| *byte == b'/').next());
    let base = String::from_utf8_lossy(base.unwrap_or_default()).into_owned();
    // The overwritten arguments are a title with spaces, not a path.
    match base.split_ascii_whitespace().next() {
        Some(word) => word.chars().take(NAME_CHARS).collect(),
        None => name,
    }
}

/// As [`is_same`].
///
/// # Errors
/// When no descriptor is left to read by.
pub(crate) fn try_is_same(pid: i32, start: u64) -> io::Result<bool> {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(bytes) => {
            let stat = ProcessStat::parse(&bytes);
            Ok(stat.is_some_and(|stat| stat.start == start && stat.is_alive()))
        }
        Err(error) if open_files::is_exhausted_io(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether the process has the name of a zygote or a shim.
pub(crate) fn has_role(pid: i32) -> bool {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    [process_name::ZYGOTE, process_name::SHIM]
        .iter()
        .any(|role| name.trim_ascii_end() == role.to_bytes())
}

/// The bytes that a process, and those it waited for, have read from storage and written to it.
///
/// # Errors
/// When the kernel does not tell us, as of processes of other users.
pub(crate) fn storage_bytes(pid: i32) -> io::Result<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/io"))?;
    Ok((
        named_number(&text, "read_bytes:"),
        named_number(&text, "write_bytes:"),
    ))
}

fn named_number(text: &str, name: &str) -> u64 {
    let values = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = values.filter_map(|it| it.trim().parse().ok()).next();
    value.unwrap_or_default()
}

/// The bytes that the network namespace of a process has received and sent, without loopback.
pub(crate) fn network_bytes(pid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    Some(interface_bytes(&text))
}

/// The sums over the interfaces of `net/dev` (proc_pid_net(5)): two lines of titles, then for each
/// interface eight numbers of what it received and eight of what it sent, bytes first.
fn interface_bytes(text: &str) -> (u64, u64) {
    const SENT: usize = 8;
    let interfaces = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let others = interfaces.filter(|(name, _)| name.trim() != "lo");
    others.fold((0_u64, 0_u64), |(received, sent), (_, numbers)| {
        let mut numbers = numbers.split_ascii_whitespace();
        let mut next = |skipped| numbers.nth(skipped)?.parse::<u64>().ok();
        let more = (
            next(0).unwrap_or_default(),
            next(SENT - 1).unwrap_or_default(),
        );
        (received.saturating_add(more.0), sent.saturating_add(more.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_s_word_is_no_name() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        assert_eq!(display_name(own, "server".to_owned()), "server");
        let cut = display_name(own, "next-server (v1".to_owned());
        assert_eq!(cut, "next-server");
        let shown = display_name(own, ANONYMOUS.to_owned());
        let program = std::env::args().next().expect("a name");
        let base = program.rsplit('/').next().expect("a part");
        assert!(base.starts_with(&shown) && !shown.is_empty(), "{shown}");
        assert_eq!(display_name(-1, ANONYMOUS.to_owned()), ANONYMOUS);
    }

    #[test]
    fn the_bytes_of_all_interfaces_but_loopback_are_summed() {
        let text = "Inter-|   Receive                      |  Transmit\n face |bytes packets\n    \
             lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n\
             ost:7 1 0 0 0 0 0 0 3 1 0 0 0 0 0 0\n";
        assert_eq!(interface_bytes(text), (107, 23));
        assert_eq!(interface_bytes(""), (0, 0));
        let most = u64::MAX;
        let text = format!("\n\na: {most} 0 0 0 0 0 0 0 {most}\nb: 1 0 0 0 0 0 0 0 x\nc:\nd");
        assert_eq!(interface_bytes(&text), (most, most), "no number is none");
    }
}
