//! [`ContextManager`]: creates contexts, lets starts use them, and ends them.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::DiskScope;
use ostler_lifecycle::context::{ContextDecision, ContextInput, ContextState};
use ostler_model::{ByteString, Caller, ContextId, StartOptions, Timestamp};

use tokio::time::Instant;

use super::context_use::ContextUse;
use super::directory;
use super::info::ContextInfo;
use super::ledger_entry::created_entry;
use super::record::{ContextRecord, CreatedDir, StoredStage};
use super::request::{ContextKey, ContextRequest};
use super::start_checks::{check_directory, check_lifetime};
use super::table::{ContextEntry, ContextTable};
use crate::admission::isolation_level;
use crate::engine_inner::EngineInner;
use crate::error::{ContextError, Error};
use crate::keyed_mutex::KeyedMutex;
use crate::project;
use crate::random_hex::random_bytes;
use crate::refused_request::RefusedRequest;
use crate::request::StartRequest;
use crate::settings::ContextSettings;
use crate::start::{ApprovalMode, Launcher, StartGuard, find_existing_after_starts};

/// What the ledger calls a request for a context that is refused.
const OPEN_REQUEST: &str = "the context of a project";

/// Creates contexts, lets starts use them, and ends them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ContextManager {
    pub(super) core: Arc<EngineInner>,
    launcher: Launcher,
    pub(super) table: Arc<ContextTable>,
    /// Lets one context of a caller and project be created at a time.
    creation_locks: Arc<KeyedMutex<ContextKey>>,
}

impl ContextManager {
    /// The manager of these contexts; continues those of the last engine.
    pub(crate) fn new(
        core: Arc<EngineInner>,
        launcher: Launcher,
        table: Arc<ContextTable>,
    ) -> Self {
        // Those that ended while no engine ran are not summarized yet.
        table.adopt(core.registry.all_with(|_| false));
        Self {
            core,
            launcher,
            table,
            creation_locks: Arc::default(),
        }
    }

    fn settings(&self) -> &ContextSettings {
        &self.core.settings.contexts
    }

    /// See [`Engine::open_context`](crate::Engine::open_context). A refusal is recorded in the
    /// ledger.
    pub(crate) async fn open(
        &self,
        caller: &Caller,
        request: ContextRequest,
    ) -> Result<(ContextInfo, bool), Error> {
        if self.core.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let refused = RefusedRequest {
            project: Some(request.project.clone()),
            cwd: request.directory.clone(),
            ..RefusedRequest::new(OPEN_REQUEST)
        };
        let opened = self.find_or_create(caller, request).await;
        opened.inspect_err(|error| {
            let (owner, message) = (refused.owner(caller), error.to_string());
            self.core
                .record_refusal(&owner, refused.into_detail(), error.code(), message);
        })
    }

    /// The warm context of the caller for this project, or a new one.
    async fn find_or_create(
        &self,
        caller: &Caller,
        request: ContextRequest,
    ) -> Result<(ContextInfo, bool), Error> {
        project::check_project(caller, Some(&request.project))?;
        request.check(&self.core.settings, caller)?;
        let key = ContextKey::new(caller, &request.project);
        let _creation_lock = self.creation_locks.lock(key.clone()).await;
        if let Some(entry) = self.table.warm(&key)
            && self.check_health(&entry.record).is_ok()
        {
            if let Some(differs) = request.difference(&entry.record) {
                let ContextRecord { id, project, .. } = entry.record;
                return Err(ContextError::Differs {
                    id,
                    project,
                    differs,
                }
                .into());
            }
            return Ok((self.info(&entry), false));
        }
        let base_bytes = self.base_bytes(&request).await;
        let entry = self.create(caller, &key, request, base_bytes)?;
        Ok((self.info(&entry), true))
    }

    /// Stored before its directory is created, and before it is used: a crash leaves no directory
    /// that nothing removes, and no context that nothing knows. Returns it as it is when it becomes
    /// usable: its idle time may be over before the caller is answered.
    fn create(
        &self,
        caller: &Caller,
        key: &ContextKey,
        request: ContextRequest,
        base_bytes: Option<u64>,
    ) -> Result<ContextEntry, Error> {
        let record = ContextRecord {
            base_bytes,
            ..self.new_record(caller, key, request)?
        };
        let id = record.id.clone();
        self.table
            .insert(record.clone(), self.settings().max_per_principal)?;
        if let Err(error) = self.store_and_create(&record) {
            let _decision = self.table.handle(&id, ContextInput::CreationFailed);
            return Err(error);
        }
        let mut entry = self.table.get(&id).ok_or(ContextError::NotFound)?;
        // Nothing is used, or ends, that the ledger does not know.
        let recorded = self.core.try_write_ledger(&created_entry(&entry.record));
        let _same = entry
            .lifecycle
            .handle(Timestamp::now(), ContextInput::Created);
        let _decision = self.table.handle(&id, ContextInput::Created);
        // Without this, the next engine would take it for one that was not created.
        let stored = recorded.and_then(|()| self.table.store_durably());
        stored.inspect_err(|_| {
            let _decision = self
                .table
                .handle(&id, ContextInput::Remove { force: false });
        })?;
        tracing::info!(context = %id, project = %record.project, "a context is created");
        Ok(entry)
    }

