//! Reads information on processes from proc(5).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::sync::OnceLock;

use ostler_sys::open_files;
use ostler_sys::process_stat::ProcessStat;

use super::process_name;

/// The most processes of one walk; the caller repeats the walk for a larger tree.
const WALK_MAX: usize = 65_536;
/// The name some runtimes give their first thread, and with it their process.
const ANONYMOUS: &str = "MainThread";
/// The length to which the kernel truncates a name, in bytes.
const NAME_CHARS: usize = 15;
/// How many bytes of an environment are searched.
const ENVIRON_BYTES: u64 = 2 * 1024 * 1024;

/// The id of this boot of the machine.
pub(crate) fn boot_id() -> String {
    static READ: OnceLock<String> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    READ.get_or_init(|| read().trim().to_owned()).clone()
}

/// Reads the fields of one process; none when it does not exist.
pub(crate) fn stat(pid: i32) -> Option<ProcessStat> {
    ProcessStat::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The same with the process's name, at most 15 bytes of it.
pub(crate) fn named_stat(pid: i32) -> Option<(ProcessStat, String)> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = ProcessStat::parse(&bytes)?;
    let name = memchr::memchr(b'(', &bytes)? + 1..memchr::memrchr(b')', &bytes)?;
    let name = String::from_utf8_lossy(bytes.get(name)?).into_owned();
    Some((stat, name))
}

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

/// The start time of a process, 0 when it does not exist.
pub(crate) fn start_time(pid: i32) -> u64 {
    stat(pid).map_or(0, |stat| stat.start)
}

/// Whether the process with this pid has this start time, and is not a zombie.
pub(crate) fn is_same(pid: i32, start: u64) -> bool {
    stat(pid).is_some_and(|stat| stat.start == start && stat.is_alive())
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

/// The pids of all processes.
pub(crate) fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// The processes of the host by parent and by a variable of their environments, for one inspection
/// of any number of trees: where `/proc` has to be read as a whole, that is done once.
#[derive(Debug, Default)]
pub(crate) struct ProcessWalk {
    /// Each process with its parent.
    parents: OnceCell<Vec<(i32, i32)>>,
    /// The processes with each value of the variable that was asked for.
    by_value: OnceCell<HashMap<Vec<u8>, Vec<i32>>>,
}

impl ProcessWalk {
    /// Direct children, zombies included.
    pub(crate) fn children(&self, pid: i32) -> Vec<i32> {
        try_children(pid).unwrap_or_else(|| {
            let children = self.parents().iter().filter(|(_, of)| *of == pid);
            children.map(|(child, _)| *child).collect()
        })
    }

    /// All descendants, zombies included, without the root. Without the kernel's lists of children,
    /// by the parents of all processes.
    pub(crate) fn descendants(&self, root: i32) -> Vec<i32> {
        let mut found = Vec::new();
        let Some(children) = try_children(root) else {
            return self.descendants_by_parents(root);
        };
        let mut todo = children;
        while let Some(pid) = todo.pop() {
            if found.len() >= WALK_MAX {
                break;
            }
            found.push(pid);
            todo.extend(try_children(pid).unwrap_or_default());
        }
        found
    }

    /// Processes whose initial environment has this value for a variable, the same one at each call.
    pub(crate) fn with_variable(&self, name: &[u8], value: &[u8]) -> Vec<i32> {
        let walk = || {
            let mut by_value: HashMap<Vec<u8>, Vec<i32>> = HashMap::new();
            for pid in all() {
                if let Some(found) = environ_variable(pid, name) {
                    by_value.entry(found).or_default().push(pid);
                }
            }
            by_value
        };
        let by_value = self.by_value.get_or_init(walk);
        by_value.get(value).cloned().unwrap_or_default()
    }

    fn parents(&self) -> &[(i32, i32)] {
        self.parents.get_or_init(|| {
            let pids = all().into_iter();
            pids.filter_map(|pid| Some((pid, stat(pid)?.parent)))
                .collect()
        })
    }

    fn descendants_by_parents(&self, root: i32) -> Vec<i32> {
        let mut found = Vec::new();
        let mut todo = vec![root];
        while let Some(parent) = todo.pop() {
            let children = self.parents().iter().filter(|(_, of)| *of == parent);
            for &(pid, _) in children {
                if !found.contains(&pid) && pid != root {
                    found.push(pid);
                    todo.push(pid);
                }
            }
        }
        found
    }
}

/// Direct children, zombies included.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    ProcessWalk::default().children(pid)
}

fn try_children(pid: i32) -> Option<Vec<i32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("children")).ok()?;
        found.extend(
            text.split_ascii_whitespace()
                .filter_map(|word| word.parse::<i32>().ok()),
        );
    }
    Some(found)
}

/// All descendants, as [`ProcessWalk::descendants`] finds them.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    ProcessWalk::default().descendants(root)
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

/// Whether the environment a process was started with contains `variable` (`NAME=value`).
fn has_variable(pid: i32, variable: &[u8]) -> bool {
    environment(pid)
        .split(|&byte| byte == 0)
        .any(|word| word == variable)
}

/// The value of a variable in the environment a process was started with.
pub(crate) fn environ_variable(pid: i32, name: &[u8]) -> Option<Vec<u8>> {
    let environment = environment(pid);
    let mut words = environment.split(|&byte| byte == 0);
    words.find_map(|word| {
        let value = word.strip_prefix(name)?.strip_prefix(b"=")?;
        Some(value.to_vec())
    })
}

/// The environment a process was started with; empty where it may not be read.
fn environment(pid: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/environ"));
    match file.and_then(|file| file.take(ENVIRON_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}

/// Live processes whose initial environment contains `variable`, or that are in process group
/// `group`.
pub(crate) fn members(variable: &[u8], group: Option<i32>) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let belongs = |pid: &i32| {
        let Some(stat) = stat(*pid) else {
            return false;
        };
        stat.is_alive() && (group == Some(stat.group) || has_variable(*pid, variable))
    };
    all()
        .into_iter()
        .filter(|pid| *pid != own && *pid > 1)
        .filter(belongs)
        .collect()
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

    #[test]
    fn one_walk_finds_what_two_do() {
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .env("OSTLER_WALK_TEST", "yes")
            .spawn()
            .expect("it starts");
        let pid = i32::try_from(child.id()).expect("a pid");
        let own = i32::try_from(std::process::id()).expect("a pid");
        let walk = ProcessWalk::default();
        let found = walk.with_variable(b"OSTLER_WALK_TEST", b"yes");
        let none = walk.with_variable(b"OSTLER_WALK_TEST", b"no");
        let by_lists = walk.descendants(own).contains(&pid);
        let by_parents = walk.descendants_by_parents(own).contains(&pid);
        child.kill().expect("ended");
        child.wait().expect("reaped");
        assert_eq!((found, none), (vec![pid], Vec::new()));
        assert!(by_lists && by_parents);
    }

    #[test]
    fn this_process_is_itself_and_no_other() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        assert!(is_same(own, start_time(own)));
        assert!(!is_same(own, start_time(own) + 1));
    }
}
