//! What happens in a round, decided from the seed alone, before anything runs.

use std::time::Duration;

use fastrand::Rng;

/// Whom a round kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    /// The engine.
    Daemon,
    /// The mother of shims.
    Keeper,
    /// Both, one right after the other.
    DaemonAndKeeper,
    /// The owner of one command's pipes.
    Shim,
}

/// One command of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandPlan {
    /// How many lines it prints; `None` until it is stopped.
    pub(super) lines: Option<u32>,
    /// The status it returns after its last line.
    pub(super) code: u8,
    /// Whether it leaves a child in a session of its own beside it.
    pub(super) strays: bool,
    /// Whether it has a terminal instead of pipes.
    pub(super) terminal: bool,
}

/// A program in a terminal that is talked to before the kill and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalPlan {
    /// Which.
    pub(super) program: TerminalProgram,
    /// What is said, so that no other is taken for it.
    pub(super) word: u32,
}

/// A program that can be talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalProgram {
    /// An editor with a text that is not saved yet.
    Vim,
    /// A shell with a variable of its own.
    Bash,
}

/// What else goes wrong around the kill, and is over before the round is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The file system of the state directory is full.
    DiskFull,
    /// That file system has no inode left.
    InodesFull,
    /// The runtime directory with the sockets is removed, as a logout does it.
    RuntimeDirectoryRemoved,
    /// Cgroup directories in which nothing runs are removed by somebody else.
    CgroupsRemoved,
    /// The daemon may open hardly any more descriptors (`RLIMIT_NOFILE`).
    FewDescriptors,
    /// Another daemon of the same user, with a state directory of its own, is killed, comes again
    /// and ends.
    Neighbour,
    /// An MCP client's input ends with a call in flight.
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

    /// Whether the disk of the state directory refuses.
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

/// One round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RoundPlan {
    /// Its commands; the first is the one that may lose its shim.
    pub(super) commands: Vec<CommandPlan>,
    /// Who is talked to across the kill.
    pub(super) dialogue: Option<TerminalPlan>,
    /// Commands an MCP client waits for across the kill, all at once.
    pub(super) calls: Vec<CommandPlan>,
    /// What goes wrong besides.
    pub(super) fault: Option<Fault>,
    /// Who dies.
    pub(super) victim: Victim,
    /// How long after the last start (or, in a burst, after the first).
    pub(super) delay: Duration,
    /// Whether the kill falls among the starts.
    pub(super) burst: bool,
}

/// Latest moment of a kill after a start, in milliseconds.
const LATEST_KILL_MS: u64 = 150;
/// Most lines of a finite command.
const MOST_LINES: u32 = 600;
/// Most calls of an MCP client in flight.
const MOST_CALLS: u32 = 8;

impl RoundPlan {
    /// The next round of a sequence.
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
            // The one whose shim dies must still run by then.
            commands[0].lines = None;
        }
        let burst = victim != Victim::Shim && rng.u32(0..4) == 0;
        // What is said in a burst may be said to nobody.
        let dialogue = (!burst && rng.u32(0..2) == 0).then(|| TerminalPlan::draw(rng));
        let calls = if !burst && rng.bool() {
            (0..rng.u32(1..=MOST_CALLS))
                .map(|_| CommandPlan::call(rng))
                .collect()
        } else {
            Vec::new()
        };
        // Editors do not like full disks, and a shim's loss is judged by what it left on disk.
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
            strays: rng.u32(0..3) == 0,
            terminal: rng.u32(0..3) == 0,
        }
    }

    /// A command whose end somebody waits for: it has one, and pipes.
    fn call(rng: &mut Rng) -> Self {
        Self {
            lines: Some(rng.u32(0..=MOST_LINES)),
            strays: false,
            terminal: false,
            ..Self::draw(rng)
        }
    }

    /// The command as a script: numbered lines in bursts, so that kills fall between them,
    /// within them and after them.
    pub(super) fn script(&self) -> String {
        let stray = if self.strays {
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
            "{stray}i=0; while {condition}; do i=$((i+1)); echo \"line $i\"; \
             [ $((i % 25)) -ne 0 ] || sleep 0.02; done; exit {code}"
        )
    }

    /// What it prints when it runs to its end.
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
