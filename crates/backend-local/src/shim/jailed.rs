//! Spawning into a jail: the jail of a command of level high, its overlay and its egress proxy.
//!
//! Init and egress proxy are helper processes, children of the shim: neither members nor leftovers
//! of the command. The init ends with the shim (`PR_SET_PDEATHSIG`), and the jail with the init;
//! the egress proxy ends with its connection to the shim or with the init.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_egress::{EgressClient, EgressConfig, EgressError};
use ostler_model::sandbox_spec::{HostRule, NetworkAccess};
use ostler_model::{AutorunReport, ByteString, Capability, SandboxSpec};
use ostler_sandbox::autorun::AutorunSnapshot;
use ostler_sandbox::jail::{HostFacts, Jail, JailError, JailOptions, JailPlan, OverlayDirs};
use ostler_sandbox::overlay;
use ostler_sandbox::tree::Enclosure;
use ostler_sys::errno::errno_of;
use ostler_sys::pidfd;
use rustix::fs::{Gid, Mode as FileMode, OFlags, Uid, openat};
use rustix::io::Errno;

use super::launch_failure::LaunchFailure;
use super::state::ShimMode;
use crate::sys::proc;

/// How long an empty jail may take to end before it counts as one with leftovers, in milliseconds.
const EMPTY_JAIL_MS: u64 = 100;
/// The overlay's directory within the execution's.
const OVERLAY: &str = "overlay";
/// The egress proxy's log, in the execution's directory.
const NETWORK_LOG: &str = "network.jsonl";
/// The step at which the overlay's directories could not be made.
const STEP_OVERLAY: &str = "overlay";
/// The step at which the egress proxy could not be started.
const STEP_EGRESS: &str = "gate";
/// The step at which the ownership of standard streams could not be changed.
const STEP_CHOWN: &str = "stdio owner";

/// What a jail is built from and for.
pub(super) struct JailSite<'a> {
    /// Whether the shim is a process or a thread.
    pub(super) mode: ShimMode,
    /// The execution's directory.
    pub(super) dir: BorrowedFd<'a>,
    /// The command's cgroup in the unified hierarchy.
    pub(super) cgroup: Option<BorrowedFd<'a>>,
    /// The command's terminal.
    pub(super) terminal: Option<BorrowedFd<'a>>,
}

/// A running jail and its helpers. Dropping it ends everything: the egress proxy explicitly, the
/// jail as a consequence.
#[derive(Debug)]
pub(crate) struct RunningJail {
    jail: Jail,
    /// Whether the init has ended.
    exited: bool,
    egress: Option<EgressClient>,
    /// The files of its workspace that run automatically, before the start.
    autorun_before: Option<AutorunSnapshot>,
}

impl RunningJail {
    /// Builds the jail and starts its egress proxy.
    pub(super) fn build(spec: &SandboxSpec, site: &JailSite<'_>) -> Result<Self, LaunchFailure> {
        let layers = prepare_overlay(spec, site.dir)?;
        let plan = JailPlan::compile(spec, &HostFacts::read(spec)).map_err(jail_failure)?;
        let at = JailOptions {
            cgroup: site.cgroup,
            overlay: layers.as_ref().map(|layers| OverlayDirs {
                upper: &layers.upper,
                work: &layers.work,
            }),
            terminal: site.terminal,
            dies_with_parent: true,
        };
        let workspace = spec.workspace.as_ref().map(ByteString::as_path);
        let autorun_before = workspace.map(|workspace| {
            let upper = layers.as_ref().map(|layers| layers.upper.as_path());
            AutorunSnapshot::take(workspace, upper)
        });
        let jail = Jail::build(&plan, at).map_err(jail_failure)?;
        let mut running = Self {
            jail,
            exited: false,
            egress: None,
            autorun_before,
        };
        if let Some(hosts) = egress_hosts(spec) {
            let mut egress = running.start_egress(hosts, site)?;
            for forward in &spec.forwards {
                let (host, inside) = (forward.host, forward.inside);
                egress
                    .forward_blocking(host, inside)
                    .map_err(|error| LaunchFailure {
                        message: Some(format!("cannot forward port {forward}: {error}")),
                        ..egress_failure(&error)
                    })?;
            }
            running.egress = Some(egress);
        }
        Ok(running)
    }

