//! Execution directories whose `spec.json` cannot be read: listed as lost, with the reason, until a
//! user removes them or their retention ends.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_journal::{Journal, LedgerCursor, LedgerReader};
use ostler_model::event::DegradedCapability;
use ostler_model::{
    ByteString, Command, Environment, Event, EventRecord, ExecutionId, Io, IsolationSpec, Lifetime,
    LimitBackend, Limits, LostReason, Owner, Principal, Spec, State, StdinSource, Termination,
    TerminationCause, Timestamp,
};

use crate::engine_inner::EngineInner;
use crate::execution::{ExecutionHandle, ExecutionIdentity};
use crate::retention;
use crate::session_end::read_owner;

/// Ledger entries read at once.
const LEDGER_ENTRIES: usize = 4_096;
/// The placeholder for a command that is not recorded.
const UNKNOWN_COMMAND: &str = "(unknown)";

/// An execution directory that is incomplete or unreadable.
#[derive(Debug)]
pub(crate) struct DamagedExecution {
    pub(crate) id: ExecutionId,
    pub(crate) dir: PathBuf,
    /// What is damaged, for people.
    pub(crate) reason: String,
}

/// What the ledger recorded of a request.
#[derive(Debug)]
struct RecordedRequest {
    owner: Owner,
    command: Option<String>,
    cwd: Option<String>,
}

/// Ends the processes that still run under these directories, and lists the executions as lost.
pub(crate) async fn list_as_lost(core: &Arc<EngineInner>, damaged: Vec<DamagedExecution>) {
    if damaged.is_empty() {
        return;
    }
    let ids: Vec<ExecutionId> = damaged.iter().map(|one| one.id).collect();
    let ledger = core.ledger_reader();
    let recorded =
        tokio::task::spawn_blocking(move || requests_from_ledger(ledger.as_ref(), &ids)).await;
    let mut requests = recorded.unwrap_or_default();
    for one in damaged {
        let found = core.backend.recover(one.id).await;
        tracing::warn!(id = %one.id, reason = %one.reason, ?found, "listed as lost");
        let entry = lost_execution(core, &one, requests.remove(&one.id));
        core.registry.insert(Arc::clone(&entry), None);
        retention::retire(core, &entry);
    }
}

/// What the ledger recorded of these requests; empty where it cannot be read.
fn requests_from_ledger(
    ledger: Option<&LedgerReader>,
    ids: &[ExecutionId],
) -> HashMap<ExecutionId, RecordedRequest> {
    let mut requests = HashMap::new();
    let mut from = LedgerCursor(0);
    while let Some(Ok(page)) = ledger.map(|it| it.read(from, LEDGER_ENTRIES)) {
        if page.records.is_empty() {
            break;
        }
        from = page.next;
        for entry in page.records.into_iter().map(|record| record.entry) {
            let Some(id) = entry.execution.filter(|id| ids.contains(id)) else {
                continue;
            };
            if !matches!(entry.event, Event::Created { .. }) {
                continue;
            }
            let detail_text = |name| entry.detail.get(name)?.as_str().map(str::to_owned);
            let (command, cwd) = (detail_text("command"), detail_text("cwd"));
            let owner = entry.by;
            requests.insert(
                id,
                RecordedRequest {
                    owner,
                    command,
                    cwd,
                },
            );
        }
    }
    requests
}

fn lost_execution(
    core: &EngineInner,
    damaged: &DamagedExecution,
    request: Option<RecordedRequest>,
) -> Arc<ExecutionHandle> {
    let now = Timestamp::now();
    let created_at = damaged.id.minted_at().unwrap_or(now);
    let ended_at = modified_at(&damaged.dir).unwrap_or(now);
    let events = [
        Event::Created {
            missing: Vec::new(),
        },
        Event::Degraded {
            ability: DegradedCapability::Journal,
            detail: damaged.reason.clone(),
        },
        Event::Finished {
            ending: Termination::without_status(TerminationCause::Lost {
                reason: LostReason::FilesDamaged,
            }),
        },
    ];
    let times = [created_at, ended_at, ended_at];
    let records: Vec<EventRecord> = (0..)
        .zip(times.into_iter().zip(events))
        .map(|(seq, (at, event))| EventRecord {
            seq,
            at,
            offset: 0,
            event,
        })
        .collect();
    let spec = placeholder_spec(core, damaged, request);
    let owner = read_owner(&damaged.dir).unwrap_or_else(|| spec.owner.clone());
    let identity = ExecutionIdentity {
        id: damaged.id,
        spec: Arc::new(spec),
        owner: Arc::new(owner),
        dir: damaged.dir.clone(),
    };
    let journal = Journal::open(&damaged.dir);
    let end = journal.ok().and_then(|it| it.end().ok()).unwrap_or(0);
    ExecutionHandle::new_ended(identity, State::fold(&records), end)
}

/// A minimal spec for a request that is not recorded.
fn placeholder_spec(
    core: &EngineInner,
    damaged: &DamagedExecution,
    request: Option<RecordedRequest>,
) -> Spec {
    let owner = request.as_ref().map(|it| it.owner.clone());
    let (command, cwd) = request.map_or((None, None), |it| (it.command, it.cwd));
    Spec {
        command: Command::Argv {
            program: ByteString::from(UNKNOWN_COMMAND),
            args: Vec::new(),
        },
        cwd: ByteString::from(cwd.unwrap_or_else(|| "/".to_owned())),
        env: Environment::default(),
        io: Io::Pipes {
            stdin: StdinSource::Empty,
        },
        lifetime: Lifetime::Finite {
            timeout: None,
            idle: None,
        },
        policy: IsolationSpec {
            level: core.settings.isolation.default,
            confinement: None,
            limits: Limits::default(),
            backend: LimitBackend::None,
            in_force: Vec::new(),
            missing: Vec::new(),
        },
        place: core.backend_name.clone(),
        container: None,
        owner: owner.unwrap_or_else(|| directory_owner(&damaged.dir)),
        description: command.map_or_else(String::new, |it| format!("the ledger has: {it}")),
        labels: Vec::new(),
        encoding: None,
        retention: core.settings.retention.command,
        keep: false,
        record_input: false,
        face: None,
        shell: None,
        request: None,
    }
}

/// The owner of the directory, as a local user.
fn directory_owner(dir: &Path) -> Owner {
    let uid = dir
        .metadata()
        .map_or_else(|_| rustix::process::geteuid().as_raw(), |it| it.uid());
    Owner {
        principal: Principal::unix(uid),
        project: None,
        session: None,
        task: None,
        channel: ostler_model::RequestChannel::Local,
    }
}

fn modified_at(dir: &Path) -> Option<Timestamp> {
    let time = dir.metadata().ok()?.modified().ok()?;
    Timestamp::try_from(time).ok()
}
