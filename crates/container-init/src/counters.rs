//! The counters of the container's cgroup, as the container sees it: the unified hierarchy, or the
//! controllers of version 1 side by side (cgroups(7)).

use std::fs;

use ostler_model::LimitKind;

/// `(file, key)` of how many processes the kernel killed for the container's memory.
const OOM_KILLS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory.events", "oom_kill"),
    ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
];
/// `(file, key)` of how often a process could not be created for the limit on their number.
const PIDS_REFUSED: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/pids.events", "max"),
    ("/sys/fs/cgroup/pids/pids.events", "max"),
];

/// The counters at one time; 0 where the kernel has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    oom_kills: u64,
    pids_refused: u64,
}

impl Counters {
    /// Reads them.
    pub(crate) fn read() -> Self {
        Self {
            oom_kills: first(&OOM_KILLS),
            pids_refused: first(&PIDS_REFUSED),
        }
    }

    /// How many processes were killed for memory since these.
    pub(crate) const fn oom_kills_until(self, now: Self) -> u64 {
        now.oom_kills.saturating_sub(self.oom_kills)
    }

    /// The limits that were reached since these.
    pub(crate) fn limits_until(self, now: Self) -> Vec<LimitKind> {
        let memory = (now.oom_kills > self.oom_kills).then_some(LimitKind::Memory);
        let pids = (now.pids_refused > self.pids_refused).then_some(LimitKind::Pids);
        memory.into_iter().chain(pids).collect()
    }
}

/// The value of the first counter that exists.
fn first(files: &[(&str, &str)]) -> u64 {
    let mut texts = files
        .iter()
        .filter_map(|(file, key)| Some((fs::read_to_string(file).ok()?, *key)));
    let value = texts.find_map(|(text, key)| number(&text, key));
    value.unwrap_or(0)
}

/// The number after `key` on a line of its own.
fn number(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(name, _)| *name == key)?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_names() {
        let legacy = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(number(legacy, "oom_kill"), Some(3));
        let unified = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n";
        assert_eq!(number(unified, "oom_kill"), Some(1));
        assert_eq!(number(unified, "oom_kills"), None);
        assert_eq!(number("oom_kill x", "oom_kill"), None);
    }

    #[test]
    fn what_grew_was_reached() {
        let before = Counters {
            oom_kills: 1,
            pids_refused: 5,
        };
        let after = Counters {
            oom_kills: 3,
            pids_refused: 5,
        };
        assert_eq!(before.limits_until(after), [LimitKind::Memory]);
        assert_eq!(before.oom_kills_until(after), 2);
        assert_eq!(after.limits_until(after), []);
    }
}
