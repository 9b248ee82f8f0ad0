//! Ensure: reuses a healthy service, replaces an unhealthy or changed one, starts an absent one.

use std::sync::Arc;

use ostler_model::duration;
use ostler_model::state::Phase;
use ostler_model::{
    PortRequest, REPLACED, RestartPolicy, ServiceStage, State, StopReason, Timestamp,
};

use super::build_request::with_port;
use super::caller_services::plan_of;
use super::locks::ServiceKey;
use super::starter::{ResolvedService, ServiceStarter};
use super::{EnsureResult, ServiceRequest, ports, restart_request, stop_service};
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::stop;

/// The note of a service that did not run before.
pub(super) const STARTED: &str = "started";

/// What to do with a running service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReuseDecision {
    /// Reuse it; the cause as text.
    Reuse(String),
    /// Stop it and start it again; the cause as text.
    Replace(String),
}

/// Decides about a running service; `changed` where its definition has changed since its start.
pub(crate) fn decide_reuse(
    state: &State,
    waits_for: Option<&str>,
    changed: bool,
    now: Timestamp,
) -> ReuseDecision {
    if state.phase == Phase::Stopping {
        return ReuseDecision::Replace("the one before was stopping".to_owned());
    }
    if changed {
        return ReuseDecision::Replace("its definition changed".to_owned());
    }
    if state.healthy == Some(false) {
        let detail = state.health.as_deref().unwrap_or("no reason is known");
        return ReuseDecision::Replace(format!("it lived and was not well: {detail}"));
    }
    let since = state
        .signs
        .last()
        .map(|sign| sign.at)
        .or_else(|| state.newest_start());
    let time = since.map(|since| duration::rounded(duration::between(since, now)));
    let time = time.map(|it| format!(" for {it}")).unwrap_or_default();
    let location = state.url.as_ref().map(|url| format!(" at {url}"));
    let location = location.unwrap_or_default();
    let frozen = if state.paused { ", but paused" } else { "" };
    if let Some(until) = state.backoff_until {
        let wait = duration::rounded(duration::between(now, until));
        let end = state.last_end.as_deref().unwrap_or("its end");
        return ReuseDecision::Reuse(format!("it starts anew in {wait}, after {end}"));
    }
    ReuseDecision::Reuse(match state.stage {
        None => {
            let waits = waits_for.map(|it| format!(", and waits for {it}"));
            format!("still starting{time}{}{frozen}", waits.unwrap_or_default())
        }
        Some(ServiceStage::Listening) => {
            format!("listening{time}{location}, not ready yet{frozen}")
        }
        Some(ServiceStage::Responding) => {
            format!("responding{time}{location}, not ready yet{frozen}")
        }
        Some(ServiceStage::Running) => format!("running{time}{frozen}"),
        Some(ServiceStage::Ready) => format!("ready{time}{location}{frozen}"),
    })
}