    /// The bytes that the directory of a new context has, where its growth is limited.
    async fn base_bytes(&self, request: &ContextRequest) -> Option<u64> {
        self.disk_limit(&request.options)?;
        match request.existing_directory() {
            Some(directory) => self.core.backend.directory_bytes(directory.as_path()).await,
            None => Some(0),
        }
    }

    /// How many bytes the executions of a context with these options may add to its directory.
    fn disk_limit(&self, options: &StartOptions) -> Option<u64> {
        let own = options.limits.disk_bytes;
        own.or(self.settings().limits.disk_bytes)
    }

    fn store_and_create(&self, record: &ContextRecord) -> Result<(), Error> {
        self.table.store_durably()?;
        let created = directory::create(record).map_err(|source| Error::Storage {
            what: "cannot make",
            path: record.directory.as_path().to_owned(),
            source,
        })?;
        self.table
            .update(&record.id, |record| record.created = created);
        Ok(())
    }

    fn new_record(
        &self,
        caller: &Caller,
        key: &ContextKey,
        request: ContextRequest,
    ) -> Result<ContextRecord, Error> {
        let id = ContextId::from_bytes(random_bytes()?);
        let now = Timestamp::now();
        let mut owner = caller.owner.clone();
        owner.session.clone_from(&key.session);
        owner.project = Some(request.project.clone());
        owner.task.clone_from(&request.task);
        let existing = request.existing_directory();
        let created = existing.is_none().then_some(CreatedDir::PLANNED);
        let own = || ByteString::from(self.settings().directory.join(id.as_str()));
        Ok(ContextRecord {
            directory: existing.unwrap_or_else(own),
            id,
            owner,
            project: request.project,
            task: request.task,
            created,
            base_bytes: None,
            idle_timeout: request.idle_timeout.unwrap_or(self.settings().idle_timeout),
            options: request.options.for_every_start(),
            created_at: now,
            used_at: now,
            stage: StoredStage::Creating,
        })
    }

    /// Checks a context before it is used; one that fails ends.
    fn check_health(&self, record: &ContextRecord) -> Result<(), ContextError> {
        let Some(problem) = directory::problem(record) else {
            return Ok(());
        };
        tracing::warn!(context = %record.id, %problem, "a context failed its check");
        let input = ContextInput::CheckFailed {
            problem: problem.clone(),
        };
        let _decision = self.table.handle(&record.id, input);
        let id = record.id.clone();
        Err(ContextError::Unhealthy { id, problem })
    }

    /// See [`Engine::contexts`](crate::Engine::contexts).
    pub(crate) fn list(&self, caller: &Caller) -> Vec<ContextInfo> {
        let entries = self.table.list(caller);
        entries.iter().map(|entry| self.info(entry)).collect()
    }

    /// See [`Engine::context`](crate::Engine::context).
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<ContextInfo, Error> {
        let id = parse_id(id)?;
        Ok(self.info(&self.table.find(caller, &id)?))
    }

    fn info(&self, entry: &ContextEntry) -> ContextInfo {
        let ContextEntry { record, lifecycle } = entry;
        let options = &record.options;
        ContextInfo {
            id: record.id.clone(),
            project: record.project.clone(),
            task: record.task.clone(),
            owner: record.owner.clone(),
            directory: record.directory.clone(),
            is_directory_created: record.created.is_some(),
            state: lifecycle.state().clone(),
            executions: self.table.executions(&record.id),
            variables: options
                .set_env
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            secrets: options.secrets.clone(),
            level: options.level,
            limits: options.limits.or(self.settings().limits).or(self
                .core
                .settings
                .isolation
                .limits),
            timeout: options.timeout.unwrap_or(self.settings().timeout),
            idle_timeout: record.idle_timeout,
            created_at: record.created_at,
            used_at: record.used_at,
            ends_at: lifecycle.idle_deadline(),
        }
    }

    /// As the launcher starts a request; in a context, with what that adds to it. A refusal is
    /// recorded in the ledger.
    pub(crate) async fn start(
        &self,
        caller: &Caller,
        mut request: StartRequest,
        report_start: bool,
    ) -> Result<StartGuard, Error> {
        if request.context.is_none() {
            return self.launcher.start(caller, request, report_start).await;
        }
        // One that is sent again is answered also when its context is over.
        if let Some(guard) = find_existing_after_starts(&self.core, caller, request.id).await? {
            return Ok(guard);
        }
        let entered = self.enter(caller, &mut request);
        let (caller, context_use) = entered.inspect_err(|error| {
            self.launcher.record_refusal(caller, &request, error);
        })?;
        let guard = self.launcher.start(&caller, request, report_start).await?;
        context_use.bind(guard.execution())?;
        Ok(guard)
    }

