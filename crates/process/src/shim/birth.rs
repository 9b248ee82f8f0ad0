//! From a plan to a running tree.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_model::{Confinement, Limits, Text, Usage};
use ostler_sandbox::cgroup::{Helpers, Slot};
use ostler_sandbox::rlimit;
use ostler_sandbox::walls::Walls;
use rustix::io::Errno;

use super::channels::{self, Channels};
use super::confined::{self, Confined, Site};
use super::pinned;
use super::record;
use super::redact::Secrets;
use super::serve::{Mode, Shim};
use super::streams::Streams;
use super::tree::{EXECUTION_VARIABLE, Tree, Upbringing};
use crate::open_files;
use crate::place::{EXIT_RECORD_VERSION, ExitRecord, Outcome, STEP_STORAGE, STEP_TERMINAL};
use crate::proto::WirePlan;
use crate::sys::clone::{self, CArray, Launch, Step};
use crate::sys::signals;
use crate::sys::time::Moment;

/// Launches of one attempt whose slot is removed each time by somebody else.
const SLOT_TRIES: u32 = 16;
/// Characters of a path that messages show.
const SHOWN_CHARS: usize = 512;

/// A tree that runs, and what is needed to carry it to its end.
#[derive(Debug)]
pub(crate) struct Born {
    pub(crate) plan: WirePlan,
    pub(crate) dir: OwnedFd,
    /// Whether the room for its exit record is reserved.
    pub(crate) has_reserve: bool,
    pub(crate) started: Moment,
    pub(crate) tree: Tree,
    pub(crate) streams: Streams,
    /// Where input goes, while it can; none for a terminal.
    pub(crate) input: Option<OwnedFd>,
}

/// What became of a birth.
#[derive(Debug)]
pub(crate) enum Birth {
    /// It runs.
    Born(Box<Born>),
    /// It does not; the record says why, and where it is to be written.
    Failed {
        record: Box<ExitRecord>,
        dir: Option<OwnedFd>,
    },
}

/// Why a birth failed.
#[derive(Debug)]
pub(super) struct Stillbirth {
    /// Which step failed.
    pub(super) step: &'static str,
    /// What the kernel said.
    pub(super) errno: Errno,
    /// What to tell people; none where step and number say it all.
    pub(super) told: Option<String>,
}

impl Stillbirth {
    /// With nothing to add.
    pub(super) const fn at(step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self {
            step,
            errno,
            told: None,
        }
    }
}

/// Writes the spec, gives birth.
pub(crate) fn give(shim: &mut Shim, plan: WirePlan) -> Birth {
    let started = Moment::now();
    let home = match record::begin(
        shim.executions.as_fd(),
        &mut shim.preparation,
        &plan,
        &shim.identity,
    ) {
        Ok(home) => home,
        Err(errno) => {
            let failure = Stillbirth::at(STEP_STORAGE)(errno);
            return Birth::Failed {
                record: Box::new(not_born(&plan, &started, &failure)),
                dir: None,
            };
        }
    };
    match launch_in_slot(shim, &plan, home.dir.as_fd()) {
        Ok((tree, streams, input)) => Birth::Born(Box::new(Born {
            plan,
            dir: home.dir,
            has_reserve: home.has_reserve,
            started,
            tree,
            streams,
            input,
        })),
        Err(failure) => Birth::Failed {
            record: Box::new(not_born(&plan, &started, &failure)),
            dir: Some(home.dir),
        },
    }
}

