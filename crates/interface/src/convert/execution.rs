//! One execution, a list of them, and starts that wait.

use ostler_api::{
    ExecutionBody, IsolationBody, NetworkBody, ProcessBody, QueueWaitBody, QueuedStartBody,
    QuotaHolderBody, SandboxInfoBody,
};
use ostler_engine::{ExecutionInfo, QueueWait, QueuedStart};
use ostler_model::duration;
use ostler_model::termination::TerminationCause;
use ostler_model::{IsolationSpec, Lifetime, OverlayOutcome, SandboxSpec};

use super::service::service_state_body;

/// The data of one execution, without its output.
pub fn execution_body(info: &ExecutionInfo) -> ExecutionBody {
    let (spec, state) = (&info.spec, &info.state);
    let termination = state.ending.as_ref();
    ExecutionBody {
        id: info.id.short(),
        uuid: info.id,
        command: spec.command.display(),
        argv: spec.command.argv(),
        directory: spec.cwd.clone(),
        description: spec.description.clone(),
        status: info.status().process,
        phase: state.phase,
        created_at: state.created_at,
        start_time: state.started_at,
        end_time: state.ended_at,
        duration: duration::as_seconds(info.duration()),
        cause: termination.map(|ending| ending.cause.clone()),
        exit_code: termination.and_then(|ending| ending.code),
        signal: termination
            .and_then(|ending| ending.signal)
            .map(|s| s.name()),
        shell_status: termination.map(|ending| ending.shell_status()),
        labels: spec.labels.clone(),
        timeout: timeout_seconds(&spec.lifetime),
        error_message: info.error_message(),
        stop_reason: termination.and_then(|ending| stop_reason(&ending.cause)),
        os_pid: state.shown_pid(),
        attempt: state.attempt,
        ready: is_service(&spec.lifetime).then_some(state.is_ready()),
        healthy: state.healthy,
        service: service_state_body(info).map(Box::new),
        paused: state.paused,
        isolation: isolation_body(info),
        degraded: state.degradations().cloned().collect(),
        leftovers: state.leftovers,
        survivors: info.survivors.clone(),
        keep: spec.keep,
        principal: info.owner.principal.0.clone(),
        project: info.owner.project.clone(),
        session: info.owner.session.as_ref().map(|name| name.0.clone()),
        terminal: info.size(),
        encoding: spec.encoding.clone(),
        output_bytes: info.output_end,
        trimmed_bytes: state.trimmed_bytes,
        cursor: info.cursor(),
        usage: state.usage,
        queued: info.queue_wait.map(queue_wait_body),
        usual: None,
    }
}

/// The same under the names of the process routes.
pub fn process_body(info: &ExecutionInfo) -> ProcessBody {
    ProcessBody {
        pid: info.id.short(),
        info: execution_body(info),
    }
}

/// How long a start waited for its slot.
pub fn queue_wait_body(queued: QueueWait) -> QueueWaitBody {
    QueueWaitBody {
        waited: queued.waited.as_secs_f64(),
        limit: queued.limit,
    }
}

/// A start that waits for a slot, and the holders of the slots.
pub fn queued_start_body(start: QueuedStart) -> QueuedStartBody {
    let holders = start.holders.into_iter().map(|holder| QuotaHolderBody {
        id: holder.id.short(),
        command: holder.command,
    });
    QueuedStartBody {
        ahead: start.ahead,
        running: start.running,
        limit: start.limit,
        holders: holders.collect(),
    }
}

fn stop_reason(cause: &TerminationCause) -> Option<String> {
    match cause {
        TerminationCause::Stopped { reason } => reason.clone(),
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::TimedOut { .. }
        | TerminationCause::OutOfMemory
        | TerminationCause::SpawnFailed { .. }
        | TerminationCause::Lost { .. } => None,
    }
}

const fn is_service(lifetime: &Lifetime) -> bool {
    match lifetime {
        Lifetime::Service { .. } => true,
        Lifetime::Finite { .. } => false,
    }
}

fn timeout_seconds(lifetime: &Lifetime) -> Option<f64> {
    match lifetime {
        Lifetime::Finite { timeout, .. } => timeout.map(|timeout| timeout.as_secs_f64()),
        Lifetime::Service { .. } => None,
    }
}

/// Isolation: requested, in force, missing.
fn isolation_body(info: &ExecutionInfo) -> IsolationBody {
    let isolation: &IsolationSpec = &info.spec.policy;
    let (hit, outcome) = (info.state.limits_hit.clone(), info.state.workspace);
    IsolationBody {
        requested: isolation.level,
        in_force: isolation.in_force.clone(),
        missing: isolation.missing.clone(),
        warnings: info.isolation_warnings(),
        backend: isolation.backend,
        limits: isolation.limits,
        limits_hit: hit,
        lost: info.state.lost_capabilities.clone(),
        autorun: info.state.autorun.clone(),
        confinement: isolation
            .confinement
            .as_ref()
            .map(|it| sandbox_info(it, outcome)),
        container: info.spec.container.clone(),
    }
}

fn sandbox_info(spec: &SandboxSpec, outcome: Option<OverlayOutcome>) -> SandboxInfoBody {
    SandboxInfoBody {
        workspace: spec.workspace.clone(),
        overlay: spec.overlay.then(|| outcome.unwrap_or_default()),
        network: NetworkBody(spec.network.clone()),
        read: spec.read.clone(),
        write: spec.write.clone(),
        protect: spec.protect.clone(),
        forward: spec.forwards.clone(),
    }
}