    /// As the launcher checks a request.
    pub(crate) async fn check_start(
        &self,
        caller: &Caller,
        mut request: StartRequest,
    ) -> Result<(), Error> {
        let mode = ApprovalMode::Request;
        if request.context.is_none() {
            return self.launcher.check(caller, request, mode).await;
        }
        let (caller, _context_use) = self.enter(caller, &mut request)?;
        self.launcher.check(&caller, request, mode).await
    }

    /// Lets a start use its context, and completes its request and its owner.
    fn enter(
        &self,
        caller: &Caller,
        request: &mut StartRequest,
    ) -> Result<(Caller, ContextUse), Error> {
        let id = request.context.clone().ok_or(ContextError::NotFound)?;
        let record = self.table.find(caller, &id)?.record;
        check_lifetime(request)?;
        check_directory(&record, request)?;
        self.check_health(&record)?;
        let context_use = ContextUse::enter(&self.table, &id)?;
        let mut caller = caller.clone();
        caller.owner.project = Some(record.project.clone());
        caller.owner.task.clone_from(&record.task);
        self.complete(&record, request);
        Ok((caller, context_use))
    }

    /// Adds the options, the variables and the limits of the context.
    fn complete(&self, record: &ContextRecord, request: &mut StartRequest) {
        let settings = self.settings();
        let options = std::mem::take(&mut request.options).over(record.options.clone());
        request.options = options;
        if request.lifetime.is_none() {
            request.options.timeout.get_or_insert(settings.timeout);
        }
        request.default_limits = settings.limits;
        if isolation_level::runs_in_container(&self.core.settings.isolation, request) {
            // So that all of them find the same container warm, wherever in it they work.
            let workspace = &mut request.options.container.workspace;
            workspace.get_or_insert_with(|| record.directory.clone());
        }
        // A start may ask for less than its context has, not for more.
        if let Some(limit_bytes) = self.disk_limit(&record.options)
            && let Some(base_bytes) = record.base_bytes.or(record.created.map(|_| 0))
        {
            let own = &mut request.options.limits.disk_bytes;
            *own = own.map(|it| it.min(limit_bytes));
            request.disk_scope = Some(DiskScope {
                directory: record.directory.clone(),
                base_bytes,
                limit_bytes,
            });
        }
        let prefix = &settings.environment_prefix;
        let ids = [
            ("PROJECT_ID", Some(&record.project)),
            ("TASK_ID", record.task.as_ref()),
        ];
        let variables = &mut request.options.set_env;
        for (name, value) in ids {
            let name = format!("{prefix}{name}");
            variables.retain(|(known, _)| known.as_bytes() != name.as_bytes());
            if let Some(value) = value {
                variables.push((ByteString::from(name), ByteString::from(value.as_str())));
            }
        }
    }

    /// See [`Engine::remove_context`](crate::Engine::remove_context).
    pub(crate) async fn remove(&self, caller: &Caller, id: &str, force: bool) -> Result<(), Error> {
        let id = parse_id(id)?;
        self.table.find(caller, &id)?;
        self.check_overlays(&id).await;
        let mut changes = self.table.changes();
        let decision = self.table.request_removal(&id, force, &caller.owner)?;
        if let Some(ContextDecision::Refuse(refusal)) = decision {
            return Err(self.table.refusal(&id, refusal).into());
        }
        loop {
            changes.borrow_and_update();
            match self.table.get(&id).map(|it| it.lifecycle.state().clone()) {
                None => {
                    self.store_changes();
                    return Ok(());
                }
                Some(ContextState::Failed { problem }) => {
                    return Err(ContextError::NotRemoved { id, problem }.into());
                }
                Some(_) => {}
            }
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return Err(Error::Closing),
                // The sender lives as long as the table.
                _changed = changes.changed() => {}
            }
        }
    }

    /// Does what the lifecycles decide, for as long as the engine lives.
    pub(crate) async fn run(self) {
        let mut changes = self.table.changes();
        loop {
            changes.borrow_and_update();
            self.store_changes();
            for work in self.table.take_work() {
                let manager = self.clone();
                self.core.tracker.spawn(manager.perform(work));
            }
            let deadline = self.table.next_deadline();
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return self.store_changes(),
                _changed = changes.changed() => {}
                () = sleep_until(deadline) => self.table.tick(),
            }
        }
    }

    /// What a full disk refuses now is written later: see [`ContextTable::store_changes`].
    pub(super) fn store_changes(&self) {
        self.table
            .record_transitions(|entry| self.core.write_ledger(entry));
        if let Err(error) = self.table.store_changes() {
            tracing::warn!(%error, "contexts are not stored");
        }
    }
}

fn parse_id(id: &str) -> Result<ContextId, ContextError> {
    id.parse().map_err(|_| ContextError::NotFound)
}

async fn sleep_until(deadline: Option<Timestamp>) {
    let Some(deadline) = deadline else {
        return std::future::pending().await;
    };
    let left = deadline.duration_since(Timestamp::now());
    let left = Duration::try_from(left).unwrap_or_default();
    // One beyond what the clock can hold never comes.
    match Instant::now().checked_add(left) {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
