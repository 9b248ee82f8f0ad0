//! The sandbox alone: one command in a jail of its own, for programs that embed this crate, for
//! `doctor`, and for measurements. The local backend uses the same parts with its own pipes,
//! journals and cgroups.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_model::termination::WaitStatus;
use ostler_model::{Limits, SandboxSpec, Usage};
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::spawn::{self, CArray, Pages, STACK_BYTES, SpawnSpec, SpawnStep, SpawnStepError, wait};
use crate::{HostFacts, Jail, JailError, JailOptions, JailPlan, OverlayDirs, Restrictions, rlimit};

/// A sandbox specification and limits, for any number of commands.
#[derive(Debug, Clone)]
pub struct Sandbox {
    spec: SandboxSpec,
    limits: Limits,
}

/// A command to run.
#[derive(Debug, Clone, Copy)]
pub struct SandboxCommand<'a> {
    /// The program's absolute path, inside the command's view.
    pub program: &'a Path,
    /// The argument vector, including the zeroth argument.
    pub argv: &'a [CString],
    /// The whole environment, `NAME=value`.
    pub env: &'a [CString],
    /// The directory to start in, without symbolic links.
    pub cwd: &'a Path,
    /// Standard streams.
    pub stdio: SandboxStdio<'a>,
    /// The overlay's directories, where the specification has an overlay.
    pub overlay: Option<OverlayDirs<'a>>,
}

/// Standard streams of a command.
#[derive(Debug, Clone, Copy)]
pub enum SandboxStdio<'a> {
    /// Empty input; output and errors go into one pipe, [`SandboxChild::output`].
    Pipe,
    /// A terminal's slave for all three.
    Terminal(BorrowedFd<'a>),
}

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Its jail could not be built.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// It could not be spawned in it.
    #[error("{}: {}", .step.name(), io::Error::from_raw_os_error(.errno.raw_os_error()))]
    Spawn {
        /// The step that failed.
        step: SpawnStep,
        /// The error number.
        errno: Errno,
    },
    /// No pipe or memory was available.
    #[error("{0}")]
    Resources(Errno),
    /// A path contains a null byte.
    #[error("a path holds a null byte: {0}")]
    Path(PathBuf),
}

impl From<SpawnStepError> for SandboxError {
    fn from(failure: SpawnStepError) -> Self {
        Self::Spawn {
            step: failure.step,
            errno: failure.errno,
        }
    }
}

impl From<Errno> for SandboxError {
    fn from(errno: Errno) -> Self {
        Self::Resources(errno)
    }
}

/// A running command. Dropping it kills it with everything it started.
#[derive(Debug)]
pub struct SandboxChild {
    pid: i32,
    pidfd: OwnedFd,
    /// Its output and errors; none for a terminal, or when taken.
    pub output: Option<File>,
    jail: Option<Jail>,
    exit_status: Option<(WaitStatus, Usage)>,
}

impl Sandbox {
    /// A sandbox of this specification; of the limits, only those per process apply.
    #[must_use]
    pub const fn new(spec: SandboxSpec, limits: Limits) -> Self {
        Self { spec, limits }
    }

    /// Builds a jail and runs a command in it.
    ///
    /// # Errors
    /// The step that failed; then nothing runs and nothing is left.
    pub fn spawn(&self, command: &SandboxCommand<'_>) -> Result<SandboxChild, SandboxError> {
        let jail = self.build_jail(command)?;
        let streams = SandboxStreams::open(&command.stdio)?;
        if let Some(cell) = &jail {
            let (uid, gid) = cell.host_ids();
            streams.chown_to(uid, gid)?;
        }
        let restrictions = Restrictions::new(&self.spec);
        let rlimits = match &jail {
            Some(_) => rlimit::jail_limits(&self.limits, true),
            None => rlimit::child_limits(&self.limits),
        };
        let (program, cwd) = (c_path(command.program)?, c_path(command.cwd)?);
        let ignored: Vec<i32> = ostler_sys::signals::ALL.collect();
        let spawn_spec = SpawnSpec {
            program: &program,
            expected: None,
            argv: &CArray::new(command.argv.to_vec()),
            env: &CArray::new(command.env.to_vec()),
            cwd: &cwd,
            stdio: streams.child.each_ref().map(AsFd::as_fd),
            terminal: matches!(command.stdio, SandboxStdio::Terminal(_)),
            leads_session: false,
            cgroup_procs: &[],
            cgroup: None,
            dies_with_parent: false,
            reset_signals: &ignored,
            soft_open_files: None,
            rlimits: &rlimits,
            jail: jail.as_ref(),
            restrictions: Some(&restrictions),
        };
        let child = spawn::spawn(&spawn_spec, &mut Pages::map(STACK_BYTES)?)?;
        Ok(SandboxChild {
            pid: child.pid,
            pidfd: child.pidfd,
            output: streams.output.map(File::from),
            jail,
            exit_status: None,
        })
    }