impl ServiceStarter<'_> {
    /// Ensures one service, without its dependencies. Concurrent calls for the same one are served
    /// in turn: the first starts it, the others reuse it.
    pub(crate) async fn ensure_one(self, service: &ResolvedService) -> Result<EnsureResult, Error> {
        let _lock = self
            .manager
            .services
            .locks
            .lock(self.lock_key(service))
            .await;
        let Some(entry) = self.find_living(service) else {
            return self.start_new(service, STARTED).await;
        };
        let decision = {
            let live = entry.live.borrow();
            let changed = service.is_changed_since_start(&entry);
            decide_reuse(
                &live.state,
                live.waiting_for.as_deref(),
                changed,
                Timestamp::now(),
            )
        };
        match decision {
            ReuseDecision::Reuse(reason) => {
                let difference = self.describe_difference(service, &entry);
                entry.disclose_id();
                Ok(EnsureResult {
                    service: self.service_info(&entry),
                    reused: true,
                    completes: false,
                    note: format!("reused: {reason}{difference}"),
                })
            }
            ReuseDecision::Replace(reason) => {
                ports::check_replacement(self.core, self.caller, &service.request, &entry).await?;
                self.stop_and_free_ports(&entry, format!("{REPLACED}{reason}"))
                    .await?;
                self.start_new(service, &format!("{REPLACED}{reason}"))
                    .await
            }
        }
    }

    /// Starts one that must not run yet, without its dependencies.
    pub(crate) async fn start_one(self, service: &ResolvedService) -> Result<EnsureResult, Error> {
        let locks = &self.manager.services.locks;
        let _lock = locks.lock(self.lock_key(service)).await;
        self.start_new(service, STARTED).await
    }

    async fn start_new(self, service: &ResolvedService, note: &str) -> Result<EnsureResult, Error> {
        let guard = self.start(service).await?;
        let id = guard.id();
        guard.detach()?;
        let entry = self.core.registry.get(id).ok_or(Error::NotFound)?;
        Ok(EnsureResult {
            service: self.service_info(&entry),
            reused: false,
            completes: false,
            note: note.to_owned(),
        })
    }

    /// Stops a service, and waits until its ports are free for the next attempt.
    pub(crate) async fn stop_and_free_ports(
        self,
        entry: &Arc<ExecutionHandle>,
        reason: String,
    ) -> Result<(), Error> {
        let ports = stop_service::ports_of(entry);
        let order = StopReason::Requested {
            by: self.caller.owner.principal.clone(),
            reason: Some(reason),
            force: false,
            interrupt: false,
        };
        let grace = self.core.grace_of(&entry.spec);
        stop::stop_and_wait(self.core, entry, order, grace).await?;
        // A holder that remains is reported by the next attempt that needs the port.
        let _holders =
            stop_service::wait_until_free(self.core, &ports, stop_service::PORTS_MS).await;
        Ok(())
    }

    /// The running service that is meant: by name; without a name, by command and directory.
    fn find_living(self, service: &ResolvedService) -> Option<Arc<ExecutionHandle>> {
        let request = &service.request;
        if let Some(name) = &request.name {
            return self.services().find_living(name);
        }
        self.services()
            .living_in_scope()
            .find(|entry| self.runs_same_command(request, entry))
    }

    /// Whether it runs this command in this directory; its own command may carry its assigned port.
    fn runs_same_command(self, request: &ServiceRequest, entry: &ExecutionHandle) -> bool {
        let command = &request.start.command;
        let matches_with_port = || {
            let detected = self
                .manager
                .services
                .detect(&self.core.settings, &request.start);
            let port = plan_of(entry).ready.port;
            port.is_some_and(|port| {
                with_port(command, detected.as_ref(), port) == entry.spec.command
            })
        };
        is_same_directory(request, entry) && (*command == entry.spec.command || matches_with_port())
    }

    /// What a running service does otherwise than requested, as clauses; empty where nothing differs.
    fn describe_difference(self, service: &ResolvedService, entry: &ExecutionHandle) -> String {
        let request = &service.request;
        let origin = service.origin.as_ref().map(|it| &it.defined_in);
        if origin.is_some() && origin == plan_of(entry).defined_in.as_ref() {
            return String::new();
        }
        let mut clauses = String::new();
        if !self.runs_same_command(request, entry) {
            clauses.push_str("; it runs another command than the one asked for");
        }
        let running = restart_request::service_request(self.manager, entry);
        let ports = stop_service::ports_of(entry);
        let differing = running.map(|it| differing_options(request, &it.request, &ports));
        if let Ok([first, rest @ ..]) = differing.as_deref() {
            let rest: String = rest.iter().map(|it| format!(", {it}")).collect();
            clauses.push_str(&format!("; it was started with another {first}{rest}"));
        }
        if let (Some(file), false) = (origin, clauses.is_empty()) {
            clauses.push_str(&format!(", not from {file}: stop it first"));
        }
        clauses
    }

    /// The key of the lock that serializes calls for this service.
    fn lock_key(self, service: &ResolvedService) -> ServiceKey {
        let manifest = service.origin.as_ref().and(self.manifest);
        let manifest = manifest.map(|it| it.path.clone());
        let request = &service.request;
        match &request.name {
            Some(name) => ServiceKey::new(self.caller, manifest, name),
            None => {
                let start = &request.start;
                let command = format!("{} {}", start.cwd, start.command.display());
                ServiceKey::new(self.caller, manifest, &command)
            }
        }
    }
}

