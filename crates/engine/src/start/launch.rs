//! The start of an execution: from a request to a running driver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ostler_backend::ContainerError;
use ostler_model::duration;
use ostler_model::{
    ByteString, Caller, Capability, CapabilitySet, ContainerSpec, Event, ExecutionId,
    IsolationSpec, State, TemplateRecord, Timestamp,
};
use ostler_policy::{PolicyDecision, PolicyVerdict};

use super::guard::StartGuard;
use super::queue::{self, QuotaPermit, StartAdmission};
use crate::admission::approval::{ApprovalStatus, ApprovalSubject, ApprovalUse};
use crate::admission::command_policy::{ApprovalDecision, StartDisplay};
use crate::admission::named_files::NamedFiles;
use crate::admission::quota::QuotaKey;
use crate::admission::secrets;
use crate::admission::{
    self, AdmissionContext, AdmittedStart, PreparedRequest, arguments, command_policy, container,
    isolation_level, sandbox, secret_fields,
};
use crate::driver::{Driver, DriverInit};
use crate::engine_inner::{EngineInner, LedgerDetail};
use crate::error::Error;
use crate::execution::{ExecutionHandle, ExecutionIdentity, LiveState, StartOrigin};
use crate::interaction::{InteractionService, Question};
use crate::interaction_id::InteractionId;
use crate::refused_request::COMMAND_CHARS;
use crate::request::StartRequest;
use crate::secret_texts::{ResolvedSecret, SecretTexts};
use crate::settings::Settings;
use crate::start_id::{self, StartIdAction};

/// The longest value, and name, of a template's parameter in the ledger, in characters.
const PARAMETER_CHARS: usize = 256;

/// Starts executions; what the policy asks a person goes to the interactions. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    core: Arc<EngineInner>,
    interactions: Arc<InteractionService>,
}

/// An admitted start, and the approval that was consumed for it.
struct ApprovedStart {
    admitted: AdmittedStart,
    approval: Option<InteractionId>,
}

impl From<AdmittedStart> for ApprovedStart {
    fn from(admitted: AdmittedStart) -> Self {
        Self {
            admitted,
            approval: None,
        }
    }
}

/// How an approval that the policy requires is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalMode {
    /// It is requested; an approval that exists is not consumed.
    Request,
    /// It is assumed to be given.
    Assume,
}

impl Launcher {
    pub(crate) const fn new(core: Arc<EngineInner>, interactions: Arc<InteractionService>) -> Self {
        Self { core, interactions }
    }

    /// The shared state of the engine.
    pub(super) const fn core(&self) -> &Arc<EngineInner> {
        &self.core
    }

    /// The interactions of the engine.
    pub(crate) fn interactions(&self) -> &InteractionService {
        &self.interactions
    }

    /// Admits a request and starts its driver, in the order of the queue. A refusal is recorded in the
    /// ledger.
    pub(crate) async fn start(
        &self,
        caller: &Caller,
        request: StartRequest,
        report_start: bool,
    ) -> Result<StartGuard, Error> {
        let quota_key = QuotaKey::for_request(&request, &caller.owner);
        match self.enter_queue(caller, &request, quota_key).await? {
            StartAdmission::Existing(existing) => Ok(existing),
            StartAdmission::Granted(permit) => {
                self.start_with_permit(caller, request, permit, report_start)
                    .await
            }
        }
    }

    /// As [`queue::enter_queue`]; a refusal is recorded in the ledger.
    pub(crate) async fn enter_queue(
        &self,
        caller: &Caller,
        request: &StartRequest,
        quota_key: QuotaKey,
    ) -> Result<StartAdmission, Error> {
        let core = &self.core;
        if core.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let admission = queue::enter_queue(self, caller, request, quota_key).await;
        admission.inspect_err(|error| self.record_refusal(caller, request, error))
    }

    /// Records in the ledger that a start was refused.
    pub(crate) fn record_refusal(&self, caller: &Caller, request: &StartRequest, error: &Error) {
        let core = &self.core;
        let secrets = secrets::resolve(&core.settings, &caller.owner, request);
        let detail = ledger_detail(&core.settings, request, &secrets.unwrap_or_default());
        core.record_refusal(&caller.owner, detail, error.code(), error.to_string());
    }

