//! The builder's side of a jail: what only the builder can do, in the order in which the init needs
//! it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

use ostler_sys::errno::errno_of;
use ostler_sys::signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Signal;

use super::JailError;
use super::idmap::IdMap;
use super::init::{self, InitTask, LEADER_EXITED, START};
use super::mount_exec::{self, InitFailure, InitStage, SOURCES_MAX};
use super::mount_op::{BindSource, MountAccess};
use super::paths::c_path;
use super::plan::JailPlan;
use super::sys;
use crate::clone_args::CloneArgs;

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// How long a drop waits for killed processes, in seconds; it takes milliseconds.
const KILL_WAIT_S: i64 = 2;
/// Namespaces of every jail.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The directories of an overlay: siblings, created by the caller, initially empty.
#[derive(Debug, Clone, Copy)]
pub struct OverlayDirs<'a> {
    /// The upper layer.
    pub upper: &'a Path,
    /// The work directory of overlayfs, on the same file system.
    pub work: &'a Path,
}

/// The inputs of a jail besides its plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct JailOptions<'a> {
    /// A directory of the unified hierarchy to spawn the init into.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// The overlay's directories; required where the plan has an overlay.
    pub overlay: Option<OverlayDirs<'a>>,
    /// The slave side of the command's terminal, which is named inside.
    pub terminal: Option<BorrowedFd<'a>>,
    /// Whether the jail ends with the thread that builds it. It ends with the process in any case.
    pub dies_with_parent: bool,
}

/// The overlay's layers as an init sees them: a source, and names within it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerSource<'a> {
    pub(super) source: usize,
    pub(super) upper: &'a CStr,
    pub(super) work: &'a CStr,
}

/// A running jail. Dropping it kills everything in it.
#[derive(Debug)]
pub struct Jail {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    ids: IdMap,
    namespaces: i32,
}

impl Jail {
    /// Builds the jail: when this returns, commands can enter.
    ///
    /// # Errors
    /// The step that failed; nothing is left then.
    pub fn build(plan: &JailPlan, options: JailOptions<'_>) -> Result<Self, JailError> {
        let ids = IdMap::choose(plan.workspace.as_deref())?;
        let sources = BindSources::new(plan, &options, ids.is_spare())?;
        let (control, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| JailError::new("socket", errno))?;
        let keep_fds = sources.keep_fds(&theirs);
        let task = InitTask {
            control: theirs.as_fd(),
            ops: &plan.ops,
            sources: &sources.all,
            trees: &sources.trees,
            keep_fds: &keep_fds,
            become_ids: ids.init,
            command_ids: ids.inside,
            terminal: sources.terminal,
            layers: sources.layers(),
            dies_with_parent: options.dies_with_parent,
        };
        let mut namespaces = NAMESPACES;
        if plan.own_network {
            namespaces |= libc::CLONE_NEWNET;
        }
        let (pid, pidfd) = clone_init(namespaces, options.cgroup, &task)?;
        drop(theirs);
        // From here on, dropping ends the init.
        let jail = Self {
            pid,
            pidfd,
            control,
            ids,
            namespaces,
        };
        jail.ids.write(pid)?;
        sources.map_ids(pid)?;
        jail.run_init(plan, &sources)?;
        Ok(jail)
    }

    fn run_init(&self, plan: &JailPlan, sources: &BindSources) -> Result<(), JailError> {
        let lost = |errno| JailError::new("warden", errno);
        rustix::io::write(&self.control, &[START]).map_err(lost)?;
        let mut reply = [0_u8; 12];
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&self.control, &mut reply));
        if read.map_err(lost)? != reply.len() {
            return Err(lost(Errno::PIPE));
        }
        match InitFailure::from_bytes(reply) {
            None => Ok(()),
            Some(failed) => Err(describe_failure(failed, plan, sources)),
        }
    }

    /// The init's pid, in the builder's pid namespace.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// A pidfd of the init, readable when the jail is empty and has ended.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The user and group ids that commands have on the host.
    #[must_use]
    pub const fn host_ids(&self) -> (u32, u32) {
        self.ids.host
    }

    /// The inside ids to take when entering; none where they are the caller's.
    pub(crate) fn inside_ids(&self) -> Option<(u32, u32)> {
        self.ids.is_spare().then_some(self.ids.inside)
    }

    /// The namespaces to enter, as flags of setns(2).
    pub(crate) const fn namespaces(&self) -> i32 {
        self.namespaces
    }

    /// Notifies the init that the leader has ended: from now on the jail ends with its last
    /// process.
    pub fn notify_leader_exited(&mut self) {
        let _gone_already = rustix::io::write(&self.control, &[LEADER_EXITED]);
    }

    /// Kills everything in it.
    pub fn kill(&self) {
        let _gone_already = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.kill();
        // It ends when everything inside is reaped, and the leader is the builder's to reap: a
        // builder that has not done so must not wait here for itself.
        let mut gone = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: KILL_WAIT_S,
            tv_nsec: 0,
        };
        if rustix::io::retry_on_intr(|| poll(&mut gone, Some(&timeout))) == Ok(1) {
            sys::wait_child(self.pid);
        }
    }
}

