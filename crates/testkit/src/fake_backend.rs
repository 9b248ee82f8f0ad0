//! A [`Backend`] without processes, for unit tests of the layers above it: spawns, events and ends
//! come when a test requests them. It writes the files a shim would write.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ostler_backend::spec_file::{SPEC_FILE, SPEC_FILE_VERSION, ShimIdentity, SpecFile};
use ostler_backend::{
    Backend, BoxFuture, ContainerError, ControlCommand, ControlError, EXIT_RECORD_VERSION,
    ExitRecord, KillReason, LaunchPlan, LeaderOutcome, ProcessControl, ProcessEvent, ReceivedEvent,
    RecoveryOutcome, SnapshotError, SpawnError, SpawnHandle, UsageReading,
};
use ostler_model::termination::WaitStatus;
use ostler_model::{
    BackendName, Capability, CapabilitySet, ContainerSpec, ExecutionId, LimitBackend, LostReason,
    Signal, SnapshotRequest, Spec, Timestamp, TreeSnapshot, Usage,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::fake_containers::FakeContainers;

/// The capacity of the event channel.
const EVENTS_MAX: usize = 64;
const PID: u32 = 4_242;

/// How a spawn behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnBehavior {
    /// It ends at once with this status.
    Exit(WaitStatus),
    /// It runs until it is ended by a command or by [`FakeBackend::end`].
    Run,
    /// Its program cannot be executed.
    SpawnFailed {
        /// The kernel's error number.
        errno: i32,
    },
    /// The spawn is refused with this error.
    Refuse(SpawnError),
}

type Script = Box<dyn Fn(&LaunchPlan) -> SpawnBehavior + Send + Sync>;

/// A backend controlled by a test.
pub struct FakeBackend {
    executions: PathBuf,
    capabilities: CapabilitySet,
    script: Script,
    input_limit: u64,
    snapshot: Mutex<TreeSnapshot>,
    snapshot_count: AtomicUsize,
    usage: Mutex<Option<UsageReading>>,
    trees: Mutex<HashMap<ExecutionId, Arc<FakeTree>>>,
    containers: FakeContainers,
    plans: Mutex<HashMap<ExecutionId, LaunchPlan>>,
}

impl fmt::Debug for FakeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

/// One simulated process tree.
#[derive(Debug)]
struct FakeTree {
    dir: PathBuf,
    attempt: u32,
    started_at: Timestamp,
    input_limit: u64,
    state: Mutex<FakeTreeState>,
}

#[derive(Debug)]
struct FakeTreeState {
    events: Option<mpsc::Sender<ReceivedEvent>>,
    commands: Vec<ControlCommand>,
    exited: bool,
}

impl FakeBackend {
    /// A backend over a state directory in which every spawn behaves as `script` says. Its
    /// capabilities are those of a durable backend with cgroups.
    pub fn new(
        state_dir: &Path,
        script: impl Fn(&LaunchPlan) -> SpawnBehavior + Send + Sync + 'static,
    ) -> Self {
        Self {
            executions: state_dir.join("executions"),
            capabilities: CapabilitySet {
                root: false,
                present: vec![
                    Capability::CleanEnvironment,
                    Capability::OwnGroup,
                    Capability::TreeKill,
                    Capability::OwnCgroup,
                    Capability::PidsLimit,
                    Capability::Durable,
                ],
                missing: Vec::new(),
                backend: LimitBackend::CgroupV2,
            },
            script: Box::new(script),
            input_limit: u64::MAX,
            snapshot: Mutex::default(),
            snapshot_count: AtomicUsize::new(0),
            usage: Mutex::default(),
            trees: Mutex::default(),
            containers: FakeContainers::default(),
            plans: Mutex::default(),
        }
    }

    /// The same backend with other capabilities.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: CapabilitySet) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The same backend, whose programs accept at most this many bytes of each input.
    #[must_use]
    pub fn with_input_limit(mut self, bytes: u64) -> Self {
        self.input_limit = bytes;
        self
    }

    /// The same backend, whose containers enforce this.
    #[must_use]
    pub fn with_containers(self, capabilities: CapabilitySet) -> Self {
        self.containers.set_capabilities(Some(capabilities));
        self
    }

    /// Sets why no container can be had from now on.
    pub fn set_container_problem(&self, problem: Option<ContainerError>) {
        self.containers.set_problem(problem);
    }

    /// The specifications that were checked so far.
    #[must_use]
    pub fn checked_containers(&self) -> Vec<ContainerSpec> {
        self.containers.checked()
    }

    /// The plan of an execution's newest attempt.
    #[must_use]
    pub fn plan(&self, id: ExecutionId) -> Option<LaunchPlan> {
        self.plans.lock().get(&id).cloned()
    }

    /// Sets the result of every later snapshot.
    pub fn set_snapshot(&self, snapshot: TreeSnapshot) {
        *self.snapshot.lock() = snapshot;
    }

