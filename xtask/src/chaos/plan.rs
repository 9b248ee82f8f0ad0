//! The plan of a round, derived from the seed alone before anything runs.

use std::time::Duration;

use fastrand::Rng;

/// The process that a round kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Daemon,
    /// The zygote (process `ostler-keeper`), which forks shims.
    Keeper,
    /// Both, in direct succession.
    DaemonAndKeeper,
    /// The shim of one command.
    Shim,
}

/// One command of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandPlan {
    /// The number of lines it prints; `None` prints until it is stopped.
    pub(super) lines: Option<u32>,
    pub(super) code: u8,
    /// Whether it leaves a child in a session of its own.
    pub(super) leaves_child: bool,
    /// Whether it has a terminal instead of pipes.
    pub(super) terminal: bool,
}

/// A program in a terminal that receives input before and after the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalPlan {
    pub(super) program: TerminalProgram,
    /// A random word to type, so that the output is unambiguous.
    pub(super) word: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalProgram {
    /// An editor with unsaved text.
    Vim,
    /// A shell with a variable.
    Bash,
}

/// A fault of the host around the kill, repaired before the round is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The file system of the state directory is full.
    DiskFull,
    /// That file system has no free inode.
    InodesFull,
    /// The runtime directory with the sockets is removed, as at logout.
    RuntimeDirectoryRemoved,
    /// Empty cgroup directories are removed by another process.
    CgroupsRemoved,
    /// The daemon may open hardly any further descriptors (`RLIMIT_NOFILE`).
    FewDescriptors,
    /// Another daemon of the same user, with a state directory of its own, is killed, restarted and
    /// stopped.
    Neighbour,
    /// The input of an MCP client ends with a call in flight.
    InputEnds,
}

impl Fault {
    const ALL: [Self; 7] = [
        Self::DiskFull,
        Self::InodesFull,
        Self::RuntimeDirectoryRemoved,
        Self::CgroupsRemoved,
        Self::FewDescriptors,
        Self::Neighbour,
        Self::InputEnds,
    ];

    /// Whether writes to the state directory fail.
    pub(super) const fn is_of_disk(self) -> bool {
        match self {
            Self::DiskFull | Self::InodesFull => true,
            Self::RuntimeDirectoryRemoved
            | Self::CgroupsRemoved
            | Self::FewDescriptors
            | Self::Neighbour
            | Self::InputEnds => false,
        }
    }
}

/// The plan of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RoundPlan {
    /// Its commands; the first is the one whose shim may be killed.
    pub(super) commands: Vec<CommandPlan>,
    /// The program that receives input across the kill.
    pub(super) dialogue: Option<TerminalPlan>,
    /// The commands that an MCP client waits for across the kill, all at once.
    pub(super) calls: Vec<CommandPlan>,
    /// The fault of the host.
    pub(super) fault: Option<Fault>,
    /// The process to kill.
    pub(super) victim: Victim,
    /// The delay after the last start (in a burst, after the first).
    pub(super) delay: Duration,
    /// Whether the kill happens during the starts.
    pub(super) burst: bool,
}

/// The longest delay of a kill after a start, in milliseconds.
const LATEST_KILL_MS: u64 = 150;
/// The most lines of a finite command.
const MOST_LINES: u32 = 600;
/// The most calls of an MCP client in flight.
const MOST_CALLS: u32 = 8;

impl RoundPlan {
    /// Draws the next round of a sequence.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let victim = match rng.u32(0..8) {
            0..4 => Victim::Daemon,
            4 => Victim::DaemonAndKeeper,
            5 => Victim::Keeper,
            _ => Victim::Shim,
        };
        let mut commands: Vec<CommandPlan> =
            (0..rng.u32(2..5)).map(|_| CommandPlan::draw(rng)).collect();
        if victim == Victim::Shim {
            // The command whose shim is killed must still run by then.
            commands[0].lines = None;
        }
        let burst = victim != Victim::Shim && rng.u32(0..4) == 0;
        // In a burst, there may be no program to type to.
        let dialogue = (!burst && rng.u32(0..2) == 0).then(|| TerminalPlan::draw(rng));
        let calls = if !burst && rng.bool() {
            (0..rng.u32(1..=MOST_CALLS))
                .map(|_| CommandPlan::call(rng))
                .collect()
        } else {
            Vec::new()
        };
        // Editors fail on full disks, and the loss of a shim is checked by what it left on disk.
        let quiet = burst || dialogue.is_some() || victim == Victim::Shim;
        let fault = (!quiet && rng.bool()).then(|| Fault::ALL[rng.usize(0..Fault::ALL.len())]);
        Self {
            commands,
            dialogue,
            calls,
            fault,
            victim,
            delay: Duration::from_millis(rng.u64(0..LATEST_KILL_MS)),
            burst,
        }
    }
}

impl TerminalPlan {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            program: if rng.bool() {
                TerminalProgram::Vim
            } else {
                TerminalProgram::Bash
            },
            word: rng.u32(100_000..1_000_000),
        }
    }
}

impl CommandPlan {
    fn draw(rng: &mut Rng) -> Self {
        let endless = rng.u32(0..4) == 0;
        Self {
            lines: (!endless).then(|| rng.u32(0..=MOST_LINES)),
            code: if rng.bool() { 0 } else { rng.u8(1..=99) },
            leaves_child: rng.u32(0..3) == 0,
            terminal: rng.u32(0..3) == 0,
        }
    }

    /// A command whose end a client waits for: it is finite, and has pipes.
    fn call(rng: &mut Rng) -> Self {
        Self {
            lines: Some(rng.u32(0..=MOST_LINES)),
            leaves_child: false,
            terminal: false,
            ..Self::draw(rng)
        }
    }

    /// The command as a script: numbered lines in bursts, so that kills happen between them, within
    /// them and after them.
    pub(super) fn script(&self) -> String {
        let orphan = if self.leaves_child {
            "setsid sleep 300 >/dev/null 2>&1 & "
        } else {
            ""
        };
        let code = self.code;
        let last = self
            .lines
            .map_or_else(String::new, |last| format!("[ $i -lt {last} ]"));
        let condition = if last.is_empty() { ":" } else { last.as_str() };
        format!(
            "{orphan}i=0; while {condition}; do i=$((i+1)); echo \"line $i\"; \
             [ $((i % 25)) -ne 0 ] || sleep 0.02; done; exit {code}"
        )
    }

    /// Its output when it completes.
    pub(super) fn output(lines: u32) -> String {
        (1..=lines).map(|line| format!("line {line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_rounds() {
        let draw = |seed| {
            let mut rng = Rng::with_seed(seed);
            (0..50)
                .map(|_| RoundPlan::draw(&mut rng))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