    /// Whether the request would be started now if a slot were free.
    ///
    /// # Errors
    /// As admission refuses it; with [`ApprovalMode::Request`], also [`Error::ApprovalRequired`].
    pub(crate) async fn check(
        &self,
        caller: &Caller,
        request: StartRequest,
        approval_mode: ApprovalMode,
    ) -> Result<(), Error> {
        let core = &self.core;
        let secrets = secrets::resolve(&core.settings, &caller.owner, &request)?;
        let redactions = secrets.clone();
        let admitted = match command_policy::evaluate(&core.settings, &request) {
            Ok(Some(verdict)) if approval_mode == ApprovalMode::Request => {
                let peek = ApprovalUse::Peek;
                Box::pin(self.admit_with_approval(caller, request, secrets, verdict, peek))
                    .await
                    .map(drop)
            }
            Ok(_) => (admit(core, caller, request, secrets).await).map(drop),
            Err(error) => Err(error),
        };
        admitted.map_err(|error| secrets::redact_error(error, &redactions))
    }

    /// Admits a request that has a slot, and starts its driver.
    pub(crate) async fn start_with_permit(
        &self,
        caller: &Caller,
        request: StartRequest,
        permit: QuotaPermit,
        report_start: bool,
    ) -> Result<StartGuard, Error> {
        let core = &self.core;
        let chosen_id = request.id;
        let lossless_reader = request.lossless_reader;
        let secrets = secrets::resolve(&core.settings, &caller.owner, &request);
        let mut detail = ledger_detail(&core.settings, &request, secrets.as_deref().unwrap_or(&[]));
        if let Some(queued) = &permit.queue_wait {
            let waited = duration::as_millis(queued.waited);
            detail.insert("waited_ms".to_owned(), waited.into());
        }
        let policy_result = command_policy::evaluate(&core.settings, &request);
        if let Ok(Some(verdict)) = &policy_result {
            detail.insert("policy".to_owned(), verdict.to_string().into());
        }
        let redactions = secrets.as_ref().cloned().unwrap_or_default();
        let admitted = match (secrets, policy_result) {
            (Ok(secrets), Ok(None)) => {
                (admit(core, caller, request, secrets).await).map(Into::into)
            }
            (Ok(secrets), Ok(Some(verdict))) => {
                let consume = ApprovalUse::Consume;
                Box::pin(self.admit_with_approval(caller, request, secrets, verdict, consume)).await
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let admitted = admitted.map_err(|error| secrets::redact_error(error, &redactions));
        let started = admitted.and_then(|ApprovedStart { admitted, approval }| {
            let release = || {
                if let Some(approval) = approval {
                    self.interactions.release_approval(approval);
                }
            };
            let id = core
                .registry
                .reserve_id(permit.quota_key(), permit.ticket(), chosen_id)
                .inspect_err(|_| release())?;
            if let Some(approval) = approval {
                self.interactions.set_approval_consumer(approval, id);
            }
            let context = StartContext {
                report_start,
                origin: StartOrigin {
                    client_chose_id: chosen_id.is_some(),
                    queue_wait: permit.queue_wait,
                    warns_of_host: admitted.spec.policy.lacks_host_wide()
                        && !core.host_warned.swap(true, Ordering::Relaxed),
                },
                lossless_reader,
            };
            let mut detail = detail.clone();
            detail.insert("in_force".to_owned(), in_force(&admitted.spec.policy));
            spawn_driver(core, id, admitted, detail, context).inspect_err(|_| {
                core.registry.forget(id);
                release();
            })
        });
        started
            .map_err(|error| error.with_disk_space(&core.settings.state_dir))
            .inspect_err(|error| {
                core.record_refusal(&caller.owner, detail, error.code(), error.to_string());
            })
    }

    /// As [`admit`], and with a person's approval where the policy requires it: requested last, only
    /// for what can run.
    async fn admit_with_approval(
        &self,
        caller: &Caller,
        request: StartRequest,
        secrets: Vec<ResolvedSecret>,
        verdict: PolicyVerdict,
        spend: ApprovalUse,
    ) -> Result<ApprovedStart, Error> {
        let core = &self.core;
        if verdict.decision == PolicyDecision::Allow {
            return (admit(core, caller, request, secrets).await).map(Into::into);
        }
        let approval_id = request.options.approval.clone();
        let requested = command_policy::as_requested(&core.settings, &request);
        let display = command_policy::display_start(&requested, &secrets);
        let mut admitted = admit(core, caller, request.clone(), secrets).await?;
        // Last, so that the files read now are the ones that run.
        let files = named_files(&core.settings, &request, &admitted).await?;
        if admitted.spec.container.is_none() {
            admitted.template.pin(files.pins());
        }
        let subject = command_policy::approval_subject(requested, files);
        let status = self.interactions.approval_status(
            &caller.owner,
            &subject,
            approval_id.as_deref(),
            spend,
        );
        let approval = self.require_approval(caller, &verdict, status, subject, display)?;
        Ok(ApprovedStart {
            admitted,
            approval: Some(approval),
        })
    }

    /// A person's approval of exactly this; where there is none, a question is opened.
    fn require_approval(
        &self,
        caller: &Caller,
        verdict: &PolicyVerdict,
        status: ApprovalStatus,
        subject: ApprovalSubject,
        display: StartDisplay,
    ) -> Result<InteractionId, Error> {
        let path = self.core.settings.approval_path;
        match command_policy::decide_approval(verdict, status, subject, display) {
            ApprovalDecision::Start(approval) => Ok(approval),
            ApprovalDecision::Pending(id) => Err(command_policy::required_error(verdict, id, path)),
            ApprovalDecision::Refuse(error) => Err(error),
            ApprovalDecision::Ask { message, approval } => {
                let question = Question::for_approval(message, approval);
                let interaction = self.interactions.open(&self.core, caller, question)?;
                Err(command_policy::required_error(
                    verdict,
                    interaction.id,
                    path,
                ))
            }
        }
    }
}

/// The execution that an earlier start with this id created, also under an earlier engine; none
/// where the id is unused. Its id counts as disclosed, because two callers wait for it.
///
/// # Errors
/// When no execution can have this id.
pub(crate) fn find_existing(
    core: &Arc<EngineInner>,
    caller: &Caller,
    id: Option<ExecutionId>,
) -> Result<Option<StartGuard>, Error> {
    let Some(id) = id else {
        return Ok(None);
    };
    let (holder, entry) = core.registry.id_holder(caller, id);
    match (start_id::decide(id, holder, Timestamp::now())?, entry) {
        (StartIdAction::ReturnExisting, Some(entry)) => {
            entry.disclose_id();
            let core = Arc::clone(core);
            Ok(Some(StartGuard {
                inner: core,
                execution: entry,
            }))
        }
        (StartIdAction::ReturnExisting | StartIdAction::Start, _) => Ok(None),
    }
}

/// As [`find_existing`], once no start with this id is in progress: one that has reserved the id
/// and is not in the registry yet would be mistaken for a foreign one.
pub(crate) async fn find_existing_after_starts(
    core: &Arc<EngineInner>,
    caller: &Caller,
    id: Option<ExecutionId>,
) -> Result<Option<StartGuard>, Error> {
    let _start_lock = match id {
        Some(id) => Some(core.start_locks.lock(id).await),
        None => None,
    };
    find_existing(core, caller, id)
}

/// The files that an approval of a start covers.
async fn named_files(
    settings: &Settings,
    request: &StartRequest,
    admitted: &AdmittedStart,
) -> Result<NamedFiles, Error> {
    let program = admitted.template.program().clone();
    let path = command_policy::search_path(settings, request);
    let (command, cwd) = (request.command.clone(), request.cwd.clone());
    let container = admitted.spec.container.as_ref();
    let workspace = container.map(|it| it.workspace.clone());
    let collect = move || match workspace {
        Some(workspace) => NamedFiles::collect_in_workspace(&command, &cwd, workspace.as_path()),
        None => NamedFiles::collect(&command, &cwd, &program, &path),
    };
    let collected = tokio::task::spawn_blocking(collect).await;
    collected.map_err(|_| Error::Closing)
}

/// Probes the capabilities of the request's file systems, where they matter, and decides; a container
/// is refused that cannot be had.
async fn admit(
    core: &EngineInner,
    caller: &Caller,
    request: StartRequest,
    secrets: Vec<ResolvedSecret>,
) -> Result<AdmittedStart, Error> {
    secret_fields::check(&request, &secrets)?;
    let sandbox = sandbox::resolve(&core.settings, &request)?;
    let mut container = container::resolve(&core.settings, &request)?;
    let capabilities = match (&sandbox, &container) {
        (Some(confinement), _) => {
            let missing = core.backend.probe_filesystems(confinement).await;
            Some(core.capabilities.clone().without(missing))
        }
        (None, Some(container)) => Some(Box::pin(container_capabilities(core, container)).await?),
        (None, None) => None,
    };
    if let Some(container) = &mut container {
        // Known since an engine was reached for its capabilities.
        container.disk = core.backend.container_disk();
    }
    let context = AdmissionContext {
        settings: &core.settings,
        capabilities: capabilities.as_ref().unwrap_or(&core.capabilities),
        backend: &core.backend_name,
    };
    let prepared = PreparedRequest {
        sandbox,
        container,
        secrets,
    };
    let admitted = admission::admit(context, caller, request, prepared)?;
    if admitted.spec.container.is_none() {
        return Ok(admitted);
    }
    // On the heap, so that the futures of all starts stay small.
    let admitted = Box::new(admitted);
    if let Some(container) = &admitted.spec.container {
        core.backend.check_container(container).await?;
    }
    Ok(*admitted)
}

/// What containers enforce here. Where that is not known, no engine was reached yet: the check of the
/// container says why, or reaches one.
async fn container_capabilities(
    core: &EngineInner,
    container: &ContainerSpec,
) -> Result<CapabilitySet, Error> {
    if let Some(known) = core.backend.container_capabilities() {
        return Ok(known);
    }
    core.backend.check_container(container).await?;
    let known = core.backend.container_capabilities();
    known.ok_or(Error::Container(ContainerError::Unsupported))
}

/// Options of an execution's start.
#[derive(Debug, Clone, Copy)]
struct StartContext {
    /// Whether a caller waits for the start.
    report_start: bool,
    origin: StartOrigin,
    lossless_reader: bool,
}

fn spawn_driver(
    core: &Arc<EngineInner>,
    id: ExecutionId,
    admitted: AdmittedStart,
    detail: LedgerDetail,
    context: StartContext,
) -> Result<StartGuard, Error> {
    let now = Timestamp::now();
    let owner = Arc::new(admitted.spec.owner.clone());
    let missing = admitted.spec.policy.missing.clone();
    core.try_write_ledger(&ostler_journal::LedgerEntry {
        at: now,
        execution: Some(id),
        by: admitted.spec.owner.clone(),
        event: Event::Created { missing },
        detail,
    })?;
    let live = LiveState {
        state: State {
            created_at: Some(now),
            ..State::default()
        },
        ..LiveState::default()
    };
    let identity = ExecutionIdentity {
        id,
        spec: Arc::new(admitted.spec),
        owner,
        dir: core.execution_dir(id),
    };
    let (entry, commands) = ExecutionHandle::with_driver(identity, live, context.origin);
    core.registry.insert(Arc::clone(&entry), None);
    let init = DriverInit {
        execution: Arc::clone(&entry),
        commands,
        template: Some(admitted.template),
        report_start: context.report_start,
        lossless_reader: context.lossless_reader,
    };
    let driver = Driver::new(Arc::clone(core), init);
    // Boxed first: tokio moves a spawned future several times.
    core.tracker.spawn(Box::pin(driver.run(now)));
    Ok(StartGuard {
        inner: Arc::clone(core),
        execution: entry,
    })
}

/// The names of the capabilities in force.
fn in_force(isolation: &IsolationSpec) -> serde_json::Value {
    let names = isolation.in_force.iter().copied().map(Capability::as_str);
    names.map(serde_json::Value::from).collect()
}

fn ledger_detail(
    settings: &Settings,
    request: &StartRequest,
    secrets: &[ResolvedSecret],
) -> LedgerDetail {
    let texts = SecretTexts::new(secrets);
    let redact = |text: &ByteString| texts.redact(text);
    let command: String = request
        .command
        .map_words(redact)
        .display()
        .chars()
        .take(COMMAND_CHARS)
        .collect();
    // A refused combination is recorded as it was requested.
    let level = isolation_level::effective_level(&settings.isolation, request)
        .unwrap_or_else(|_| request.options.level.unwrap_or(settings.isolation.default));
    let mut detail = LedgerDetail::from([
        ("command".to_owned(), command.into()),
        ("cwd".to_owned(), redact(&request.cwd).to_string().into()),
        ("face".to_owned(), request.client_kind.as_str().into()),
        ("level".to_owned(), level.to_string().into()),
    ]);
    if let Some(context) = &request.context {
        detail.insert("context".to_owned(), context.as_str().into());
    }
    if !request.options.labels.is_empty() {
        let labels = request.options.labels.iter();
        let labels = labels.map(|label| redact(&ByteString::from(label.as_str())).to_string());
        let labels = arguments::dedup(labels.collect());
        detail.insert("labels".to_owned(), labels.into());
    }
    if let Some(template) = &request.template {
        detail.insert("template".to_owned(), template_detail(template, redact));
    }
    detail
}

/// The id and parameters of a template, shortened: the request may be one that is refused.
fn template_detail(
    template: &TemplateRecord,
    redact: impl Fn(&ByteString) -> ByteString,
) -> serde_json::Value {
    let short = |text: &str| -> String { text.chars().take(PARAMETER_CHARS).collect() };
    let parameters = template.parameters.iter().take(TemplateRecord::PARAMETERS);
    let parameters: BTreeMap<String, String> = parameters
        .map(|(name, value)| (short(name), short(&redact(value).to_string_lossy())))
        .collect();
    serde_json::json!({ "id": short(&template.id), "parameters": parameters })
}
