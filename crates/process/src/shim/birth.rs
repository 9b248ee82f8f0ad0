//! From a plan to a running tree.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use ostler_model::{StreamName, TermSize, Text, Usage};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::record;
use super::redact::Secrets;
use super::serve::{Mode, Shim};
use super::streams::Streams;
use super::tree::{EXECUTION_VARIABLE, Tree};
use crate::place::{EXIT_RECORD_VERSION, ExitRecord, Outcome, STEP_STORAGE, STEP_TERMINAL};
use crate::proto::{WireIo, WirePlan};
use crate::sys::clone::{self, CArray, Launch, Step};
use crate::sys::{memory, signals, time};

/// Characters of a path that messages show.
const SHOWN_CHARS: usize = 512;

/// A tree that runs, and what is needed to carry it to its end.
#[derive(Debug)]
pub(crate) struct Born {
    pub(crate) plan: WirePlan,
    pub(crate) dir: OwnedFd,
    pub(crate) started_ns: i64,
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
struct Stillbirth {
    step: &'static str,
    errno: Errno,
}

impl Stillbirth {
    const fn at(step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno }
    }
}

/// Writes the spec, gives birth.
pub(crate) fn give(shim: &mut Shim, plan: WirePlan) -> Birth {
    let started_ns = time::now_ns();
    let dir = match record::begin(shim.executions.as_fd(), &plan, &shim.identity) {
        Ok(dir) => dir,
        Err(errno) => {
            let failure = Stillbirth::at(STEP_STORAGE)(errno);
            return Birth::Failed {
                record: Box::new(not_born(&plan, started_ns, &failure)),
                dir: None,
            };
        }
    };
    match launch(shim, &plan) {
        Ok((tree, streams, input)) => Birth::Born(Box::new(Born {
            plan,
            dir,
            started_ns,
            tree,
            streams,
            input,
        })),
        Err(failure) => Birth::Failed {
            record: Box::new(not_born(&plan, started_ns, &failure)),
            dir: Some(dir),
        },
    }
}

fn not_born(plan: &WirePlan, started_ns: i64, failure: &Stillbirth) -> ExitRecord {
    let errno = failure.errno.raw_os_error();
    let reason = std::io::Error::from_raw_os_error(errno);
    let what = match failure.step {
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
        started_at: time::timestamp(started_ns),
        ended_at: time::timestamp(time::now_ns()),
        outcome: Outcome::NotBorn {
            step: failure.step.to_owned(),
            errno: Some(errno),
            message: what,
        },
        leftovers: 0,
        survivors: Vec::new(),
        out_of_memory: false,
        usage: Usage::default(),
        output_end: 0,
        journal_error: None,
        lost_bytes: 0,
    }
}

/// A path for people; its end where it is very long.
fn shown(path: &Text) -> String {
    let text = path.to_string_lossy();
    let beyond = text.chars().count().saturating_sub(SHOWN_CHARS);
    text.chars().skip(beyond).collect()
}

/// The child's descriptors and ours.
struct Channels {
    child: [OwnedFd; 3],
    sources: Vec<(StreamName, OwnedFd)>,
    input: Option<OwnedFd>,
    terminal: bool,
}

type Launched = (Tree, Streams, Option<OwnedFd>);

fn launch(shim: &mut Shim, plan: &WirePlan) -> Result<Launched, Stillbirth> {
    let step = match plan.io {
        WireIo::Pty(_) => STEP_TERMINAL,
        WireIo::Empty | WireIo::Given(_) | WireIo::Open => Step::Stdio.name(),
    };
    let channels = channels(&plan.io).map_err(Stillbirth::at(step))?;
    let program = c_string(&plan.program)?;
    let cwd = c_string(&plan.cwd)?;
    let argv = plan
        .argv
        .iter()
        .map(c_string)
        .collect::<Result<Vec<_>, _>>()?;
    let env = environment(plan)?;
    let limits = plan.limits.into();
    let confined = match &mut shim.slot {
        Some(slot) => slot.prepare(&limits),
        None => Ok(ostler_sandbox::cgroup::Entry::none()),
    };
    let confined = confined.map_err(Stillbirth::at(Step::Cgroup.name()))?;
    let rlimits = ostler_sandbox::rlimit::lowered(&limits);
    // On a thread, nobody knows what the rest of the process ignores.
    let every: Vec<i32> = match shim.identity.mode {
        Mode::Process => signals::IGNORED.to_vec(),
        Mode::Thread => signals::ALL.collect(),
    };
    let joins: Vec<_> = confined.joins().collect();
    let launch = Launch {
        program: &program,
        argv: &CArray::new(argv),
        env: &CArray::new(env),
        cwd: &cwd,
        stdio: channels.child.each_ref().map(AsFd::as_fd),
        terminal: channels.terminal,
        joins: &joins,
        cgroup: confined.birthplace(),
        // A thread does not outlive its process, so what it runs must not either.
        dies_with_parent: shim.identity.mode == Mode::Thread,
        ignored: &every,
        rlimits: &rlimits,
    };
    let born = clone::spawn(&launch, &mut shim.stack).map_err(|failure| Stillbirth {
        step: failure.step.name(),
        errno: failure.errno,
    })?;
    let secrets = Secrets::new(plan.redact.iter().map(Text::as_bytes));
    Ok((
        Tree::new(shim.identity.mode, plan.id, born),
        Streams::new(channels.sources, secrets),
        channels.input,
    ))
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

fn channels(io: &WireIo) -> Result<Channels, Errno> {
    let (stdin, input) = match io {
        WireIo::Pty(size) => return terminal(*size),
        WireIo::Empty => (null()?, None),
        WireIo::Given(bytes) => {
            let file = memory::file_with("ostler-stdin", bytes.as_bytes());
            (file.map_err(|error| errno_of(&error))?, None)
        }
        WireIo::Open => {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&write, true)?;
            (read, Some(write))
        }
    };
    let (out, child_out) = output_pipe()?;
    let (err, child_err) = output_pipe()?;
    Ok(Channels {
        child: [
            above_stdio(stdin)?,
            above_stdio(child_out)?,
            above_stdio(child_err)?,
        ],
        sources: vec![(StreamName::Stdout, out), (StreamName::Stderr, err)],
        input,
        terminal: false,
    })
}

fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Reading must not block; the child's end is a description of its own and does.
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

fn terminal(size: TermSize) -> Result<Channels, Errno> {
    use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    set_size(&master, size)?;
    let slave = above_stdio(ioctl_tiocgptpeer(&master, flags)?)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let (out, err) = (slave.try_clone(), slave.try_clone());
    let copies = (
        out.map_err(|error| errno_of(&error))?,
        err.map_err(|error| errno_of(&error))?,
    );
    Ok(Channels {
        child: [slave, copies.0, copies.1],
        sources: vec![(StreamName::Pty, master)],
        // Written through the same description as it is read.
        input: None,
        terminal: true,
    })
}

/// Tells a terminal its size.
pub(crate) fn set_size(terminal: &OwnedFd, size: TermSize) -> Result<(), Errno> {
    let size = rustix::termios::Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(terminal, size)
}

fn null() -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags, open};
    open(
        c"/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The same, with a number that the child's dup2 cannot overwrite.
fn above_stdio(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    if descriptor.as_raw_fd() > 2 {
        Ok(descriptor)
    } else {
        rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