fn not_born(plan: &WirePlan, started: &Moment, failure: &Stillbirth) -> ExitRecord {
    let errno = failure.errno.raw_os_error();
    let reason = std::io::Error::from_raw_os_error(errno);
    let what = match failure.step {
        _ if failure.told.is_some() => failure.told.clone().unwrap_or_default(),
        "exec" => format!("cannot execute {}: {reason}", shown(&plan.program)),
        "chdir" => format!("cannot enter {}: {reason}", shown(&plan.cwd)),
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
        ended_at: Moment::now().timestamp(),
        lived_ms: 0,
        outcome: Outcome::NotBorn {
            step: failure.step.to_owned(),
            errno: Some(errno),
            message: what,
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
    }
}

/// A path for people; its end where it is very long.
fn shown(path: &Text) -> String {
    let text = path.to_string_lossy();
    let beyond = text.chars().count().saturating_sub(SHOWN_CHARS);
    text.chars().skip(beyond).collect()
}

type Launched = (Tree, Streams, Option<OwnedFd>);

/// Launches, again where that failed because somebody removed the slot meanwhile.
fn launch_in_slot(
    shim: &mut Shim,
    plan: &WirePlan,
    dir: BorrowedFd<'_>,
) -> Result<Launched, Stillbirth> {
    let mut tries = 1;
    loop {
        let failure = match launch(shim, plan, dir) {
            Ok(launched) => return Ok(launched),
            Err(failure) => failure,
        };
        match &mut shim.slot {
            Some(slot) if tries < SLOT_TRIES && !slot.is_intact() => slot.remake(),
            Some(_) | None => return Err(failure),
        }
        tries += 1;
    }
}

fn launch(shim: &mut Shim, plan: &WirePlan, dir: BorrowedFd<'_>) -> Result<Launched, Stillbirth> {
    let channels = Channels::open(&plan.io, plan.confinement.is_some())
        .map_err(Stillbirth::at(channels::step(&plan.io)))?;
    let pinned = pinned::check(plan)?;
    let words = Words::of(plan)?;
    let limits: Limits = plan.limits.into();
    let confinement = plan
        .confinement
        .as_deref()
        .map(confined::read)
        .transpose()?;
    let counted = shim.slot.as_ref().is_some_and(Slot::counts_processes);
    let rlimits = match &confinement {
        Some(it) if Walls::in_cell(it) => rlimit::lowered_in_cell(&limits, counted),
        Some(_) | None => rlimit::lowered(&limits),
    };
    let mode = shim.identity.mode;
    // On a thread, nobody knows what the rest of the process ignores.
    let every: Vec<i32> = match mode {
        Mode::Process => signals::IGNORED.to_vec(),
        Mode::Thread => signals::ALL.collect(),
    };
    let around = match &confinement {
        Some(confinement) => Some(wall_off(shim, confinement, (&channels, dir))?),
        None => None,
    };
    let companions = around
        .as_ref()
        .map(Confined::companions)
        .unwrap_or_default();
    let helpers = Helpers {
        pids: &companions,
        inside: u32::from(around.is_some()),
    };
    let entry = match &mut shim.slot {
        Some(slot) => slot.prepare(&limits, &helpers),
        None => Ok(ostler_sandbox::cgroup::Entry::none()),
    };
    let entry = entry.map_err(Stillbirth::at(Step::Cgroup.name()))?;
    let walls = confinement.as_ref().map(Walls::new);
    let joins: Vec<_> = entry.joins().collect();
    let launch = Launch {
        program: &words.program,
        pinned: pinned.as_ref(),
        argv: &words.argv,
        env: &words.env,
        cwd: &words.cwd,
        stdio: channels.child.each_ref().map(AsFd::as_fd),
        terminal: channels.terminal,
        joins: &joins,
        cgroup: entry.birthplace(),
        // A thread does not outlive its process, so what it runs must not either.
        dies_with_parent: mode == Mode::Thread,
        ignored: &every,
        soft_open_files: open_files::before(),
        rlimits: &rlimits,
        cell: around.as_ref().map(Confined::cell),
        walls: walls.as_ref(),
    };
    let born = clone::spawn(&launch, &mut shim.stack).map_err(|failure| match failure.errno {
        Errno::STALE if pinned.is_some() => pinned::changed(&plan.program.to_string_lossy()),
        errno => Stillbirth::at(failure.step.name())(errno),
    })?;
    if let (Some(slot), Some(_)) = (&mut shim.slot, &around) {
        slot.settle(&limits, &helpers);
    }
    let secrets = Secrets::new(plan.redact.iter().map(Text::as_bytes));
    Ok((
        Tree::new(Upbringing::of(mode, plan), born, around),
        Streams::new(channels.sources, secrets),
        channels.input,
    ))
}

/// Builds the cell, and makes the channels the command's own.
fn wall_off(
    shim: &mut Shim,
    confinement: &Confinement,
    (channels, dir): (&Channels, BorrowedFd<'_>),
) -> Result<Confined, Stillbirth> {
    let mode = shim.identity.mode;
    let cgroup = match &mut shim.slot {
        Some(slot) => slot.clear().map_err(Stillbirth::at(Step::Cgroup.name()))?,
        None => None,
    };
    let site = Site {
        mode,
        dir,
        cgroup,
        terminal: channels.terminal.then(|| channels.child[0].as_fd()),
    };
    let around = Confined::build(confinement, &site)?;
    for channel in &channels.child {
        around.give(channel)?;
    }
    Ok(around)
}

/// What execve(2) takes.
struct Words {
    program: CString,
    argv: CArray,
    env: CArray,
    cwd: CString,
}

impl Words {
    fn of(plan: &WirePlan) -> Result<Self, Stillbirth> {
        let argv: Result<Vec<_>, _> = plan.argv.iter().map(c_string).collect();
        Ok(Self {
            program: c_string(&plan.program)?,
            argv: CArray::new(argv?),
            env: CArray::new(environment(plan)?),
            cwd: c_string(&plan.cwd)?,
        })
    }
}

fn c_string(text: &Text) -> Result<CString, Stillbirth> {
    CString::new(text.as_bytes()).map_err(|_| Stillbirth::at("exec")(Errno::INVAL))
}

fn environment(plan: &WirePlan) -> Result<Vec<CString>, Stillbirth> {
    let own = CString::new(super::tree::marker(plan.id));
    let own = own.map_err(|_| Stillbirth::at("exec")(Errno::INVAL))?;
    let given = plan
        .env
        .iter()
        .filter(|(name, _)| name.as_bytes() != EXECUTION_VARIABLE.as_bytes());
    given
        .map(|(name, value)| {
            let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
            CString::new(pair).map_err(|_| Stillbirth::at("exec")(Errno::INVAL))
        })
        .chain(std::iter::once(Ok(own)))
        .collect()
}