    fn start_egress(
        &self,
        hosts: &[HostRule],
        site: &JailSite<'_>,
    ) -> Result<EgressClient, LaunchFailure> {
        if site.mode == ShimMode::Thread {
            return Err(LaunchFailure {
                step: STEP_EGRESS,
                errno: Errno::NOSYS,
                message: Some("a gate needs a keeper, and there is none".to_owned()),
            });
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        let log = openat(
            site.dir,
            NETWORK_LOG,
            flags,
            FileMode::RUSR | FileMode::WUSR,
        );
        let log = log.map_err(LaunchFailure::at(STEP_EGRESS))?;
        let start = EgressConfig {
            executable: Path::new("/proc/self/exe"),
            init: self.jail.pidfd(),
            namespaces: None,
            hosts,
            log: Some(log.as_fd()),
        };
        EgressClient::start(&start).map_err(|error| egress_failure(&error))
    }

    /// The jail to spawn into.
    pub(super) const fn jail(&self) -> &Jail {
        &self.jail
    }

    /// Changes the owner of the command's end of a channel to the user it runs as, so that it can
    /// be opened again by its name (`/dev/stderr`).
    pub(super) fn chown_channel(&self, channel: &OwnedFd) -> Result<(), LaunchFailure> {
        let (user, group) = self.jail.host_ids();
        if user == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::fchown(channel, Some(user), Some(group)).map_err(LaunchFailure::at(STEP_CHOWN))
    }

    /// Files in its workspace that run automatically and that the command created or changed.
    pub(super) fn autorun(&self) -> AutorunReport {
        let before = self.autorun_before.as_ref();
        before.map_or_else(AutorunReport::default, AutorunSnapshot::report)
    }

    /// Waits for the init's end, at most this long; true if it ended.
    fn wait_exit(&self, limit_ms: u64) -> bool {
        pidfd::has_ended_within(self.jail.pidfd(), Duration::from_millis(limit_ms))
    }
}

impl Enclosure for RunningJail {
    /// Helper processes of the command: children of the shim, and their children.
    fn helper_pids(&self) -> Vec<i32> {
        let mut pids = vec![self.jail.pid()];
        if let Some(egress) = &self.egress {
            pids.push(egress.pid());
            pids.extend(proc::descendants(egress.pid()));
        }
        pids
    }

    /// Descendants of the init: orphans, and their children. Children of the shim are not among
    /// them.
    fn member_pids(&self) -> Vec<i32> {
        if self.exited {
            return Vec::new();
        }
        proc::descendants(self.jail.pid())
    }

    /// Readable when the init has ended; none once that is known.
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        (!self.exited).then(|| self.jail.pidfd())
    }

    /// Whether a reaped process is a helper. The init is not reaped with others: it ends without a
    /// signal.
    fn is_helper(&self, pid: i32) -> bool {
        self.egress
            .as_ref()
            .is_some_and(|egress| egress.pid() == pid)
    }

    /// Handles the leader's end: the init ends with the last process, which may be at once. Waits
    /// for an empty jail to end, so that a command that leaves nothing does not appear to have
    /// leftovers.
    fn on_leader_exit(&mut self) {
        if self.exited {
            return;
        }
        self.jail.notify_leader_exited();
        if !proc::children(self.jail.pid()).is_empty() {
            return;
        }
        self.exited = self.wait_exit(EMPTY_JAIL_MS);
    }

    /// Whether no process is left inside: the kernel ends a pid namespace before its init.
    fn has_exited(&mut self) -> bool {
        self.exited = self.exited || self.wait_exit(0);
        self.exited
    }

    /// Kills every process inside.
    fn kill(&self) {
        if !self.exited {
            self.jail.kill();
        }
    }
}

impl Drop for RunningJail {
    fn drop(&mut self) {
        if let Some(egress) = self.egress.take() {
            egress.shutdown();
        }
    }
}

/// The allow list of the egress proxy, where one is needed: for hosts, or for forwarded ports.
fn egress_hosts(spec: &SandboxSpec) -> Option<&[HostRule]> {
    if spec.without.contains(&Capability::Gate) {
        return None;
    }
    match &spec.network {
        NetworkAccess::AllowList { hosts } => Some(hosts),
        NetworkAccess::None if !spec.forwards.is_empty() => Some(&[]),
        NetworkAccess::None | NetworkAccess::Full => None,
    }
}

/// The overlay's directories, created where the sandbox has an overlay.
fn prepare_overlay(
    spec: &SandboxSpec,
    dir: BorrowedFd<'_>,
) -> Result<Option<overlay::OverlayLayers>, LaunchFailure> {
    let Some(workspace) = spec.workspace.as_ref().filter(|_| spec.overlay) else {
        return Ok(None);
    };
    if spec.without.contains(&Capability::Overlay) {
        return Ok(None);
    }
    let store = path_of(dir).map_err(LaunchFailure::at(STEP_OVERLAY))?;
    let request = overlay::OverlayConfig {
        workspace: workspace.as_path(),
        protect: &spec.protect,
    };
    let made = overlay::prepare(&store.join(OVERLAY), &request);
    made.map(Some).map_err(|error| LaunchFailure {
        step: STEP_OVERLAY,
        errno: Errno::IO,
        message: Some(format!("cannot make the overlay: {error}")),
    })
}

/// The path of an open directory.
fn path_of(dir: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    std::fs::read_link(link).map_err(|error| errno_of(&error))
}

fn jail_failure(error: JailError) -> LaunchFailure {
    let on = error
        .path
        .map(|path| format!(" {}", path.display()))
        .unwrap_or_default();
    let reason = std::io::Error::from(error.errno);
    LaunchFailure {
        step: error.step,
        errno: error.errno,
        message: Some(format!(
            "it cannot be isolated: {}{on}: {reason}",
            error.step
        )),
    }
}

fn egress_failure(error: &EgressError) -> LaunchFailure {
    let (step, errno) = match error {
        EgressError::Setup { step, errno } => (step.name(), *errno),
        EgressError::Start(error) => (STEP_EGRESS, errno_of(error)),
        EgressError::TooManyRules => (STEP_EGRESS, Errno::TOOBIG),
        EgressError::Timeout => (STEP_EGRESS, Errno::TIMEDOUT),
        EgressError::Closed => (STEP_EGRESS, Errno::PIPE),
        EgressError::Port(errno) => (STEP_EGRESS, *errno),
    };
    LaunchFailure {
        step,
        errno,
        message: Some(format!("cannot open the gate to the network: {error}")),
    }
}
