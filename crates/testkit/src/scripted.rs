//! A [`Place`] without processes, for unit tests of what stands above it: births, reports and
//! deaths come when a test says so. It writes the files a shim would write.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ostler_model::ending::WaitStatus;
use ostler_model::{
    Abilities, Ability, Evidence, ExecutionId, LimitBackend, LostReason, Observation, PlaceName,
    Signal, Spec, Timestamp, Usage,
};
use ostler_process::place::EXIT_RECORD_VERSION;
use ostler_process::spec_file::{BootStamp, SPEC_FILE, SPEC_FILE_VERSION, SpecFile};
use ostler_process::{
    Birth, BoxFuture, Control, ControlError, ExitRecord, Found, Ladder, LaunchPlan, ObserveError,
    Order, Outcome, Place, Report, SpawnError,
};
use tokio::sync::mpsc;

/// Reports that wait for the engine.
const REPORTS: usize = 64;
const PID: u32 = 4_242;

/// What becomes of a birth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It ends at once with this status.
    Exit(WaitStatus),
    /// It runs until somebody ends it: an order, or [`Scripted::end`].
    Run,
    /// Its program cannot be executed.
    NotBorn {
        /// The kernel's error number.
        errno: i32,
    },
    /// Nobody gives birth.
    Refuse(SpawnError),
}

type Script = Box<dyn Fn(&LaunchPlan) -> Act + Send + Sync>;

/// The scripted place.
pub struct Scripted {
    executions: PathBuf,
    abilities: Abilities,
    script: Script,
    appetite: u64,
    shown: Mutex<Evidence>,
    looks: AtomicUsize,
    puppets: Mutex<HashMap<ExecutionId, Arc<Puppet>>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

/// One pretended tree.
#[derive(Debug)]
struct Puppet {
    dir: PathBuf,
    attempt: u32,
    started_at: Timestamp,
    appetite: u64,
    state: Mutex<Strings>,
}

#[derive(Debug)]
struct Strings {
    reports: Option<mpsc::Sender<Report>>,
    orders: Vec<Order>,
    over: bool,
}

impl Scripted {
    /// A place over a state directory where every birth goes as `script` says. Abilities are
    /// those of a durable place with cgroups.
    pub fn new(
        state_dir: &Path,
        script: impl Fn(&LaunchPlan) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self {
            executions: state_dir.join("executions"),
            abilities: Abilities {
                root: false,
                present: vec![
                    Ability::CleanEnvironment,
                    Ability::OwnGroup,
                    Ability::TreeKill,
                    Ability::OwnCgroup,
                    Ability::PidsLimit,
                    Ability::Durable,
                ],
                missing: Vec::new(),
                backend: LimitBackend::CgroupV2,
            },
            script: Box::new(script),
            appetite: u64::MAX,
            shown: Mutex::default(),
            looks: AtomicUsize::new(0),
            puppets: Mutex::default(),
        }
    }

    /// The same place with other abilities.
    #[must_use]
    pub fn with_abilities(mut self, abilities: Abilities) -> Self {
        self.abilities = abilities;
        self
    }

    /// The same place, whose programs take at most so many bytes of each input.
    #[must_use]
    pub fn with_appetite(mut self, bytes: u64) -> Self {
        self.appetite = bytes;
        self
    }

    /// What everybody who looks sees from now on.
    pub fn show(&self, evidence: Evidence) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = evidence;
    }