    fn build_jail(&self, command: &SandboxCommand<'_>) -> Result<Option<Jail>, JailError> {
        if !Restrictions::needs_jail(&self.spec) {
            return Ok(None);
        }
        let plan = JailPlan::compile(&self.spec, &HostFacts::read(&self.spec))?;
        let terminal = match command.stdio {
            SandboxStdio::Terminal(terminal) => Some(terminal),
            SandboxStdio::Pipe => None,
        };
        let options = JailOptions {
            cgroup: None,
            overlay: command.overlay,
            terminal,
            dies_with_parent: false,
        };
        Jail::build(&plan, options).map(Some)
    }
}

impl SandboxChild {
    /// Its pid, in this process's pid namespace.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// The jail it runs in; none where the specification needs none.
    #[must_use]
    pub const fn jail(&self) -> Option<&Jail> {
        self.jail.as_ref()
    }

    /// Waits until it has ended; its remaining processes end with this value, or by themselves.
    ///
    /// # Errors
    /// When another wait has reaped it.
    pub fn wait(&mut self) -> io::Result<(WaitStatus, Usage)> {
        if let Some(exit_status) = self.exit_status {
            return Ok(exit_status);
        }
        let mut ready = [rustix::event::PollFd::new(
            &self.pidfd,
            rustix::event::PollFlags::IN,
        )];
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut ready, None))?;
        match wait::reap(self.pid) {
            wait::ReapOutcome::Reaped(reaped) => {
                let exit_status = (reaped.status, reaped.usage);
                self.exit_status = Some(exit_status);
                if let Some(cell) = &mut self.jail {
                    cell.notify_leader_exited();
                }
                Ok(exit_status)
            }
            wait::ReapOutcome::Running | wait::ReapOutcome::NoChildren => Err(Errno::CHILD.into()),
        }
    }

    /// Kills it with everything it started.
    pub fn kill(&self) {
        match &self.jail {
            Some(cell) => cell.kill(),
            None => {
                let _gone = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
            }
        }
    }
}

impl Drop for SandboxChild {
    fn drop(&mut self) {
        if self.exit_status.is_none() {
            self.kill();
            let _gone = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
            wait::reap_blocking(self.pid);
        }
    }
}

/// The ends of the streams of parent and child.
struct SandboxStreams {
    child: [OwnedFd; 3],
    output: Option<OwnedFd>,
}

impl SandboxStreams {
    fn open(stdio: &SandboxStdio<'_>) -> Result<Self, Errno> {
        match stdio {
            SandboxStdio::Terminal(terminal) => Ok(Self {
                child: [
                    dup_above_stdio(terminal)?,
                    dup_above_stdio(terminal)?,
                    dup_above_stdio(terminal)?,
                ],
                output: None,
            }),
            SandboxStdio::Pipe => {
                let (output, write) = pipe_with(PipeFlags::CLOEXEC)?;
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let null = rustix::fs::open(c"/dev/null", flags, Mode::empty())?;
                Ok(Self {
                    child: [
                        dup_above_stdio(&null)?,
                        dup_above_stdio(&write)?,
                        dup_above_stdio(&write)?,
                    ],
                    output: Some(output),
                })
            }
        }
    }

    /// Changes the owner: a stream can be opened by name inside only by its owner.
    fn chown_to(&self, uid: u32, gid: u32) -> Result<(), Errno> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        for stream in self.child.iter().skip(1) {
            fchown(stream, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(())
    }
}

/// A duplicate under a number that the child's dup2(2) cannot overwrite.
fn dup_above_stdio(descriptor: &impl AsFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
}

fn c_path(path: &Path) -> Result<CString, SandboxError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| SandboxError::Path(path.to_owned()))
}
