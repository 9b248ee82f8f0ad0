//! The builder's side: what only it can do, in the order in which the warden needs it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Signal;

use super::CellError;
use super::ids::Ids;
use super::interpret::{self, Failed, SOURCES_MAX, Stage};
use super::paths::c_path;
use super::plan::CellPlan;
use super::step::{Access, Source};
use super::sys;
use super::warden::{self, GO, LEFT, Work};
use crate::birth::{CloneArgs, signals};

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// How long a drop waits for what was killed, in seconds; it takes milliseconds.
const END_S: i64 = 2;
/// Namespaces of every cell.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Directories of an overlay: siblings, made by the caller, empty at first.
#[derive(Debug, Clone, Copy)]
pub struct Overlay<'a> {
    /// Where writes go.
    pub upper: &'a Path,
    /// The kernel's own, beside it.
    pub work: &'a Path,
}

/// What a cell is built with beside its plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildAt<'a> {
    /// A directory of the unified hierarchy for the warden to be born in.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// Where writes to the workspace go; needed where the plan has an overlay.
    pub overlay: Option<Overlay<'a>>,
    /// The command's terminal (its slave), to have a name inside.
    pub terminal: Option<BorrowedFd<'a>>,
    /// Whether the cell ends when the thread that builds it does. It ends with the process
    /// in any case.
    pub dies_with_parent: bool,
}

/// The overlay's layers as a warden sees them: a source, and names within it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layers<'a> {
    pub(super) source: usize,
    pub(super) upper: &'a CStr,
    pub(super) work: &'a CStr,
}

/// A living cell. Dropped, everything in it is killed.
#[derive(Debug)]
pub struct Cell {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    ids: Ids,
    namespaces: i32,
}

impl Cell {
    /// Builds it: when this returns, commands can enter.
    ///
    /// # Errors
    /// The step that failed; nothing is left then.
    pub fn build(plan: &CellPlan, at: BuildAt<'_>) -> Result<Self, CellError> {
        let ids = Ids::choose(plan.workspace.as_deref())?;
        let sources = Sources::new(plan, &at, ids.are_spare())?;
        let (control, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| CellError::new("socket", errno))?;
        let kept = sources.kept(&theirs);
        let work = Work {
            control: theirs.as_fd(),
            steps: &plan.steps,
            sources: &sources.all,
            held: &sources.held,
            kept: &kept,
            ids: ids.warden,
            owner: ids.inside,
            terminal: sources.terminal,
            layers: sources.layers(),
            dies_with_parent: at.dies_with_parent,
        };
        let mut namespaces = NAMESPACES;
        if plan.own_network {
            namespaces |= libc::CLONE_NEWNET;
        }
        let (pid, pidfd) = clone(namespaces, at.cgroup, &work)?;
        drop(theirs);
        // From here on, dropping ends the warden.
        let cell = Self {
            pid,
            pidfd,
            control,
            ids,
            namespaces,
        };
        cell.ids.write(pid)?;
        sources.map_ids(pid)?;
        cell.go(plan, &sources)?;
        Ok(cell)
    }

    fn go(&self, plan: &CellPlan, sources: &Sources) -> Result<(), CellError> {
        let lost = |errno| CellError::new("warden", errno);
        rustix::io::write(&self.control, &[GO]).map_err(lost)?;
        let mut verdict = [0_u8; 12];
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&self.control, &mut verdict));
        if read.map_err(lost)? != verdict.len() {
            return Err(lost(Errno::PIPE));
        }
        match Failed::from_bytes(verdict) {
            None => Ok(()),
            Some(failed) => Err(told(failed, plan, sources)),
        }
    }

    /// The warden's pid, as its builder sees it.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// The warden: readable when the cell is empty and gone.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The ids that commands have on the host: user, group.
    #[must_use]
    pub const fn host_ids(&self) -> (u32, u32) {
        self.ids.host
    }

    /// Inside ids to become at entering; none where they are the caller's.
    pub(crate) fn inside_ids(&self) -> Option<(u32, u32)> {
        self.ids.are_spare().then_some(self.ids.inside)
    }

    /// The namespaces to enter, as setns(2) wants them.
    pub(crate) const fn namespaces(&self) -> i32 {
        self.namespaces
    }

    /// From now on the cell ends with its last process.
    pub fn leader_ended(&mut self) {
        let _gone_already = rustix::io::write(&self.control, &[LEFT]);
    }

    /// Ends everything in it.
    pub fn kill(&self) {
        let _gone_already = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.kill();
        // It ends when everything inside is reaped, and the leader is the builder's to reap: one
        // that has not done so must not wait here for itself.
        let mut gone = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let patience = Timespec {
            tv_sec: END_S,
            tv_nsec: 0,
        };
        if rustix::io::retry_on_intr(|| poll(&mut gone, Some(&patience))) == Ok(1) {
            sys::reap_silent(self.pid);
        }
    }
}