    /// Sets the result of every later reading of the usage of a tree.
    pub fn set_usage(&self, usage: Option<UsageReading>) {
        *self.usage.lock() = usage;
    }

    /// How many snapshots were taken.
    #[must_use]
    pub fn snapshot_count(&self) -> usize {
        self.snapshot_count.load(Ordering::Relaxed)
    }

    /// Ends a running execution as if by itself. False when it had ended before.
    pub fn end(&self, id: ExecutionId, status: WaitStatus) -> bool {
        self.tree(id).is_some_and(|it| it.exit(status, None))
    }

    /// Simulates a killed shim: no record, no members.
    pub fn kill_shim(&self, id: ExecutionId) -> bool {
        let tree = self.trees.lock().remove(&id);
        tree.is_some_and(|puppet| {
            let mut state = puppet.state.lock();
            state.exited = true;
            state.send_event(ProcessEvent::Lost);
            state.events = None;
            true
        })
    }

    /// Sends an event of a running execution.
    pub fn send_event(&self, id: ExecutionId, report: ProcessEvent) {
        if let Some(tree) = self.tree(id) {
            tree.state.lock().send_event(report);
        }
    }

    /// The commands a tree has received so far.
    #[must_use]
    pub fn commands(&self, id: ExecutionId) -> Vec<ControlCommand> {
        self.tree(id)
            .map(|puppet| puppet.state.lock().commands.clone())
            .unwrap_or_default()
    }

    /// How many executions run.
    #[must_use]
    pub fn running(&self) -> usize {
        let trees = self.trees.lock();
        trees.values().filter(|it| !it.state.lock().exited).count()
    }

    fn tree(&self, id: ExecutionId) -> Option<Arc<FakeTree>> {
        self.trees.lock().get(&id).cloned()
    }

    fn start(&self, plan: &LaunchPlan) -> Result<SpawnHandle, SpawnError> {
        let behavior = (self.script)(plan);
        if let SpawnBehavior::Refuse(error) = behavior {
            return Err(error);
        }
        self.plans.lock().insert(plan.id, plan.clone());
        let dir = self.executions.join(plan.id.to_string());
        write_spec(&dir, plan).map_err(|error| SpawnError::Storage(error.to_string()))?;
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let tree = Arc::new(FakeTree {
            dir,
            attempt: plan.attempt,
            started_at: Timestamp::now(),
            input_limit: self.input_limit,
            state: Mutex::new(FakeTreeState {
                events: Some(events),
                commands: Vec::new(),
                exited: false,
            }),
        });
        self.trees.lock().insert(plan.id, Arc::clone(&tree));
        match behavior {
            SpawnBehavior::Exit(status) => {
                tree.exit(status, None);
            }
            SpawnBehavior::SpawnFailed { errno } => {
                tree.finish(LeaderOutcome::SpawnFailed {
                    step: "exec".to_owned(),
                    errno: Some(errno),
                    message: std::io::Error::from_raw_os_error(errno).to_string(),
                });
            }
            SpawnBehavior::Run if plan.report_start => {
                tree.state.lock().send_event(ProcessEvent::Started {
                    pid: PID,
                    at: tree.started_at,
                });
            }
            SpawnBehavior::Run | SpawnBehavior::Refuse(_) => {}
        }
        Ok(SpawnHandle {
            control: Arc::new(FakeControl(tree)),
            events: receiver,
        })
    }

    fn reattach(&self, id: ExecutionId) -> RecoveryOutcome {
        let dir = self.executions.join(id.to_string());
        if let Some(tree) = self.tree(id).filter(|it| !it.state.lock().exited) {
            let (events, receiver) = mpsc::channel(EVENTS_MAX);
            tree.state.lock().events = Some(events);
            return RecoveryOutcome::Running {
                attempt: tree.attempt,
                pid: PID,
                started_at: tree.started_at,
                handle: SpawnHandle {
                    control: Arc::new(FakeControl(tree)),
                    events: receiver,
                },
            };
        }
        let record = std::fs::read(dir.join("exit")).ok();
        match record.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(record) => RecoveryOutcome::Exited(Box::new(record)),
            None => RecoveryOutcome::Lost {
                reason: LostReason::NoRecord,
                attempt: 0,
                swept: 0,
            },
        }
    }
}

fn write_spec(dir: &Path, plan: &LaunchPlan) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let spec: Spec = serde_json::from_slice(&plan.spec)?;
    let file = SpecFile {
        version: SPEC_FILE_VERSION,
        id: plan.id,
        attempt: plan.attempt,
        created_at: Timestamp::now(),
        boot: ShimIdentity {
            id: "scripted".to_owned(),
            shim_pid: PID,
            shim_start: 1,
            in_process: false,
        },
        spec,
    };
    std::fs::write(dir.join(SPEC_FILE), serde_json::to_vec(&file)?)
}

impl FakeTree {
    fn exit(&self, status: WaitStatus, kill_reason: Option<KillReason>) -> bool {
        self.finish(LeaderOutcome::Ended {
            status,
            kill_reason,
        })
    }

