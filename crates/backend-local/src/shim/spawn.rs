//! Spawns the tree of a plan.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_backend::attempt_dir::{self, AttemptSpec};
use ostler_backend::container_file::ContainerFile;
use ostler_backend::execution_dir;
use ostler_backend::redact::SecretFinder;
use ostler_backend::{
    ContainerAttachment, EXIT_RECORD_VERSION, ExitRecord, LaunchIo, LaunchPlan, LeaderOutcome,
    STEP_STORAGE, STEP_TERMINAL,
};
use ostler_journal::Durability;
use ostler_model::{ByteString, SandboxSpec, StreamName, Usage};
use ostler_sandbox::cgroup::{CgroupSlot, HelperPids};
use ostler_sandbox::restrictions::Restrictions;
use ostler_sandbox::rlimit;
use ostler_sandbox::stdio::{Channels, Stdio, failing_step};
use ostler_sandbox::tree::{
    EXECUTION_VARIABLE, Enclosure, ProcessTree, TreeConfig, TreeReaper, marker,
};
use ostler_sys::{open_files, signals};
use rustix::io::Errno;

use super::attempt_tree::AttemptTree;
use super::container_tree::ContainerTree;
use super::jailed::{JailSite, RunningJail};
use super::launch_failure::LaunchFailure;
use super::pinned_files;
use super::state::{Shim, ShimMode};
use super::streams::OutputStreams;
use crate::sys::clone::{self, CArray, SpawnSpec, SpawnStep};
use crate::sys::proc;
use crate::sys::time::ClockReading;

/// How often a launch is repeated whose cgroup slot was removed by another process.
const SLOT_TRIES: u32 = 16;
/// The most characters of a path in messages.
const DISPLAY_CHARS: usize = 512;

/// A running tree, with the state to run it to its end.
#[derive(Debug)]
pub(crate) struct SpawnedTree {
    pub(crate) plan: LaunchPlan,
    pub(crate) dir: OwnedFd,
    /// Whether space for its exit record is reserved.
    pub(crate) has_reserve: bool,
    pub(crate) started: ClockReading,
    pub(crate) tree: AttemptTree,
    pub(crate) streams: OutputStreams,
    /// Where input is written; none for a terminal.
    pub(crate) input: Option<OwnedFd>,
}

/// The result of a spawn.
#[derive(Debug)]
pub(crate) enum SpawnResult {
    /// The tree runs.
    Spawned(Box<SpawnedTree>),
    /// The spawn failed; the record holds the cause, and the directory is where it is written.
    Failed {
        record: Box<ExitRecord>,
        dir: Option<OwnedFd>,
    },
}

/// Writes the spec and spawns the tree.
pub(crate) fn spawn(shim: &mut Shim, plan: LaunchPlan) -> SpawnResult {
    let started = ClockReading::now();
    let exec_dir = match attempt_dir::create(
        shim.executions.as_fd(),
        &mut shim.preparation,
        &AttemptSpec {
            id: plan.id,
            attempt: plan.attempt,
            boot: &shim.boot,
            spec: &plan.spec,
        },
    ) {
        Ok(exec_dir) => exec_dir,
        Err(errno) => {
            let failure = LaunchFailure::at(STEP_STORAGE)(errno);
            return SpawnResult::Failed {
                record: Box::new(failure_record(&plan, &started, &failure)),
                dir: None,
            };
        }
    };
    let dir = exec_dir.dir.as_fd();
    let launched = sync_spec(shim, dir).and_then(|()| match &plan.attachment {
        Some(attachment) => launch_in_container(&plan, attachment, dir),
        None => launch_in_slot(shim, &plan, dir),
    });
    match launched {
        Ok((tree, streams, input)) => SpawnResult::Spawned(Box::new(SpawnedTree {
            plan,
            dir: exec_dir.dir,
            has_reserve: exec_dir.has_reserve,
            started,
            tree,
            streams,
            input,
        })),
        Err(failure) => SpawnResult::Failed {
            record: Box::new(failure_record(&plan, &started, &failure)),
            dir: Some(exec_dir.dir),
        },
    }
}

/// With [`Durability::Fsync`], nothing runs before the disk has its record.
fn sync_spec(shim: &Shim, dir: BorrowedFd<'_>) -> Result<(), LaunchFailure> {
    match shim.identity.durability {
        Durability::Fsync => execution_dir::sync_spec(shim.executions.as_fd(), dir)
            .map_err(LaunchFailure::at(STEP_STORAGE)),
        Durability::PageCache => Ok(()),
    }
}

