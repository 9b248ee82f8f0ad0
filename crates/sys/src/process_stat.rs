//! What the kernel reports of a process in one line: proc_pid_stat(5).

/// The fields of `/proc/<pid>/stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The letter of its state, for example `b'S'`.
    pub state: u8,
    /// The pid of its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// The device number of its terminal, 0 without one.
    pub terminal: i32,
    /// The foreground group of that terminal, -1 without one.
    pub foreground: i32,
    /// Clock ticks of user and system time.
    pub cpu_ticks: u64,
    /// The same of its children that ended and were waited for, and of theirs.
    pub children_ticks: u64,
    /// Its start time, in clock ticks since boot.
    pub start: u64,
    /// Its pages in memory.
    pub resident_pages: u64,
}

impl ProcessStat {
    /// Parses the file's content; none where a field is missing.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // The name is in parentheses and may contain anything, parentheses too.
        let after = bytes.iter().rposition(|&byte| byte == b')')? + 1;
        let text = std::str::from_utf8(bytes.get(after..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        // Index 0 is field 4 of proc_pid_stat(5).
        let numbers: Vec<i64> = fields
            .map_while(|field| field.parse().ok())
            .take(21)
            .collect();
        let int = |field: usize| i32::try_from(*numbers.get(field - 4)?).ok();
        let count = |field: usize| u64::try_from(*numbers.get(field - 4)?).ok();
        Some(Self {
            state,
            parent: int(4)?,
            group: int(5)?,
            terminal: int(7)?,
            foreground: int(8)?,
            cpu_ticks: count(14)? + count(15)?,
            children_ticks: count(16)? + count(17)?,
            start: count(22)?,
            resident_pages: count(24)?,
        })
    }

    /// Whether it is neither zombie nor dead.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }

    /// Whether it waits in the kernel and no signal reaches it: usually for a disk.
    #[must_use]
    pub const fn waits_for_disk(&self) -> bool {
        matches!(self.state, b'D')
    }

    /// Whether a signal has stopped it.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.state, b'T')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_skipped() {
        let line = b"77 (a) b (c)) S 1 76 76 0 -1 4194560 1 0 0 0 5 6 7 8 20 0 1 0 4242 1 2 3";
        let stat = ProcessStat::parse(line).expect("well-formed");
        assert_eq!(
            stat,
            ProcessStat {
                state: b'S',
                parent: 1,
                group: 76,
                terminal: 0,
                foreground: -1,
                cpu_ticks: 11,
                children_ticks: 15,
                start: 4242,
                resident_pages: 2,
            }
        );
    }
}