fn clone_init(
    namespaces: i32,
    cgroup: Option<BorrowedFd<'_>>,
    task: &InitTask<'_>,
) -> Result<(i32, OwnedFd), JailError> {
    let mut pidfd: RawFd = -1;
    let into = if cgroup.is_some() {
        CLONE_INTO_CGROUP
    } else {
        0
    };
    let arguments = CloneArgs {
        flags: u64::from(namespaces.cast_unsigned()) | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | into,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        // No exit signal: callers that wait for commands do not see the init.
        cgroup: cgroup.map_or(0, |it| it.as_raw_fd().unsigned_abs().into()),
        ..CloneArgs::default()
    };
    let mask = signals::block_all();
    #[expect(unsafe_code, reason = "the warden is system calls on prepared data")]
    // SAFETY: the child runs `run`, which neither allocates nor takes locks nor returns.
    let cloned = unsafe { sys::clone3_fork(&arguments) };
    if cloned == Ok(None) {
        init::run(task);
    }
    signals::set_mask(&mask);
    let pid = cloned.map_err(|errno| JailError::new("namespaces", errno))?;
    #[expect(unsafe_code, reason = "the kernel stored a descriptor")]
    // SAFETY: clone3 succeeded with CLONE_PIDFD, so it stored a fresh descriptor.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok((pid.unwrap_or(0), pidfd))
}

fn describe_failure(failed: InitFailure, plan: &JailPlan, sources: &BindSources) -> JailError {
    let path = |path: &CStr| PathBuf::from(std::ffi::OsString::from_vec(path.to_bytes().to_vec()));
    let errno = failed.errno;
    match failed.stage() {
        Some(InitStage::Ids) => JailError::new("inside ids", errno),
        Some(InitStage::Root) => JailError::new("new root", errno),
        Some(InitStage::Pivot) => JailError::new("pivot_root", errno),
        Some(InitStage::Capabilities) => JailError::new("capabilities", errno),
        Some(InitStage::Source) => match sources.all.get(failed.index) {
            Some(source) => JailError::on("bind mount", errno, path(&source.path)),
            None => JailError::new("bind mount", errno),
        },
        Some(InitStage::Mount) => match plan.ops.get(failed.index) {
            Some(step) => JailError {
                step: step.name(),
                errno,
                path: step.path().map(|it| Path::new("/").join(path(it))),
            },
            None => JailError::new("step", errno),
        },
        None => JailError::new("warden", errno),
    }
}

/// The sources of a plan and those of this build, with the mounts the builder clones itself.
struct BindSources {
    all: Vec<BindSource>,
    /// Where the caller is root: the mounts of its paths, because an init without the host's
    /// capabilities could not reach into other users' directories, and because only root may map
    /// ids.
    trees: Vec<Option<OwnedFd>>,
    terminal: Option<usize>,
    layers: Option<(usize, CString, CString)>,
    idmapped: bool,
}

impl BindSources {
    fn new(plan: &JailPlan, options: &JailOptions<'_>, spare_ids: bool) -> Result<Self, JailError> {
        let mut sources = Self {
            all: plan.sources.clone(),
            trees: Vec::new(),
            terminal: None,
            layers: None,
            idmapped: plan.idmapped,
        };
        if let Some(path) = options.terminal.and_then(terminal_path) {
            sources.terminal = Some(sources.add(&path, MountAccess::Device)?);
        }
        if let Some(overlay) = options.overlay.filter(|_| plan.overlay) {
            sources.add_layers(overlay)?;
        }
        if sources.all.len() > SOURCES_MAX {
            return Err(JailError::new("bind mount", Errno::TOOBIG));
        }
        if spare_ids {
            sources.clone_trees()?;
        }
        Ok(sources)
    }