fn failure_record(
    plan: &LaunchPlan,
    started: &ClockReading,
    failure: &LaunchFailure,
) -> ExitRecord {
    let errno = failure.errno.raw_os_error();
    let reason = std::io::Error::from_raw_os_error(errno);
    let message = match failure.step {
        _ if failure.message.is_some() => failure.message.clone().unwrap_or_default(),
        "exec" if failure.errno == Errno::NOMEM && plan.limits.memory_bytes.is_some() => {
            let limit = plan.limits.memory_bytes.unwrap_or_default();
            let program = display_path(&plan.program);
            format!("cannot execute {program}: {reason}; its limit on memory is {limit} bytes")
        }
        "exec" => format!("cannot execute {}: {reason}", display_path(&plan.program)),
        "chdir" => format!("cannot enter {}: {reason}", display_path(&plan.cwd)),
        STEP_STORAGE => format!("cannot write the state directory: {reason}"),
        STEP_TERMINAL if failure.errno == Errno::AGAIN => {
            "no terminal is left: the kernel's limit kernel.pty.max is reached".to_owned()
        }
        STEP_TERMINAL => format!("cannot make a terminal: {reason}"),
        step => format!("{step} failed: {reason}"),
    };
    ExitRecord {
        version: EXIT_RECORD_VERSION,
        attempt: plan.attempt,
        pid: 0,
        started_at: started.timestamp(),
        ended_at: ClockReading::now().timestamp(),
        lived_ms: 0,
        outcome: LeaderOutcome::SpawnFailed {
            step: failure.step.to_owned(),
            errno: Some(errno),
            message,
        },
        leftovers: 0,
        survivors: Vec::new(),
        out_of_memory: false,
        limits_hit: Vec::new(),
        usage: Usage::default(),
        output_end: 0,
        journal_error: None,
        lost_bytes: 0,
        autorun: Box::default(),
        lost_capabilities: Vec::new(),
    }
}

/// A path for messages; its end where it is very long.
fn display_path(path: &ByteString) -> String {
    let text = path.to_string_lossy();
    let beyond = text.chars().count().saturating_sub(DISPLAY_CHARS);
    text.chars().skip(beyond).collect()
}

type LaunchedTree = (AttemptTree, OutputStreams, Option<OwnedFd>);

/// Launches, and retries where another process removed the slot meanwhile.
fn launch_in_slot(
    shim: &mut Shim,
    plan: &LaunchPlan,
    dir: BorrowedFd<'_>,
) -> Result<LaunchedTree, LaunchFailure> {
    let mut tries = 1;
    loop {
        let failure = match launch(shim, plan, dir) {
            Ok(launched) => return Ok(launched),
            Err(failure) => failure,
        };
        match &mut shim.slot {
            Some(slot) if tries < SLOT_TRIES && !slot.is_intact() => slot.recreate_missing(),
            Some(_) | None => return Err(failure),
        }
        tries += 1;
    }
}

fn launch(
    shim: &mut Shim,
    plan: &LaunchPlan,
    dir: BorrowedFd<'_>,
) -> Result<LaunchedTree, LaunchFailure> {
    let stdio = stdio(&plan.io, plan.sandbox.is_some());
    let channels = Channels::open(stdio).map_err(LaunchFailure::at(failing_step(stdio)))?;
    let pinned = pinned_files::check_files(plan)?;
    let exec_args = ExecveArgs::from_plan(plan)?;
    let (limits, sandbox) = (plan.limits, plan.sandbox.as_ref());
    let has_pid_count = shim.slot.as_ref().is_some_and(CgroupSlot::counts_processes);
    let rlimits = match sandbox {
        Some(it) if Restrictions::needs_jail(it) => rlimit::jail_limits(&limits, has_pid_count),
        Some(_) | None => rlimit::child_limits(&limits),
    };
    let mode = shim.identity.mode;
    // On a thread, the signals the rest of the process ignores are not known.
    let ignored: Vec<i32> = match mode {
        ShimMode::Process => signals::IGNORED.to_vec(),
        ShimMode::Thread => signals::ALL.collect(),
    };
    let jail = match sandbox {
        Some(sandbox) => Some(build_jail(shim, sandbox, &channels, dir)?),
        None => None,
    };
    let helper_pids = jail
        .as_ref()
        .map(RunningJail::helper_pids)
        .unwrap_or_default();
    let helpers = HelperPids {
        pids: &helper_pids,
        in_slot: u32::from(jail.is_some()),
    };
    let entry = match &mut shim.slot {
        Some(slot) => slot.prepare(&limits, &helpers),
        None => Ok(ostler_sandbox::cgroup::CgroupJoin::none()),
    };
    let entry = entry.map_err(LaunchFailure::at(SpawnStep::Cgroup.name()))?;
    let restrictions = sandbox.map(Restrictions::new);
    let joins: Vec<_> = entry.joins().collect();
    let launch = SpawnSpec {
        program: &exec_args.program,
        expected: pinned.as_ref(),
        argv: &exec_args.argv,
        env: &exec_args.env,
        cwd: &exec_args.cwd,
        stdio: channels.child.each_ref().map(AsFd::as_fd),
        terminal: channels.terminal,
        // A thread has no session to share with its command but that of the whole process.
        leads_session: mode == ShimMode::Thread,
        cgroup_procs: &joins,
        cgroup: entry.clone_into(),
        // A thread does not outlive its process, so its command must not either.
        dies_with_parent: mode == ShimMode::Thread,
        reset_signals: &ignored,
        soft_open_files: open_files::original_limit(),
        rlimits: &rlimits,
        jail: jail.as_ref().map(RunningJail::jail),
        restrictions: restrictions.as_ref(),
    };
    let child = clone::spawn(&launch, &mut shim.stack).map_err(|failure| match failure.errno {
        Errno::STALE if pinned.is_some() => {
            pinned_files::file_changed(&plan.program.to_string_lossy())
        }
        errno => LaunchFailure::at(failure.step.name())(errno),
    })?;
    if let (Some(slot), Some(_)) = (&mut shim.slot, &jail) {
        slot.restore_pids_limit(&limits, &helpers);
    }
    Ok((
        AttemptTree::Local(ProcessTree::new(tree_config(mode, plan), child, jail)),
        output_streams(plan, channels.sources),
        channels.input,
    ))
}