    /// Writes the record and reports it; only the first end counts.
    fn finish(&self, outcome: LeaderOutcome) -> bool {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.exited, true) {
            return false;
        }
        let ended_at = Timestamp::now();
        let lived = ended_at.duration_since(self.started_at).as_millis();
        let record = ExitRecord {
            limits_hit: Vec::new(),
            version: EXIT_RECORD_VERSION,
            attempt: self.attempt,
            pid: PID,
            started_at: self.started_at,
            ended_at,
            lived_ms: u64::try_from(lived).unwrap_or(0),
            outcome,
            leftovers: 0,
            survivors: Vec::new(),
            out_of_memory: false,
            usage: Usage::default(),
            output_end: 0,
            journal_error: None,
            lost_bytes: 0,
            autorun: Box::default(),
            lost_capabilities: Vec::new(),
        };
        if let Ok(bytes) = serde_json::to_vec(&record) {
            // A directory that was removed takes no record; the event is sent all the same.
            let _gone = std::fs::write(self.dir.join("exit"), bytes).is_err();
        }
        state.send_event(ProcessEvent::Exited {
            record: Box::new(record),
            idle: false,
        });
        state.events = None;
        true
    }
}

impl FakeTreeState {
    fn send_event(&self, report: ProcessEvent) {
        if let Some(events) = &self.events {
            // An engine that is gone receives nothing.
            let _gone = events.try_send(report.into()).is_err();
        }
    }
}

/// The control handle of a simulated tree.
#[derive(Debug)]
struct FakeControl(Arc<FakeTree>);

impl ProcessControl for FakeControl {
    fn send(&self, command: ControlCommand) -> BoxFuture<'_, Result<(), ControlError>> {
        let sent = {
            let mut state = self.0.state.lock();
            state.commands.push(command.clone());
            if state.exited {
                Err(ControlError::Ended)
            } else {
                Ok(())
            }
        };
        if sent.is_ok() {
            match command {
                ControlCommand::Stop { grace } => {
                    let signal = if grace.is_zero() {
                        Signal::KILL
                    } else {
                        Signal::TERM
                    };
                    self.0
                        .exit(WaitStatus::Signal(signal), Some(KillReason::Requested));
                }
                ControlCommand::Signal(signal) => {
                    self.0.exit(WaitStatus::Signal(signal), None);
                }
                ControlCommand::Input(bytes) | ControlCommand::SecretInput(bytes) => {
                    self.0.state.lock().send_event(ProcessEvent::InputAccepted {
                        len: self.0.input_limit.min(bytes.len() as u64),
                    });
                }
                ControlCommand::InputOnce { bytes, .. } if bytes.is_empty() => {
                    self.0
                        .state
                        .lock()
                        .send_event(ProcessEvent::InputProgress { input: None });
                }
                ControlCommand::InputOnce { bytes, .. } => {
                    self.0.state.lock().send_event(ProcessEvent::InputAccepted {
                        len: self.0.input_limit.min(bytes.len() as u64),
                    });
                }
                ControlCommand::Freeze(frozen) => {
                    self.0
                        .state
                        .lock()
                        .send_event(ProcessEvent::Frozen { frozen });
                }
                ControlCommand::CloseInput
                | ControlCommand::Resize(_)
                | ControlCommand::Watch(_)
                | ControlCommand::Retain(_) => {}
            }
        }
        Box::pin(std::future::ready(sent))
    }
}

impl Backend for FakeBackend {
    fn name(&self) -> BackendName {
        BackendName::local()
    }

    fn capabilities(&self) -> CapabilitySet {
        self.capabilities.clone()
    }

    fn container_capabilities(&self) -> Option<CapabilitySet> {
        self.containers.capabilities()
    }

    fn check_container<'a>(
        &'a self,
        spec: &'a ContainerSpec,
    ) -> BoxFuture<'a, Result<(), ContainerError>> {
        Box::pin(std::future::ready(self.containers.check(spec)))
    }

    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>> {
        Box::pin(std::future::ready(self.start(&plan)))
    }

    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome> {
        Box::pin(std::future::ready(self.reattach(id)))
    }

    /// A simulated tree has no processes except those a test [sets](FakeBackend::set_snapshot).
    fn snapshot(
        &self,
        _id: ExecutionId,
        _request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>> {
        self.snapshot_count.fetch_add(1, Ordering::Relaxed);
        let snapshot = self.snapshot.lock();
        Box::pin(std::future::ready(Ok(snapshot.clone())))
    }

    /// A simulated tree uses what a test [sets](FakeBackend::set_usage), one second later at each
    /// reading.
    fn usage<'a>(&'a self, ids: &'a [ExecutionId]) -> BoxFuture<'a, Vec<Option<UsageReading>>> {
        let mut usage = self.usage.lock();
        if let Some(reading) = usage.as_mut() {
            reading.at += Duration::from_secs(1);
            reading.instant += Duration::from_secs(1);
        }
        Box::pin(std::future::ready(vec![*usage; ids.len()]))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
