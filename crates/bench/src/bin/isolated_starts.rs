//! Measures each isolation level, for `cargo xtask bench isolation`.
//!
//! `isolated_starts WORKSPACE` reads one request per line, `WHAT COUNT`, and answers each with a line of
//! durations in nanoseconds, from the request for `true` to its end: `bare` by `posix_spawn`,
//! `basic`, `medium` and `high` as the sandbox does it, everything a level needs included, and
//! `bwrap` with the same isolation as far as it supports it.

use std::error::Error;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, Limits, SandboxSpec};
use ostler_sandbox::cgroup::{CgroupJoin, CgroupSlot, HelperPids, ShimName};
use ostler_sandbox::spawn::wait::{self, ReapOutcome};
use ostler_sandbox::spawn::{CArray, Pages, STACK_BYTES, SpawnSpec, spawn};
use ostler_sandbox::{HostFacts, Jail, JailOptions, JailPlan, Restrictions};
use rustix::event::{PollFd, PollFlags};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The measured program.
const PROGRAM: &CStr = c"/bin/true";
/// The default limit on processes of a command of level medium.
const PIDS: u32 = 4_096;

/// What every spawn needs.
struct Tools {
    workspace: CString,
    argv: CArray,
    env: CArray,
    null: File,
}

/// The state kept between starts, as in a shim.
struct Starter {
    tools: Tools,
    stack: Pages,
    slot: CgroupSlot,
    confinement: SandboxSpec,
}

fn main() -> Outcome<()> {
    let workspace = std::env::args().nth(1).ok_or("isolated_starts WORKSPACE")?;
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
    starter.slot.remove();
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
        slot.attach_shim();
        Ok(Self {
            tools: Tools {
                workspace: CString::new(workspace)?,
                argv: CArray::new(vec![c"true".into()]),
                env: CArray::new(vec![c"PATH=/usr/bin:/bin".into()]),
                null: File::options().read(true).write(true).open("/dev/null")?,
            },
            stack: Pages::map(STACK_BYTES)?,
            slot,
            confinement: SandboxSpec {
                workspace: Some(ByteString::from(workspace.to_owned())),
                ..SandboxSpec::default()
            },
        })
    }

    fn timed(&mut self, what: &str) -> Outcome<Duration> {
        let begin = Instant::now();
        match what {
            "bare" => ended(&mut Command::new("/bin/true"))?,
            "bwrap" => ended(&mut bubblewrap(self.tools.workspace.to_str()?))?,
            "basic" => self.tools.run(&CgroupJoin::none(), None, &mut self.stack)?,
            "medium" => {
                let entry = self.slot.prepare(&limits(), &HelperPids::default())?;
                self.tools.run(&entry, None, &mut self.stack)?;
            }
            "high" => self.high()?,
            _ => return Err(format!("unknown: {what}").into()),
        }
        Ok(begin.elapsed())
    }

    /// Nothing is kept between starts: the host's facts are read, and the plan is compiled and
    /// built again.
    fn high(&mut self) -> Outcome<()> {
        let plan = JailPlan::compile(&self.confinement, &HostFacts::read(&self.confinement))?;
        let at = JailOptions {
            cgroup: self.slot.prepare_for_helpers()?,
            ..JailOptions::default()
        };
        let mut jail = Jail::build(&plan, at)?;
        let helpers = HelperPids {
            pids: &[jail.pid()],
            in_slot: 1,
        };
        let entry = self.slot.prepare(&limits(), &helpers)?;
        let restrictions = Restrictions::new(&self.confinement);
        let within = Some((&jail, &restrictions));
        self.tools.run(&entry, within, &mut self.stack)?;
        jail.notify_leader_exited();
        let mut gone = [PollFd::from_borrowed_fd(jail.pidfd(), PollFlags::IN)];
        rustix::event::poll(&mut gone, None)?;
        wait::reap_blocking(jail.pid());
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
        entry: &CgroupJoin<'_>,
        within: Option<(&Jail, &Restrictions)>,
        stack: &mut Pages,
    ) -> Outcome<()> {
        let joins: Vec<BorrowedFd<'_>> = entry.joins().collect();
        let launch = SpawnSpec {
            program: PROGRAM,
            expected: None,
            argv: &self.argv,
            env: &self.env,
            cwd: &self.workspace,
            stdio: [self.null.as_fd(); 3],
            terminal: false,
            leads_session: false,
            cgroup_procs: &joins,
            cgroup: entry.clone_into(),
            dies_with_parent: true,
            reset_signals: &[],
            soft_open_files: None,
            rlimits: &[],
            jail: within.map(|(jail, _)| jail),
            restrictions: within.map(|(_, restrictions)| restrictions),
        };
        let child = spawn(&launch, stack).map_err(|failure| format!("{failure:?}"))?;
        let mut ended = [PollFd::new(&child.pidfd, PollFlags::IN)];
        rustix::event::poll(&mut ended, None)?;
        match wait::reap(child.pid) {
            ReapOutcome::Reaped(it) if it.status == WaitStatus::Code(0) => Ok(()),
            other @ (ReapOutcome::Reaped(_) | ReapOutcome::Running | ReapOutcome::NoChildren) => {
                Err(format!("{other:?}").into())
            }
        }
    }
}

/// By `posix_spawn`, without any options.
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
