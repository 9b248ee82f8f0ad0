//! Processes as proc(5) shows them: their fields, their children, the environment they were started
//! with.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::sync::OnceLock;

use crate::process_stat::ProcessStat;

/// The most processes of one walk; the caller repeats the walk for a larger tree.
const WALK_MAX: usize = 65_536;
/// How many bytes of an environment are searched.
const ENVIRON_BYTES: u64 = 2 * 1024 * 1024;

/// The id of this boot of the machine.
pub fn boot_id() -> String {
    static READ: OnceLock<String> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    READ.get_or_init(|| read().trim().to_owned()).clone()
}

/// Reads the fields of one process; none when it does not exist.
pub fn stat(pid: i32) -> Option<ProcessStat> {
    ProcessStat::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The same with the process's name, at most 15 bytes of it.
pub fn named_stat(pid: i32) -> Option<(ProcessStat, String)> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = ProcessStat::parse(&bytes)?;
    let begin = bytes.iter().position(|byte| *byte == b'(')? + 1;
    let end = bytes.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(bytes.get(begin..end)?).into_owned();
    Some((stat, name))
}

/// The start time of a process, 0 when it does not exist.
pub fn start_time(pid: i32) -> u64 {
    stat(pid).map_or(0, |stat| stat.start)
}

/// Whether the process with this pid has this start time, and is not a zombie.
pub fn is_same(pid: i32, start: u64) -> bool {
    stat(pid).is_some_and(|stat| stat.start == start && stat.is_alive())
}

/// Whether no thread of a process can run: each has stopped or ended. True where there is no such
/// process.
pub fn has_stopped(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    threads.flatten().all(|thread| {
        let fields = fs::read(thread.path().join("stat"));
        let stat = fields.ok().and_then(|bytes| ProcessStat::parse(&bytes));
        stat.is_none_or(|stat| stat.is_stopped() || !stat.is_alive())
    })
}

/// The pids of all processes.
pub fn all() -> Vec<i32> {
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
pub struct ProcessWalk {
    /// Each process with its parent.
    parents: OnceCell<Vec<(i32, i32)>>,
    /// The processes with each value of the variable that was asked for.
    by_value: OnceCell<HashMap<Vec<u8>, Vec<i32>>>,
}

impl ProcessWalk {
    /// Direct children, zombies included.
    pub fn children(&self, pid: i32) -> Vec<i32> {
        try_children(pid).unwrap_or_else(|| {
            let children = self.parents().iter().filter(|(_, of)| *of == pid);
            children.map(|(child, _)| *child).collect()
        })
    }

    /// All descendants, zombies included, without the root. Without the kernel's lists of children,
    /// by the parents of all processes.
    pub fn descendants(&self, root: i32) -> Vec<i32> {
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
    pub fn with_variable(&self, name: &[u8], value: &[u8]) -> Vec<i32> {
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
pub fn children(pid: i32) -> Vec<i32> {
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
pub fn descendants(root: i32) -> Vec<i32> {
    ProcessWalk::default().descendants(root)
}

/// Whether the environment a process was started with contains `variable` (`NAME=value`).
fn has_variable(pid: i32, variable: &[u8]) -> bool {
    environment(pid)
        .split(|&byte| byte == 0)
        .any(|word| word == variable)
}

/// The value of a variable in the environment a process was started with.
pub fn environ_variable(pid: i32, name: &[u8]) -> Option<Vec<u8>> {
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
pub fn members(variable: &[u8], group: Option<i32>) -> Vec<i32> {
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
    fn one_walk_finds_what_two_do() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let value = own.to_string();
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .env("OSTLER_WALK_TEST", &value)
            .spawn()
            .expect("it starts");
        let pid = i32::try_from(child.id()).expect("a pid");
        // For a moment during execve(2), a process shows no environment.
        while fs::read(format!("/proc/{pid}/environ")).is_ok_and(|it| it.is_empty()) {
            std::thread::yield_now();
        }
        let walk = ProcessWalk::default();
        let found = walk.with_variable(b"OSTLER_WALK_TEST", value.as_bytes());
        let none = walk.with_variable(b"OSTLER_WALK_TEST", b"no");
        let by_lists = walk.descendants(own).contains(&pid);
        let by_parents = walk.descendants_by_parents(own).contains(&pid);
        child.kill().expect("ended");
        child.wait().expect("reaped");
        assert_eq!((found, none), (vec![pid], Vec::new()));
        assert!(by_lists && by_parents);
    }

    #[test]
    fn a_process_has_stopped_once_its_threads_have() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("it starts");
        let pid = i32::try_from(child.id()).expect("a pid");
        assert!(!has_stopped(pid));
        crate::signals::kill(pid, libc::SIGSTOP).expect("stopped");
        while !has_stopped(pid) {
            std::thread::yield_now();
        }
        crate::signals::kill(pid, libc::SIGCONT).expect("continued");
        while has_stopped(pid) {
            std::thread::yield_now();
        }
        child.kill().expect("ended");
        child.wait().expect("reaped");
        assert!(has_stopped(pid));
    }

    #[test]
    fn this_process_is_itself_and_no_other() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        assert!(is_same(own, start_time(own)));
        assert!(!is_same(own, start_time(own) + 1));
    }
}
