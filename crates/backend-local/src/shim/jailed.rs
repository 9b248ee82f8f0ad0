//! Spawning into a jail: the jail of a command of level high, its overlay and its egress proxy.
//!
//! Init and egress proxy are helper processes, children of the shim: neither members nor leftovers
//! of the command. The init ends with the shim (`PR_SET_PDEATHSIG`), and the jail with the init;
//! the egress proxy ends with its connection to the shim or with the init. One that ends before the
//! init, because something killed it, is not replaced: the jail has no network any more, which is
//! reported.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_egress::{EgressClient, EgressConfig, EgressError};
use ostler_model::sandbox_spec::{HostRule, NetworkAccess};
use ostler_model::termination::WaitStatus;
use ostler_model::{AutorunReport, ByteString, Capability, MissingCapability, SandboxSpec};
use ostler_sandbox::autorun::AutorunSnapshot;
use ostler_sandbox::jail::{HostFacts, Jail, JailError, JailOptions, JailPlan, OverlayDirs};
use ostler_sandbox::overlay;
use ostler_sandbox::spawn::wait::Reaped;
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
    /// The egress proxy, where one was started.
    egress: Option<Box<JailEgress>>,
    /// The files of its workspace that run automatically, before the start.
    autorun_before: Option<AutorunSnapshot>,
}

/// The egress proxy of a jail.
#[derive(Debug)]
struct JailEgress {
    /// The connection to it, while it runs.
    client: Option<EgressClient>,
    /// It and its child, which passes to the shim when it ends, as long as they are not reaped.
    pids: Vec<i32>,
    /// What the command loses when it ends.
    purpose: &'static str,
    /// What was lost and is not reported yet.
    lost: Option<MissingCapability>,
}

impl JailEgress {
    fn new(client: EgressClient, spec: &SandboxSpec) -> Self {
        let mut pids = vec![client.pid()];
        pids.extend(proc::descendants(client.pid()));
        Self {
            client: Some(client),
            pids,
            purpose: egress_purpose(spec),
            lost: None,
        }
    }
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
            running.egress = Some(Box::new(JailEgress::new(egress, spec)));
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

    /// What the command has lost since the last call.
    pub(super) fn take_lost(&mut self) -> Option<MissingCapability> {
        self.egress.as_mut().and_then(|egress| egress.lost.take())
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
        pids.extend(self.egress.iter().flat_map(|egress| &egress.pids));
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

    /// Handles the end of the egress proxy or its child. The init is not reaped with others: it ends
    /// without a signal. The proxy ends by itself only when the init, or its own helper, has ended.
    fn on_helper_reaped(&mut self, reaped: &Reaped) -> bool {
        let Some(egress) = &mut self.egress else {
            return false;
        };
        let Some(index) = egress.pids.iter().position(|it| *it == reaped.pid) else {
            return false;
        };
        egress.pids.swap_remove(index);
        let is_proxy = |client: &mut EgressClient| client.pid() == reaped.pid;
        if egress.client.take_if(is_proxy).is_some() {
            let lost = lost_egress(reaped.status, egress.purpose);
            egress.lost = (!self.exited && !has_ended(&self.jail)).then_some(lost);
        }
        true
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
        let egress = self.egress.as_mut();
        if let Some(client) = egress.and_then(|egress| egress.client.take()) {
            client.shutdown();
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

/// Whether the init of a jail has ended.
fn has_ended(jail: &Jail) -> bool {
    pidfd::has_ended_within(jail.pidfd(), Duration::ZERO)
}

/// What a command loses when its egress proxy ends.
const fn egress_purpose(spec: &SandboxSpec) -> &'static str {
    match (&spec.network, spec.forwards.is_empty()) {
        (NetworkAccess::AllowList { .. }, true) => "the listed hosts can no longer be reached",
        (NetworkAccess::AllowList { .. }, false) => {
            "the listed hosts can no longer be reached, and no forwarded port leads to the command"
        }
        (NetworkAccess::None | NetworkAccess::Full, _) => {
            "no forwarded port leads to the command any more"
        }
    }
}

/// What is reported of an egress proxy that ended before the jail.
fn lost_egress(status: WaitStatus, purpose: &str) -> MissingCapability {
    MissingCapability {
        ability: Capability::Gate,
        reason: format!("the egress proxy has ended too early ({status}): {purpose}"),
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

#[cfg(test)]
mod tests {
    use ostler_model::Signal;

    use super::*;

    #[test]
    fn the_end_of_an_egress_proxy_is_reported_with_what_it_was_for() {
        let list = || NetworkAccess::AllowList { hosts: Vec::new() };
        let forwards = || vec!["8080:80".parse().expect("two ports")];
        let cases = [
            (list(), Vec::new(), "hosts can no longer be reached"),
            (list(), forwards(), "reached, and no forwarded port leads"),
            (NetworkAccess::None, forwards(), "no forwarded port leads"),
        ];
        for (network, forwards, expected) in cases {
            let spec = SandboxSpec {
                network,
                forwards,
                ..SandboxSpec::default()
            };
            let killed = WaitStatus::Signal(Signal::KILL);
            let lost = lost_egress(killed, egress_purpose(&spec));
            assert_eq!(lost.ability, Capability::Gate);
            let begin = "the egress proxy has ended too early (ended by SIGKILL): ";
            let purpose = lost.reason.strip_prefix(begin).expect("how it ended");
            assert!(purpose.contains(expected), "{purpose}");
        }
    }
}
