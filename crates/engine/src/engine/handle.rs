//! [`Engine`], the facade that every API surface uses.

use std::fmt;
use std::sync::Arc;

use ostler_backend::Backend;
use ostler_model::{Caller, CapabilitySet};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::alert::AlertManager;
use crate::context::{ContextManager, ContextTable};
use crate::engine_inner::{EngineHooks, EngineInner, ExclusiveState};
use crate::error::Error;
use crate::hooks::{ExecutionObserver, TerminalScreens};
use crate::interaction::InteractionService;
use crate::lease::{WriterLeases, reserve_leases};
use crate::monitor::{UsageListener, UsageMonitor};
use crate::prompt_watch::PromptWatcher;
use crate::service::{ServiceManager, ServiceRegistry, reload};
use crate::settings::Settings;
use crate::shell::ShellRunSlots;
use crate::start::Launcher;
use crate::terminal::ScreenCache;
use crate::{recover, retention, session_end};

/// Runs, supervises and records executions. Cheap to clone; every clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    /// What all parts share.
    pub(super) inner: Arc<EngineInner>,
    pub(super) contexts: ContextManager,
    pub(super) screens: Arc<ScreenCache>,
    pub(super) leases: Arc<WriterLeases>,
    pub(super) shell_run_slots: Arc<ShellRunSlots>,
    pub(super) interactions: Arc<InteractionService>,
    pub(super) services: ServiceManager,
    pub(super) alerts: Arc<AlertManager>,
    pub(super) prompts: Arc<PromptWatcher>,
    /// Cancels the engine's tasks when its last clone is dropped without [`Engine::shutdown`].
    _alive: Arc<DropGuard>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the state directory, takes the lock, and recovers what an earlier engine left: each
    /// execution that had not finished is adopted, finished or lost.
    ///
    /// # Errors
    /// [`Error::Locked`] when another engine holds the directory, [`Error::Storage`] when it cannot
    /// be made or read.
    pub async fn open(settings: Settings, backend: Arc<dyn Backend>) -> Result<Self, Error> {
        let exclusive = ExclusiveState::open(&settings)?;
        let services = Arc::new(ServiceRegistry::open(&settings)?);
        let contexts = Arc::new(ContextTable::open(&settings)?);
        let closing = CancellationToken::new();
        let leases = Arc::new(WriterLeases::default());
        let shell_run_slots = Arc::new(ShellRunSlots::default());
        let interactions = Arc::new(InteractionService::new(
            Arc::clone(&leases),
            &settings.state_dir,
        ));
        let screen_leases = Arc::clone(&leases);
        let screens = ScreenCache::new(settings.output, screen_leases, closing.clone());
        let screens = Arc::new(screens);
        let alerts = Arc::new(AlertManager::new(settings.alerts, &settings.state_dir));
        let (prompts, prompt_queue) =
            PromptWatcher::new(Arc::clone(&interactions), Arc::clone(&leases));
        let listeners: Vec<Arc<dyn UsageListener>> =
            vec![Arc::clone(&alerts) as _, Arc::clone(&prompts) as _];
        let usage_monitor = UsageMonitor::new(Arc::clone(&backend), listeners);
        let observers: Vec<Arc<dyn ExecutionObserver>> = vec![
            Arc::clone(&interactions) as _,
            Arc::clone(&screens) as _,
            Arc::clone(&shell_run_slots) as _,
            Arc::clone(&services) as _,
            Arc::clone(&contexts) as _,
            Arc::clone(&usage_monitor) as _,
            Arc::clone(&alerts) as _,
            Arc::clone(&prompts) as _,
        ];
        let hooks = EngineHooks {
            usage_monitor: Arc::clone(&usage_monitor),
            screens: Arc::clone(&screens) as Arc<dyn TerminalScreens>,
            observers,
            closing: closing.clone(),
        };
        let inner = EngineInner::new(settings, backend, exclusive, hooks);
        interactions.record_in(&inner);
        alerts.record_in(&inner);
        prompts.connect(&inner);
        let alive = closing.drop_guard();
        let former_leases = recover::recover(&inner).await?;
        reserve_leases(&inner, &leases, former_leases);
        let launcher = Launcher::new(Arc::clone(&inner), Arc::clone(&interactions));
        let contexts = ContextManager::new(Arc::clone(&inner), launcher.clone(), contexts);
        inner.tracker.spawn(contexts.clone().run());
        let services = ServiceManager::new(Arc::clone(&inner), launcher, services);
        reload::resume(&services);
        inner.tracker.spawn(retention::run(Arc::clone(&inner)));
        inner
            .tracker
            .spawn(usage_monitor.run(inner.closing.clone()));
        let timer = Arc::clone(&interactions).run_timer(Arc::clone(&inner));
        inner.tracker.spawn(timer);
        let checks = Arc::clone(&prompts).run(Arc::clone(&inner), prompt_queue);
        inner.tracker.spawn(checks);
        Ok(Self {
            inner,
            contexts,
            screens,
            leases,
            shell_run_slots,
            interactions,
            services,
            alerts,
            prompts,
            _alive: Arc::new(alive),
        })
    }

    /// Ends the caller's session: finite executions stop and are cleaned, services and starts with
    /// `keep` pass to the project; services that are pending for it are not started any more.
    ///
    /// # Errors
    /// The first stop that failed; the others are performed anyway.
    pub async fn end_session(&self, caller: &Caller) -> Result<(), Error> {
        self.services.end_plans(caller).await;
        session_end::end(&self.inner, caller).await
    }

    /// The number of executions that run, as a watch channel.
    #[must_use]
    pub fn running_count_watch(&self) -> watch::Receiver<u64> {
        self.inner.registry.running_count()
    }

    /// What the backend can enforce.
    #[must_use]
    pub fn capabilities(&self) -> &CapabilitySet {
        &self.inner.capabilities
    }

    /// The settings the engine was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Shuts the engine down: executions that are not durable or whose id was not disclosed are
    /// stopped, the others run on without it. Every later request is refused.
    pub async fn shutdown(&self) {
        self.inner.closing.cancel();
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
        self.screens.store_checkpoints();
        self.inner.backend.close().await;
        self.inner.release();
    }

    /// Resolves when the engine begins to shut down.
    pub async fn closing(&self) {
        self.inner.closing.cancelled().await;
    }
}
