//! The sandbox alone: one command in a cell of its own, for whoever embeds this crate, for
//! `doctor`, and for measurements. The process place uses the same parts with its own pipes,
//! journals and cgroups.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_model::ending::WaitStatus;
use ostler_model::{Confinement, Limits, Usage};
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::birth::{self, CArray, Failure, Launch, Pages, STACK_BYTES, Step, wait};
use crate::{BuildAt, Cell, CellError, CellPlan, Host, Overlay, Walls, rlimit};

/// A confinement and limits, for any number of commands.
#[derive(Debug, Clone)]
pub struct Sandbox {
    confinement: Confinement,
    limits: Limits,
}

/// What runs in it.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// An absolute path, as the command's view has it, and its arguments, the zeroth included.
    pub program: &'a Path,
    /// The argument vector.
    pub argv: &'a [CString],
    /// The whole environment, `NAME=value`.
    pub env: &'a [CString],
    /// The directory to start in, without symbolic links.
    pub cwd: &'a Path,
    /// Standard streams.
    pub stdio: Stdio<'a>,
    /// Directories of the overlay, where the confinement has one.
    pub overlay: Option<Overlay<'a>>,
}

/// Standard streams of a command.
#[derive(Debug, Clone, Copy)]
pub enum Stdio<'a> {
    /// Nothing to read; output and errors into one pipe, which [`Child::output`] is.
    Pipe,
    /// A terminal's slave for all three.
    Terminal(BorrowedFd<'a>),
}

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Its cell could not be built.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// It could not be born in it.
    #[error("{}: {}", .step.name(), io::Error::from_raw_os_error(.errno.raw_os_error()))]
    Birth {
        /// The step that failed.
        step: Step,
        /// Why.
        errno: Errno,
    },
    /// A pipe or memory could not be had.
    #[error("{0}")]
    Resources(Errno),
    /// A path holds a null byte.
    #[error("a path holds a null byte: {0}")]
    Path(PathBuf),
}

impl From<Failure> for SpawnError {
    fn from(failure: Failure) -> Self {
        Self::Birth {
            step: failure.step,
            errno: failure.errno,
        }
    }
}

impl From<Errno> for SpawnError {
    fn from(errno: Errno) -> Self {
        Self::Resources(errno)
    }
}

/// A running command. Dropped, it is killed with everything it started.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    pidfd: OwnedFd,
    /// Its output and errors; none for a terminal, or when taken.
    pub output: Option<File>,
    cell: Option<Cell>,
    ended: Option<(WaitStatus, Usage)>,
}

impl Sandbox {
    /// With this confinement; of the limits, those per process.
    #[must_use]
    pub const fn new(confinement: Confinement, limits: Limits) -> Self {
        Self {
            confinement,
            limits,
        }
    }

    /// Builds a cell and runs a command in it.
    ///
    /// # Errors
    /// What failed; then nothing runs and nothing is left.
    pub fn spawn(&self, command: &Command<'_>) -> Result<Child, SpawnError> {
        let cell = self.cell(command)?;
        let streams = Streams::open(&command.stdio)?;
        if let Some(cell) = &cell {
            streams.give_to(cell.host_ids())?;
        }
        let walls = Walls::new(&self.confinement);
        let rlimits = match &cell {
            Some(_) => rlimit::lowered_in_cell(&self.limits, true),
            None => rlimit::lowered(&self.limits),
        };
        let (program, cwd) = (c_path(command.program)?, c_path(command.cwd)?);
        let ignored: Vec<i32> = birth::signals::ALL.collect();
        let launch = Launch {
            program: &program,
            pinned: None,
            argv: &CArray::new(command.argv.to_vec()),
            env: &CArray::new(command.env.to_vec()),
            cwd: &cwd,
            stdio: streams.child.each_ref().map(AsFd::as_fd),
            terminal: matches!(command.stdio, Stdio::Terminal(_)),
            joins: &[],
            cgroup: None,
            dies_with_parent: false,
            ignored: &ignored,
            soft_open_files: None,
            rlimits: &rlimits,
            cell: cell.as_ref(),
            walls: Some(&walls),
        };
        let born = birth::spawn(&launch, &mut Pages::map(STACK_BYTES)?)?;
        Ok(Child {
            pid: born.pid,
            pidfd: born.pidfd,
            output: streams.output.map(File::from),
            cell,
            ended: None,
        })
    }

    fn cell(&self, command: &Command<'_>) -> Result<Option<Cell>, CellError> {
        if !Walls::in_cell(&self.confinement) {
            return Ok(None);
        }
        let plan = CellPlan::compile(&self.confinement, &Host::read(&self.confinement))?;
        let terminal = match command.stdio {
            Stdio::Terminal(terminal) => Some(terminal),
            Stdio::Pipe => None,
        };
        let at = BuildAt {
            cgroup: None,
            overlay: command.overlay,
            terminal,
            dies_with_parent: false,
        };
        Cell::build(&plan, at).map(Some)
    }
}

impl Child {
    /// Its pid, as this process sees it.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// The cell it lives in; none where the confinement does without.
    #[must_use]
    pub const fn cell(&self) -> Option<&Cell> {
        self.cell.as_ref()
    }

    /// Waits until it has ended; what it left behind ends with this value, or by itself.
    ///
    /// # Errors
    /// When somebody else has reaped it.
    pub fn wait(&mut self) -> io::Result<(WaitStatus, Usage)> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let mut ready = [rustix::event::PollFd::new(
            &self.pidfd,
            rustix::event::PollFlags::IN,
        )];
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut ready, None))?;
        match wait::reap(self.pid) {
            wait::Waited::Reaped(reaped) => {
                let ended = (reaped.status, reaped.usage);
                self.ended = Some(ended);
                if let Some(cell) = &mut self.cell {
                    cell.leader_ended();
                }
                Ok(ended)
            }
            wait::Waited::Living | wait::Waited::None => Err(Errno::CHILD.into()),
        }
    }

    /// Kills it with everything it started.
    pub fn kill(&self) {
        match &self.cell {
            Some(cell) => cell.kill(),
            None => {
                let _gone = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let _gone = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
            wait::reap_blocking(self.pid);
        }
    }
}

/// The command's ends and ours.
struct Streams {
    child: [OwnedFd; 3],
    output: Option<OwnedFd>,
}

impl Streams {
    fn open(stdio: &Stdio<'_>) -> Result<Self, Errno> {
        match stdio {
            Stdio::Terminal(terminal) => Ok(Self {
                child: [above(terminal)?, above(terminal)?, above(terminal)?],
                output: None,
            }),
            Stdio::Pipe => {
                let (output, write) = pipe_with(PipeFlags::CLOEXEC)?;
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let null = rustix::fs::open(c"/dev/null", flags, Mode::empty())?;
                Ok(Self {
                    child: [above(&null)?, above(&write)?, above(&write)?],
                    output: Some(output),
                })
            }
        }
    }

    /// A stream can be opened by name inside only by whoever owns it.
    fn give_to(&self, (uid, gid): (u32, u32)) -> Result<(), Errno> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        for stream in self.child.iter().skip(1) {
            fchown(stream, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(())
    }
}

/// A copy with a number that the child's dup2 cannot overwrite.
fn above(descriptor: &impl AsFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
}

fn c_path(path: &Path) -> Result<CString, SpawnError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| SpawnError::Path(path.to_owned()))
}
