//! What each level costs, for `cargo xtask bench isolation`.
//!
//! `starts WORKSPACE` reads one order per line, `WHAT COUNT`, and answers each with a line of
//! durations in nanoseconds, from the wish for `true` to its end: `bare` by `posix_spawn`,
//! `basic`, `medium` and `high` as the sandbox does it, everything a level needs included, and
//! `bwrap` with the same walls as far as it has them.

use std::error::Error;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_model::ending::WaitStatus;
use ostler_model::{Confinement, Limits, Text};
use ostler_sandbox::birth::wait::{self, Waited};
use ostler_sandbox::birth::{CArray, Launch, Pages, STACK_BYTES, spawn};
use ostler_sandbox::cgroup::{Entry, Helpers, ShimName, Slot};
use ostler_sandbox::{BuildAt, Cell, CellPlan, Host, Walls};
use rustix::event::{PollFd, PollFlags};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is started.
const PROGRAM: &CStr = c"/bin/true";
/// Processes that a command of level medium may have, by default.
const PIDS: u32 = 4_096;

/// What every birth needs.
struct Tools {
    workspace: CString,
    argv: CArray,
    env: CArray,
    null: File,
}

/// Everything that is kept from start to start, as a shim keeps it.
struct Starter {
    tools: Tools,
    stack: Pages,
    slot: Slot,
    confinement: Confinement,
}

fn main() -> Outcome<()> {
    let workspace = std::env::args().nth(1).ok_or("starts WORKSPACE")?;
    let mut starter = Starter::new(&workspace)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (what, count) = line.split_once(' ').ok_or("WHAT COUNT")?;
        let took: Outcome<Vec<String>> = (0..count.parse::<u32>()?)
            .map(|_| Ok(starter.timed(what)?.as_nanos().to_string()))
            .collect();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", took?.join(" "))?;
        out.flush()?;
    }
    starter.slot.abandon();
    Ok(())
}

impl Starter {
    fn new(workspace: &str) -> Outcome<Self> {
        let (subtree, _) = ostler_sandbox::probe(false);
        let mut slot = subtree.slot(ShimName {
            pid: i32::try_from(std::process::id())?,
            start: 0,
            serial: 0,
        });
        slot.hold_shim();
        Ok(Self {
            tools: Tools {
                workspace: CString::new(workspace)?,
                argv: CArray::new(vec![c"true".into()]),
                env: CArray::new(vec![c"PATH=/usr/bin:/bin".into()]),
                null: File::options().read(true).write(true).open("/dev/null")?,
            },
            stack: Pages::map(STACK_BYTES)?,
            slot,
            confinement: Confinement {
                workspace: Some(Text::from(workspace.to_owned())),
                ..Confinement::default()
            },
        })
    }

    fn timed(&mut self, what: &str) -> Outcome<Duration> {
        let begin = Instant::now();
        match what {
            "bare" => ended(&mut Command::new("/bin/true"))?,
            "bwrap" => ended(&mut bubblewrap(self.tools.workspace.to_str()?))?,
            "basic" => self.tools.run(&Entry::none(), None, &mut self.stack)?,
            "medium" => {
                let entry = self.slot.prepare(&limits(), &Helpers::default())?;
                self.tools.run(&entry, None, &mut self.stack)?;
            }
            "high" => self.high()?,
            _ => return Err(format!("unknown: {what}").into()),
        }
        Ok(begin.elapsed())
    }

    /// Nothing is kept from one to the next: the view is looked at, compiled and built anew.
    fn high(&mut self) -> Outcome<()> {
        let plan = CellPlan::compile(&self.confinement, &Host::read(&self.confinement))?;
        let at = BuildAt {
            cgroup: self.slot.clear()?,
            ..BuildAt::default()
        };
        let mut cell = Cell::build(&plan, at)?;
        let helpers = Helpers {
            pids: &[cell.pid()],
            inside: 1,
        };
        let entry = self.slot.prepare(&limits(), &helpers)?;
        let walls = Walls::new(&self.confinement);
        let within = Some((&cell, &walls));
        self.tools.run(&entry, within, &mut self.stack)?;
        cell.leader_ended();
        let mut gone = [PollFd::from_borrowed_fd(cell.pidfd(), PollFlags::IN)];
        rustix::event::poll(&mut gone, None)?;
        wait::reap_blocking(cell.pid());
        Ok(())
    }
}

fn limits() -> Limits {
    Limits {
        pids: Some(PIDS),
        ..Limits::default()
    }
}

impl Tools {
    fn run(
        &self,
        entry: &Entry<'_>,
        within: Option<(&Cell, &Walls)>,
        stack: &mut Pages,
    ) -> Outcome<()> {
        let joins: Vec<BorrowedFd<'_>> = entry.joins().collect();
        let launch = Launch {
            program: PROGRAM,
            pinned: None,
            argv: &self.argv,
            env: &self.env,
            cwd: &self.workspace,
            stdio: [self.null.as_fd(); 3],
            terminal: false,
            joins: &joins,
            cgroup: entry.birthplace(),
            dies_with_parent: true,
            ignored: &[],
            soft_open_files: None,
            rlimits: &[],
            cell: within.map(|(cell, _)| cell),
            walls: within.map(|(_, walls)| walls),
        };
        let born = spawn(&launch, stack).map_err(|failure| format!("{failure:?}"))?;
        let mut ended = [PollFd::new(&born.pidfd, PollFlags::IN)];
        rustix::event::poll(&mut ended, None)?;
        match wait::reap(born.pid) {
            Waited::Reaped(it) if it.status == WaitStatus::Code(0) => Ok(()),
            other @ (Waited::Reaped(_) | Waited::Living | Waited::None) => {
                Err(format!("{other:?}").into())
            }
        }
    }
}

/// By `posix_spawn`, as long as nothing special is asked.
fn ended(command: &mut Command) -> Outcome<()> {
    let streams = command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = streams.stderr(Stdio::null()).status()?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| status.to_string().into())
}

fn bubblewrap(workspace: &str) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]);
    command.args(["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--tmpfs", "/run"]);
    command.args(["--proc", "/proc", "--dev", "/dev"]);
    command.args(["--bind", workspace, workspace, "--", "/bin/true"]);
    command
}
