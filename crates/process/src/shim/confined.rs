//! Birth within walls: the cell a command of level high is born in, its overlay and its gate.
//!
//! Warden and gate are children of the shim and helpers of ours: neither members nor leftovers
//! of the command. The warden ends with the shim (`PR_SET_PDEATHSIG`), and the cell with the
//! warden; the gate ends with its line to the shim or with the warden.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ostler_model::confinement::{HostRule, Network};
use ostler_model::{Ability, AutorunReport, Confinement, Text};
use ostler_sandbox::autorun::Snapshot;
use ostler_sandbox::cell::{BuildAt, Cell, CellError, CellPlan, Host, Overlay};
use ostler_sandbox::overlay;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Gid, Mode as FileMode, OFlags, Uid, openat};
use rustix::io::Errno;

use super::birth::Stillbirth;
use super::serve::Mode;
use crate::gate::{GateError, GateLink, GateStart};
use crate::sys::proc;

/// How long an empty cell may take to be gone before it counts as one with leftovers, in
/// milliseconds.
const EMPTY_MS: i64 = 100;
/// The overlay's directory in the execution's.
const OVERLAY: &str = "overlay";
/// What the gate decided, in the execution's directory.
const NETWORK_LOG: &str = "network.jsonl";
/// The step at which a confinement could not be read.
const STEP_CONFINEMENT: &str = "confinement";
/// The step at which the overlay's directories could not be made.
const STEP_OVERLAY: &str = "overlay";
/// The step at which the gate could not be started.
const STEP_GATE: &str = "gate";
/// The step at which standard streams could not be handed over to the command's user.
const STEP_CHOWN: &str = "stdio owner";

/// Where a cell is built.
pub(super) struct Site<'a> {
    /// Who builds.
    pub(super) mode: Mode,
    /// The execution's directory.
    pub(super) dir: BorrowedFd<'a>,
    /// The command's cgroup in the unified hierarchy.
    pub(super) cgroup: Option<BorrowedFd<'a>>,
    /// The command's terminal.
    pub(super) terminal: Option<BorrowedFd<'a>>,
}

/// A living cell with what serves it. Dropping it ends everything: the gate here, the cell by
/// itself.
#[derive(Debug)]
pub(crate) struct Confined {
    cell: Cell,
    /// The warden has ended.
    gone: bool,
    gate: Option<GateLink>,
    /// What its workspace was like before.
    before: Option<Snapshot>,
}

/// The confinement of a plan. What cannot be understood is no reason to do without it.
pub(super) fn read(text: &str) -> Result<Confinement, Stillbirth> {
    serde_json::from_str(text).map_err(|error| Stillbirth {
        step: STEP_CONFINEMENT,
        errno: Errno::INVAL,
        told: Some(format!("the confinement cannot be read: {error}")),
    })
}

impl Confined {
    /// Builds the cell and starts its gate.
    pub(super) fn build(confinement: &Confinement, site: &Site<'_>) -> Result<Self, Stillbirth> {
        let layers = layers(confinement, site.dir)?;
        let plan = CellPlan::compile(confinement, &Host::read(confinement)).map_err(of_cell)?;
        let at = BuildAt {
            cgroup: site.cgroup,
            overlay: layers.as_ref().map(|layers| Overlay {
                upper: &layers.upper,
                work: &layers.work,
            }),
            terminal: site.terminal,
            dies_with_parent: true,
        };
        let workspace = confinement.workspace.as_ref().map(Text::as_path);
        let before = workspace.map(|workspace| {
            let upper = layers.as_ref().map(|layers| layers.upper.as_path());
            Snapshot::take(workspace, upper)
        });
        let cell = Cell::build(&plan, at).map_err(of_cell)?;
        let mut confined = Self {
            cell,
            gone: false,
            gate: None,
            before,
        };
        if let Some(hosts) = allowed(confinement) {
            let mut gate = confined.gate(hosts, site)?;
            for forward in &confinement.forwards {
                let (host, inside) = (forward.host, forward.inside);
                gate.forward_now(host, inside).map_err(|error| Stillbirth {
                    told: Some(format!("cannot forward port {forward}: {error}")),
                    ..of_gate(&error)
                })?;
            }
            confined.gate = Some(gate);
        }
        Ok(confined)
    }