fn clone(
    namespaces: i32,
    cgroup: Option<BorrowedFd<'_>>,
    work: &Work<'_>,
) -> Result<(i32, OwnedFd), CellError> {
    let mut pidfd: RawFd = -1;
    let into = if cgroup.is_some() {
        CLONE_INTO_CGROUP
    } else {
        0
    };
    let arguments = CloneArgs {
        flags: u64::from(namespaces.cast_unsigned()) | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | into,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        // No signal at its end: whoever waits for commands does not see it.
        cgroup: cgroup.map_or(0, |it| it.as_raw_fd().unsigned_abs().into()),
        ..CloneArgs::default()
    };
    let mask = signals::block_all();
    #[expect(unsafe_code, reason = "the warden is system calls on prepared data")]
    // SAFETY: the child runs `live`, which neither allocates nor takes locks nor returns.
    let cloned = unsafe { sys::fork_into(&arguments) };
    if cloned == Ok(None) {
        warden::live(work);
    }
    signals::set_mask(&mask);
    let pid = cloned.map_err(|errno| CellError::new("namespaces", errno))?;
    #[expect(unsafe_code, reason = "the kernel stored a descriptor")]
    // SAFETY: clone3 succeeded with CLONE_PIDFD, so it stored a fresh descriptor.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok((pid.unwrap_or(0), pidfd))
}

fn told(failed: Failed, plan: &CellPlan, sources: &Sources) -> CellError {
    let path = |path: &CStr| PathBuf::from(std::ffi::OsString::from_vec(path.to_bytes().to_vec()));
    let errno = failed.errno;
    match failed.stage() {
        Some(Stage::Ids) => CellError::new("inside ids", errno),
        Some(Stage::Root) => CellError::new("new root", errno),
        Some(Stage::Pivot) => CellError::new("pivot_root", errno),
        Some(Stage::Capabilities) => CellError::new("capabilities", errno),
        Some(Stage::Source) => match sources.all.get(failed.index) {
            Some(source) => CellError::on("bind mount", errno, path(&source.path)),
            None => CellError::new("bind mount", errno),
        },
        Some(Stage::Step) => match plan.steps.get(failed.index) {
            Some(step) => CellError {
                step: step.name(),
                errno,
                path: step.path().map(|it| Path::new("/").join(path(it))),
            },
            None => CellError::new("step", errno),
        },
        None => CellError::new("warden", errno),
    }
}

/// Sources of a plan and those of this build, with what the builder takes of them itself.
struct Sources {
    all: Vec<Source>,
    /// Where the caller is root: its paths, because a warden without the host's capabilities
    /// could not reach into other users' directories, and because only root may map ids.
    held: Vec<Option<OwnedFd>>,
    terminal: Option<usize>,
    layers: Option<(usize, CString, CString)>,
    mapped: bool,
}