const fn tree_config(mode: ShimMode, plan: &LaunchPlan) -> TreeConfig {
    TreeConfig {
        reaper: match mode {
            ShimMode::Process => TreeReaper::Subreaper,
            ShimMode::Thread => TreeReaper::ParentOfLeader,
        },
        id: plan.id,
        orphan_policy: plan.orphan_policy,
    }
}

fn output_streams(plan: &LaunchPlan, sources: Vec<(StreamName, OwnedFd)>) -> OutputStreams {
    let secrets = SecretFinder::new(plan.redact.iter().map(ByteString::as_bytes));
    OutputStreams::new(sources, secrets).with_input_record(plan.record_input)
}

/// How the standard streams of a command of this machine are connected. In a jail, an empty input
/// is a file of the command's own: the machine's `/dev/null` could not be opened again by its name
/// (`/dev/stdin`).
fn stdio(io: &LaunchIo, in_jail: bool) -> Stdio<'_> {
    match io {
        LaunchIo::Empty if in_jail => Stdio::Bytes(&[]),
        LaunchIo::Empty => Stdio::Null,
        LaunchIo::Bytes(bytes) => Stdio::Bytes(bytes),
        LaunchIo::Piped => Stdio::Piped,
        LaunchIo::Pty(size) => Stdio::Terminal(*size),
    }
}

/// Starts the command in its container, and records by which process it is found there.
fn launch_in_container(
    plan: &LaunchPlan,
    attachment: &ContainerAttachment,
    dir: BorrowedFd<'_>,
) -> Result<LaunchedTree, LaunchFailure> {
    let started = ContainerTree::start(plan, attachment)?;
    let runner = started.tree.runner();
    let start = proc::start_time(runner);
    ContainerFile::new(plan.attempt, attachment.clone(), runner, start)
        .write(dir)
        .map_err(LaunchFailure::at(STEP_STORAGE))?;
    Ok((
        AttemptTree::Container(started.tree),
        output_streams(plan, started.sources),
        started.input,
    ))
}

/// Builds the jail, and gives the channels to the command's user.
fn build_jail(
    shim: &mut Shim,
    sandbox: &SandboxSpec,
    channels: &Channels,
    dir: BorrowedFd<'_>,
) -> Result<RunningJail, LaunchFailure> {
    let mode = shim.identity.mode;
    let cgroup = match &mut shim.slot {
        Some(slot) => slot
            .prepare_for_helpers()
            .map_err(LaunchFailure::at(SpawnStep::Cgroup.name()))?,
        None => None,
    };
    let site = JailSite {
        mode,
        dir,
        cgroup,
        terminal: channels.terminal.then(|| channels.child[0].as_fd()),
    };
    let jail = RunningJail::build(sandbox, &site)?;
    for channel in &channels.child {
        jail.chown_channel(channel)?;
    }
    Ok(jail)
}

/// The arguments of execve(2).
struct ExecveArgs {
    program: CString,
    argv: CArray,
    env: CArray,
    cwd: CString,
}

impl ExecveArgs {
    fn from_plan(plan: &LaunchPlan) -> Result<Self, LaunchFailure> {
        let argv: Result<Vec<_>, _> = plan.argv.iter().map(c_string).collect();
        Ok(Self {
            program: c_string(&plan.program)?,
            argv: CArray::new(argv?),
            env: CArray::new(environment(plan)?),
            cwd: c_string(&plan.cwd)?,
        })
    }
}

fn c_string(text: &ByteString) -> Result<CString, LaunchFailure> {
    CString::new(text.as_bytes()).map_err(|_| LaunchFailure::at("exec")(Errno::INVAL))
}

fn environment(plan: &LaunchPlan) -> Result<Vec<CString>, LaunchFailure> {
    let marker = CString::new(marker(plan.id));
    let own = marker.map_err(|_| LaunchFailure::at("exec")(Errno::INVAL))?;
    let variables = plan
        .env
        .iter()
        .filter(|(name, _)| name.as_bytes() != EXECUTION_VARIABLE.as_bytes());
    variables
        .map(|(name, value)| {
            let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
            CString::new(pair).map_err(|_| LaunchFailure::at("exec")(Errno::INVAL))
        })
        .chain(std::iter::once(Ok(own)))
        .collect()
}