    /// How many times somebody looked.
    #[must_use]
    pub fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }

    /// Ends a running one by itself. False when it had ended before.
    pub fn end(&self, id: ExecutionId, status: WaitStatus) -> bool {
        self.puppet(id).is_some_and(|it| it.exit(status, None))
    }

    /// Its shim is killed: no record, no members.
    pub fn kill_shim(&self, id: ExecutionId) -> bool {
        let puppet = self.lock().remove(&id);
        puppet.is_some_and(|puppet| {
            let mut strings = puppet.lock();
            strings.over = true;
            strings.report(Report::Gone);
            strings.reports = None;
            true
        })
    }

    /// Reports something about a running one.
    pub fn report(&self, id: ExecutionId, report: Report) {
        if let Some(puppet) = self.puppet(id) {
            puppet.lock().report(report);
        }
    }

    /// The orders a tree was given so far.
    #[must_use]
    pub fn orders(&self, id: ExecutionId) -> Vec<Order> {
        self.puppet(id)
            .map(|puppet| puppet.lock().orders.clone())
            .unwrap_or_default()
    }

    /// How many run.
    #[must_use]
    pub fn running(&self) -> usize {
        let puppets = self.lock();
        puppets.values().filter(|it| !it.lock().over).count()
    }

    fn puppet(&self, id: ExecutionId) -> Option<Arc<Puppet>> {
        self.lock().get(&id).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, Arc<Puppet>>> {
        self.puppets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_birth(&self, plan: &LaunchPlan) -> Result<Birth, SpawnError> {
        let act = (self.script)(plan);
        if let Act::Refuse(error) = act {
            return Err(error);
        }
        let dir = self.executions.join(plan.id.to_string());
        write_spec(&dir, plan).map_err(|error| SpawnError::Storage(error.to_string()))?;
        let (reports, receiver) = mpsc::channel(REPORTS);
        let puppet = Arc::new(Puppet {
            dir,
            attempt: plan.attempt,
            started_at: Timestamp::now(),
            appetite: self.appetite,
            state: Mutex::new(Strings {
                reports: Some(reports),
                orders: Vec::new(),
                over: false,
            }),
        });
        self.lock().insert(plan.id, Arc::clone(&puppet));
        match act {
            Act::Exit(status) => {
                puppet.exit(status, None);
            }
            Act::NotBorn { errno } => {
                puppet.finish(Outcome::NotBorn {
                    step: "exec".to_owned(),
                    errno: Some(errno),
                    message: std::io::Error::from_raw_os_error(errno).to_string(),
                });
            }
            Act::Run if plan.report_start => puppet.lock().report(Report::Started {
                pid: PID,
                at: puppet.started_at,
            }),
            Act::Run | Act::Refuse(_) => {}
        }
        Ok(Birth {
            control: Arc::new(Handle(puppet)),
            reports: receiver,
        })
    }

    fn look(&self, id: ExecutionId) -> Found {
        let dir = self.executions.join(id.to_string());
        if let Some(puppet) = self.puppet(id).filter(|it| !it.lock().over) {
            let (reports, receiver) = mpsc::channel(REPORTS);
            puppet.lock().reports = Some(reports);
            return Found::Running {
                attempt: puppet.attempt,
                pid: PID,
                started_at: puppet.started_at,
                birth: Birth {
                    control: Arc::new(Handle(puppet)),
                    reports: receiver,
                },
            };
        }
        let record = std::fs::read(dir.join("exit")).ok();
        match record.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(record) => Found::Exited(record),
            None => Found::Lost {
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
        boot: BootStamp {
            id: "scripted".to_owned(),
            shim_pid: PID,
            shim_start: 1,
            in_process: false,
        },
        spec,
    };
    std::fs::write(dir.join(SPEC_FILE), serde_json::to_vec(&file)?)
}

impl Puppet {
    fn lock(&self) -> std::sync::MutexGuard<'_, Strings> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exit(&self, status: WaitStatus, ladder: Option<Ladder>) -> bool {
        self.finish(Outcome::Ended { status, ladder })
    }

    /// Writes the record and reports it; only the first end counts.
    fn finish(&self, outcome: Outcome) -> bool {
        let mut strings = self.lock();
        if std::mem::replace(&mut strings.over, true) {
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
        };
        if let Ok(bytes) = serde_json::to_vec(&record) {
            // A directory that was removed takes no record; the report still tells.
            let _gone = std::fs::write(self.dir.join("exit"), bytes).is_err();
        }
        strings.report(Report::Exited(record));
        strings.reports = None;
        true
    }
}

impl Strings {
    fn report(&self, report: Report) {
        if let Some(reports) = &self.reports {
            // An engine that is gone hears nothing.
            let _gone = reports.try_send(report).is_err();
        }
    }
}

/// What the engine holds of a puppet.
#[derive(Debug)]
struct Handle(Arc<Puppet>);

impl Control for Handle {
    fn send(&self, order: Order) -> BoxFuture<'_, Result<(), ControlError>> {
        let sent = {
            let mut strings = self.0.lock();
            strings.orders.push(order.clone());
            if strings.over {
                Err(ControlError::Ended)
            } else {
                Ok(())
            }
        };
        if sent.is_ok() {
            match order {
                Order::Stop { grace } => {
                    let signal = if grace.is_zero() {
                        Signal::KILL
                    } else {
                        Signal::TERM
                    };
                    self.0
                        .exit(WaitStatus::Signal(signal), Some(Ladder::Ordered));
                }
                Order::Signal(signal) => {
                    self.0.exit(WaitStatus::Signal(signal), None);
                }
                Order::Input(bytes) => self.0.lock().report(Report::InputTaken {
                    len: self.0.appetite.min(bytes.len() as u64),
                }),
                Order::InputOnce { bytes, .. } if bytes.is_empty() => {
                    self.0.lock().report(Report::InputProgress(None));
                }
                Order::InputOnce { bytes, .. } => self.0.lock().report(Report::InputTaken {
                    len: self.0.appetite.min(bytes.len() as u64),
                }),
                Order::Freeze(frozen) => self.0.lock().report(Report::Frozen { frozen }),
                Order::CloseInput | Order::Resize(_) | Order::Watch(_) | Order::Retain(_) => {}
            }
        }
        Box::pin(std::future::ready(sent))
    }
}

impl Place for Scripted {
    fn name(&self) -> PlaceName {
        PlaceName::local()
    }

    fn abilities(&self) -> Abilities {
        self.abilities.clone()
    }

    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<Birth, SpawnError>> {
        Box::pin(std::future::ready(self.give_birth(&plan)))
    }

    fn find(&self, id: ExecutionId) -> BoxFuture<'_, Found> {
        Box::pin(std::future::ready(self.look(id)))
    }

    /// A scripted tree has no processes but those a test [shows](Scripted::show).
    fn observe(
        &self,
        _id: ExecutionId,
        _what: Observation,
    ) -> BoxFuture<'_, Result<Evidence, ObserveError>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(std::future::ready(Ok(shown.clone())))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