impl Sources {
    fn new(plan: &CellPlan, at: &BuildAt<'_>, spare: bool) -> Result<Self, CellError> {
        let mut sources = Self {
            all: plan.sources.clone(),
            held: Vec::new(),
            terminal: None,
            layers: None,
            mapped: plan.mapped,
        };
        if let Some(path) = at.terminal.and_then(terminal_path) {
            sources.terminal = Some(sources.add(&path, Access::Device)?);
        }
        if let Some(overlay) = at.overlay.filter(|_| plan.overlay) {
            sources.add_layers(overlay)?;
        }
        if sources.all.len() > SOURCES_MAX {
            return Err(CellError::new("bind mount", Errno::TOOBIG));
        }
        if spare {
            sources.take()?;
        }
        Ok(sources)
    }

    fn add(&mut self, path: &Path, access: Access) -> Result<usize, CellError> {
        self.all.push(Source {
            path: c_path(path)?,
            access,
            required: access == Access::Write,
            mapped: access == Access::Write,
        });
        Ok(self.all.len() - 1)
    }

    fn add_layers(&mut self, overlay: Overlay<'_>) -> Result<(), CellError> {
        let wrong = || CellError::on("overlay", Errno::INVAL, overlay.upper);
        let above = overlay.upper.parent().ok_or_else(wrong)?;
        if overlay.work.parent() != Some(above) {
            return Err(wrong());
        }
        let name = |path: &Path| {
            let name = path.file_name().map(OsStrExt::as_bytes).ok_or_else(wrong)?;
            CString::new(name).map_err(|_| wrong())
        };
        let real = std::fs::canonicalize(above).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            CellError::on("overlay", errno, above)
        })?;
        let (upper, work) = (name(overlay.upper)?, name(overlay.work)?);
        self.layers = Some((self.add(&real, Access::Write)?, upper, work));
        Ok(())
    }

    fn layers(&self) -> Option<Layers<'_>> {
        let (source, upper, work) = self.layers.as_ref()?;
        Some(Layers {
            source: *source,
            upper,
            work,
        })
    }

    fn take(&mut self) -> Result<(), CellError> {
        for source in &self.all {
            let tree = match source.mapped {
                true => match interpret::take(&source.path, true) {
                    Ok(tree) => Some(tree),
                    Err(errno) if interpret::is_absence(source, errno) => None,
                    Err(errno) => return Err(failed("bind mount", errno, source)),
                },
                false => None,
            };
            self.held.push(tree);
        }
        Ok(())
    }

    /// Shows what is held under the ids of the warden's namespace.
    fn map_ids(&self, pid: i32) -> Result<(), CellError> {
        if self.held.iter().all(Option::is_none) {
            return Ok(());
        }
        let path = format!("/proc/{pid}/ns/user");
        let ids = File::open(&path).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            CellError::on("mapped workspace", errno, path)
        })?;
        let ids = self.mapped.then(|| ids.as_fd());
        for (source, tree) in self.all.iter().zip(&self.held) {
            let Some(tree) = tree else { continue };
            let attributes = interpret::attributes(source.access);
            match sys::set_attributes(tree.as_fd(), attributes, ids) {
                Ok(()) => {}
                // Reading works as far as others may read.
                Err(_) if source.access == Access::Read => {
                    sys::set_attributes(tree.as_fd(), attributes, None)
                        .map_err(|errno| failed("bind mount", errno, source))?;
                }
                Err(errno) => return Err(failed("mapped workspace", errno, source)),
            }
        }
        Ok(())
    }

    /// What the warden needs of our descriptors, in ascending order.
    fn kept(&self, control: &OwnedFd) -> Vec<RawFd> {
        let held = self.held.iter().flatten().map(AsRawFd::as_raw_fd);
        let mut kept: Vec<RawFd> = held.chain([control.as_raw_fd()]).collect();
        kept.sort_unstable();
        kept
    }
}

fn failed(step: &'static str, errno: Errno, source: &Source) -> CellError {
    let path = source.path.to_bytes().to_vec();
    CellError::on(step, errno, std::ffi::OsString::from_vec(path))
}

/// Where a terminal stands in /dev/pts; a terminal without a name there gets none inside.
fn terminal_path(terminal: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", terminal.as_raw_fd())).ok()?;
    path.starts_with("/dev/pts").then_some(path)
}
