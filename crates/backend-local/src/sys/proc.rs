//! Reads information on processes from proc(5).

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

/// Direct children, zombies included.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    try_children(pid).unwrap_or_else(|| {
        let is_child = |child: &i32| stat(*child).is_some_and(|stat| stat.parent == pid);
        all().into_iter().filter(is_child).collect()
    })
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

/// All descendants, zombies included, without the root. Without the kernel's lists of children, by
/// the parents of all processes.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let Some(children) = try_children(root) else {
        return descendants_by_parents(root);
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

fn descendants_by_parents(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = all()
        .into_iter()
        .filter_map(|pid| Some((pid, stat(pid)?.parent)))
        .collect();
    let mut found = Vec::new();
    let mut todo = vec![root];
    while let Some(parent) = todo.pop() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        for &(pid, _) in children {
            if !found.contains(&pid) && pid != root {
                found.push(pid);
                todo.push(pid);
            }
        }
    }
    found
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
    fn this_process_is_itself_and_no_other() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        assert!(is_same(own, start_time(own)));
        assert!(!is_same(own, start_time(own) + 1));
    }
}