    fn gate(&self, hosts: &[HostRule], site: &Site<'_>) -> Result<GateLink, Stillbirth> {
        if site.mode == Mode::Thread {
            return Err(Stillbirth {
                step: STEP_GATE,
                errno: Errno::NOSYS,
                told: Some("a gate needs a keeper, and there is none".to_owned()),
            });
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        let log = openat(
            site.dir,
            NETWORK_LOG,
            flags,
            FileMode::RUSR | FileMode::WUSR,
        );
        let log = log.map_err(Stillbirth::at(STEP_GATE))?;
        let start = GateStart {
            executable: Path::new("/proc/self/exe"),
            warden: self.cell.pidfd(),
            spaces: None,
            hosts,
            log: Some(log.as_fd()),
        };
        GateLink::start(&start).map_err(|error| of_gate(&error))
    }

    /// What to be born in.
    pub(super) const fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Gives the command's end of a channel to the user it runs as, so that it can be opened
    /// again by its name (`/dev/stderr`).
    pub(super) fn give(&self, channel: &OwnedFd) -> Result<(), Stillbirth> {
        let (user, group) = self.cell.host_ids();
        if user == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::fchown(channel, Some(user), Some(group)).map_err(Stillbirth::at(STEP_CHOWN))
    }

    /// What the command left in its workspace that is run or obeyed unasked.
    pub(super) fn autorun(&self) -> AutorunReport {
        let before = self.before.as_ref();
        before.map_or_else(AutorunReport::default, Snapshot::report)
    }

    /// Processes of ours around the command: children of the shim, and theirs.
    pub(super) fn companions(&self) -> Vec<i32> {
        let mut found = vec![self.cell.pid()];
        if let Some(gate) = &self.gate {
            found.push(gate.pid());
            found.extend(proc::descendants(gate.pid()));
        }
        found
    }

    /// Whoever descends from the warden: orphans, and what they started. Children of the shim
    /// are not among them.
    pub(super) fn inhabitants(&self) -> Vec<i32> {
        if self.gone {
            return Vec::new();
        }
        proc::descendants(self.cell.pid())
    }

    /// Readable when the warden has ended; none once that is known.
    pub(super) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        (!self.gone).then(|| self.cell.pidfd())
    }

    /// Whether who was reaped is one of ours. The warden is not reaped with others: it ends
    /// without a signal.
    pub(super) fn is_helper(&self, pid: i32) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.pid() == pid)
    }

    /// The leader is gone: the warden goes with the last process, which may be at once. Waits
    /// for an empty cell, so that a command that leaves nothing is not thought to.
    pub(super) fn leader_ended(&mut self) {
        if self.gone {
            return;
        }
        self.cell.leader_ended();
        if !proc::children(self.cell.pid()).is_empty() {
            return;
        }
        self.gone = self.await_end(EMPTY_MS);
    }

    /// Waits for the warden's end, at most so long; whether it came.
    fn await_end(&self, limit_ms: i64) -> bool {
        let limit = Timespec {
            tv_sec: limit_ms / 1_000,
            tv_nsec: limit_ms % 1_000 * 1_000_000,
        };
        let mut polled = [PollFd::from_borrowed_fd(self.cell.pidfd(), PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    /// Whether nobody is left inside: the kernel ends a pid namespace before its init.
    pub(super) fn is_gone(&mut self) -> bool {
        self.gone = self.gone || self.await_end(0);
        self.gone
    }

    /// Ends everybody inside.
    pub(super) fn kill(&self) {
        if !self.gone {
            self.cell.kill();
        }
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.end();
        }
    }
}

/// The hosts a gate lets through, where one is needed: for them, or for forwarded ports.
fn allowed(confinement: &Confinement) -> Option<&[HostRule]> {
    if confinement.without.contains(&Ability::Gate) {
        return None;
    }
    match &confinement.network {
        Network::AllowList { hosts } => Some(hosts),
        Network::None if !confinement.forwards.is_empty() => Some(&[]),
        Network::None | Network::Full => None,
    }
}

/// The overlay's directories, made where one is asked for.
fn layers(
    confinement: &Confinement,
    dir: BorrowedFd<'_>,
) -> Result<Option<overlay::Layers>, Stillbirth> {
    let Some(workspace) = confinement
        .workspace
        .as_ref()
        .filter(|_| confinement.overlay)
    else {
        return Ok(None);
    };
    if confinement.without.contains(&Ability::Overlay) {
        return Ok(None);
    }
    let store = path_of(dir).map_err(Stillbirth::at(STEP_OVERLAY))?;
    let wanted = overlay::Wanted {
        workspace: workspace.as_path(),
        protect: &confinement.protect,
    };
    let made = overlay::prepare(&store.join(OVERLAY), &wanted);
    made.map(Some).map_err(|error| Stillbirth {
        step: STEP_OVERLAY,
        errno: Errno::IO,
        told: Some(format!("cannot make the overlay: {error}")),
    })
}

/// Where an open directory is.
fn path_of(dir: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    std::fs::read_link(link).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn of_cell(error: CellError) -> Stillbirth {
    let on = error
        .path
        .map(|path| format!(" {}", path.display()))
        .unwrap_or_default();
    let reason = std::io::Error::from(error.errno);
    Stillbirth {
        step: error.step,
        errno: error.errno,
        told: Some(format!("cannot wall it off: {}{on}: {reason}", error.step)),
    }
}

fn of_gate(error: &GateError) -> Stillbirth {
    let (step, errno) = match error {
        GateError::Setup { step, errno } => (step.name(), *errno),
        GateError::Start(error) => (STEP_GATE, Errno::from_io_error(error).unwrap_or(Errno::IO)),
        GateError::TooMany => (STEP_GATE, Errno::TOOBIG),
        GateError::Silent => (STEP_GATE, Errno::TIMEDOUT),
        GateError::Gone => (STEP_GATE, Errno::PIPE),
        GateError::Port(errno) => (STEP_GATE, *errno),
    };
    Stillbirth {
        step,
        errno,
        told: Some(format!("cannot open the gate to the network: {error}")),
    }
}