    fn add(&mut self, path: &Path, access: MountAccess) -> Result<usize, JailError> {
        self.all.push(BindSource {
            path: c_path(path)?,
            access,
            required: access == MountAccess::Write,
            idmapped: access == MountAccess::Write,
        });
        Ok(self.all.len() - 1)
    }

    fn add_layers(&mut self, overlay: OverlayDirs<'_>) -> Result<(), JailError> {
        let invalid = || JailError::on("overlay", Errno::INVAL, overlay.upper);
        let above = overlay.upper.parent().ok_or_else(invalid)?;
        if overlay.work.parent() != Some(above) {
            return Err(invalid());
        }
        let name = |path: &Path| {
            let name = path
                .file_name()
                .map(OsStrExt::as_bytes)
                .ok_or_else(invalid)?;
            CString::new(name).map_err(|_| invalid())
        };
        let real = std::fs::canonicalize(above).map_err(|error| {
            let errno = errno_of(&error);
            JailError::on("overlay", errno, above)
        })?;
        let (upper, work) = (name(overlay.upper)?, name(overlay.work)?);
        self.layers = Some((self.add(&real, MountAccess::Write)?, upper, work));
        Ok(())
    }

    fn layers(&self) -> Option<LayerSource<'_>> {
        let (source, upper, work) = self.layers.as_ref()?;
        Some(LayerSource {
            source: *source,
            upper,
            work,
        })
    }

    fn clone_trees(&mut self) -> Result<(), JailError> {
        for source in &self.all {
            let tree = match source.idmapped {
                true => match mount_exec::clone_tree(&source.path, true) {
                    Ok(tree) => Some(tree),
                    Err(errno) if mount_exec::may_be_absent(source, errno) => None,
                    Err(errno) => return Err(source_error("bind mount", errno, source)),
                },
                false => None,
            };
            self.trees.push(tree);
        }
        Ok(())
    }

    /// Maps cloned mounts to the ids of the init's namespace.
    fn map_ids(&self, pid: i32) -> Result<(), JailError> {
        if self.trees.iter().all(Option::is_none) {
            return Ok(());
        }
        let path = format!("/proc/{pid}/ns/user");
        let ids = File::open(&path).map_err(|error| {
            let errno = errno_of(&error);
            JailError::on("mapped workspace", errno, path)
        })?;
        let ids = self.idmapped.then(|| ids.as_fd());
        for (source, tree) in self.all.iter().zip(&self.trees) {
            let Some(tree) = tree else { continue };
            let attributes = mount_exec::attributes(source.access);
            match sys::set_attributes(tree.as_fd(), attributes, ids) {
                Ok(()) => {}
                // Reading works as far as others may read.
                Err(_) if source.access == MountAccess::Read => {
                    sys::set_attributes(tree.as_fd(), attributes, None)
                        .map_err(|errno| source_error("bind mount", errno, source))?;
                }
                Err(errno) => return Err(source_error("mapped workspace", errno, source)),
            }
        }
        Ok(())
    }

    /// The descriptors the init inherits, in ascending order.
    fn keep_fds(&self, control: &OwnedFd) -> Vec<RawFd> {
        let tree_fds = self.trees.iter().flatten().map(AsRawFd::as_raw_fd);
        let mut keep: Vec<RawFd> = tree_fds.chain([control.as_raw_fd()]).collect();
        keep.sort_unstable();
        keep
    }
}

fn source_error(step: &'static str, errno: Errno, source: &BindSource) -> JailError {
    let path = source.path.to_bytes().to_vec();
    JailError::on(step, errno, std::ffi::OsString::from_vec(path))
}

/// The path of a terminal in /dev/pts; a terminal without a name there gets none inside.
fn terminal_path(terminal: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", terminal.as_raw_fd())).ok()?;
    path.starts_with("/dev/pts").then_some(path)
}