/// The options that were requested and that the running service has otherwise.
fn differing_options(
    requested: &ServiceRequest,
    running: &ServiceRequest,
    ports: &[u16],
) -> Vec<&'static str> {
    let set_env = &requested.start.options.set_env;
    let other_env = !set_env.is_empty() && *set_env != running.start.options.set_env;
    let other_port = match requested.port {
        PortRequest::Fixed(port) => requested.port != running.port && !ports.contains(&port),
        PortRequest::Own | PortRequest::Lease => false,
    };
    let other_readiness = requested.ready_when.is_some()
        && requested.ready_when != running.ready_when
        || requested.ready_pattern.is_some() && requested.ready_pattern != running.ready_pattern;
    let other_restart =
        requested.restart != RestartPolicy::Never && requested.restart != running.restart;
    let all = [
        ("environment", other_env),
        ("port", other_port),
        ("condition of readiness", other_readiness),
        ("restart policy", other_restart),
    ];
    let differing = all.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name).collect()
}

/// Whether it runs in the same directory, symbolic links resolved.
fn is_same_directory(request: &ServiceRequest, entry: &ExecutionHandle) -> bool {
    let (one, other) = (&request.start.cwd, &entry.spec.cwd);
    let canonical = |path: &ostler_model::ByteString| std::fs::canonicalize(path.as_path()).ok();
    one == other || (canonical(one).is_some() && canonical(one) == canonical(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::{ReadinessSignal, SignalKind};
    use std::time::Duration;

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000).expect("a time")
    }

    fn ready(seconds_ago: u64) -> State {
        State {
            phase: Phase::Running,
            attempt: 1,
            stage: Some(ServiceStage::Ready),
            url: Some("http://localhost:3000".to_owned()),
            signs: vec![ReadinessSignal {
                kind: SignalKind::Http,
                detail: String::new(),
                at: now() - Duration::from_secs(seconds_ago),
            }],
            ..State::default()
        }
    }

    #[test]
    fn what_is_well_is_reused_and_what_is_not_is_replaced() {
        let actual = |state: &State| decide_reuse(state, Some("a port to listen"), false, now());
        let reuse = |why: &str| ReuseDecision::Reuse(why.to_owned());
        assert_eq!(
            actual(&ready(720)),
            reuse("ready for 12 min at http://localhost:3000")
        );
        let mut starting = ready(0);
        (starting.stage, starting.signs) = (None, Vec::new());
        starting.started_at = Some(now() - Duration::from_secs(3));
        assert_eq!(
            actual(&starting),
            reuse("still starting for 3 s, and waits for a port to listen")
        );
        starting.backoff_until = Some(now() + Duration::from_secs(4));
        starting.last_end = Some("exit code 1".to_owned());
        assert_eq!(
            actual(&starting),
            reuse("it starts anew in 4 s, after exit code 1")
        );
        let mut ill = ready(5);
        (ill.healthy, ill.health) = (Some(false), Some("port 3000 is gone".to_owned()));
        let why = "it lived and was not well: port 3000 is gone".to_owned();
        assert_eq!(actual(&ill), ReuseDecision::Replace(why));
        let mut stopping = ready(5);
        stopping.phase = Phase::Stopping;
        assert!(matches!(actual(&stopping), ReuseDecision::Replace(_)));
        let changed = decide_reuse(&ready(5), None, true, now());
        assert_eq!(
            changed,
            ReuseDecision::Replace("its definition changed".to_owned())
        );
    }
}
