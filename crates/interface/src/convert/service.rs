//! Converts services: definitions, running services, and the results of starts and stops.

use std::time::Duration;

use ostler_api::{
    DetectedServiceBody, EnsureResponse, PortInfoBody, PortRequestBody, ProbeBody,
    ReadinessWaitBody, ServiceBody, ServiceDiagnosisBody, ServiceHealthBody, ServiceOptionsBody,
    ServiceQuestionBody, ServiceStateBody, ServiceStopResponse, StartFailureBody,
};
use ostler_engine::detection::DetectedService;
use ostler_engine::{
    Diagnosis, EnsureResult, ExecutionInfo, PortRequest, ServiceInfo, ServiceRequest,
    ServiceStopped, StartFailure, StartRequest, WaitEnd,
};
use ostler_model::duration::as_millis;
use ostler_model::{
    Dependency, HealthRule, Lifetime, Phase, ReadyCondition, RestartPolicy, ServicePlan,
};

use super::execution::execution_body;
use super::service_report::waits_for;
use super::wait::wait_end_kind;
use crate::error::ApiError;

/// The service state of an execution; none for a finite one.
pub(super) fn service_state_body(info: &ExecutionInfo) -> Option<ServiceStateBody> {
    let plan = info.spec.lifetime.plan()?;
    let state = &info.state;
    let health = state.healthy.map(|ok| ServiceHealthBody {
        ok,
        detail: state.health.clone().unwrap_or_default(),
    });
    Some(ServiceStateBody {
        name: name(plan, info),
        status: info.status().service.to_owned(),
        stage: state.stage,
        url: state.url.clone(),
        ports: state.ports.iter().map(PortInfoBody::from).collect(),
        evidence: state.ready_evidence.clone(),
        signs: state.signs.clone(),
        warnings: state.warnings.clone(),
        health,
        restarts: state.attempt.saturating_sub(1),
        attempt_start_time: state.attempt_started_at,
        backoff_until: state.backoff_until,
        last_end: state.last_end.clone(),
        prompt: state.prompt.clone().filter(|it| !it.trim().is_empty()),
        waits_for: waits_for(info),
        ready_when: ProbeBody::from(&plan.ready.when),
        ready_timeout_ms: as_millis(plan.ready.timeout()),
        detected: plan.detected.clone(),
        automatic: plan.automatic,
        leased_port: plan.leased_port,
        depends_on: plan.depends_on.clone(),
        defined_in: plan.defined_in.clone(),
    })
}

fn name(plan: &ServicePlan, info: &ExecutionInfo) -> String {
    match plan.name.as_str() {
        "" => info.id.short(),
        name => name.to_owned(),
    }
}

/// A service: its definition and its running execution.
pub fn service_body(service: &ServiceInfo) -> ServiceBody {
    ServiceBody {
        name: service.name.clone(),
        status: service.status().to_owned(),
        living: service.is_living(),
        command: service.command.clone(),
        defined_in: service.defined_in.clone(),
        definition: service.definition.clone(),
        workspace: service
            .workspace
            .as_ref()
            .map(|it| it.display().to_string()),
        depends_on: service.plan.depends_on.clone(),
        waits_for: service.pending.clone(),
        dismissed: service.dismissed,
        notes: service.notes.clone(),
        execution: service.execution.as_ref().map(execution_body),
    }
}

/// A service that runs, or ran, of which nothing else is known.
pub fn service_body_of_execution(info: &ExecutionInfo) -> ServiceBody {
    let plan = match &info.spec.lifetime {
        Lifetime::Service { plan, .. } => plan.as_ref().clone(),
        Lifetime::Finite { .. } => ServicePlan::default(),
    };
    ServiceBody {
        name: name(&plan, info),
        status: info.status().service.to_owned(),
        living: info.state.phase != Phase::Finished,
        command: info.spec.command.display(),
        defined_in: plan.defined_in.as_ref().map(ToString::to_string),
        definition: None,
        workspace: None,
        depends_on: plan.depends_on,
        waits_for: None,
        dismissed: false,
        notes: Vec::new(),
        execution: Some(execution_body(info)),
    }
}

/// A service that was started or found, before any wait for it.
pub fn ensure_response(ensured: &EnsureResult) -> EnsureResponse {
    EnsureResponse {
        service: service_body(&ensured.service),
        reused: ensured.reused,
        completes: ensured.completes,
        note: ensured.note.clone(),
        waited: None,
        reason: None,
        shared: Vec::new(),
        message: String::new(),
    }
}

/// A service that could not be started beside others.
pub fn start_failure_body(failure: StartFailure) -> StartFailureBody {
    let error = ApiError::from(failure.error);
    StartFailureBody {
        name: failure.name,
        code: error.code,
        message: error.message().into_owned(),
        hint: error.hint,
    }
}

/// How a wait for readiness was over.
pub fn readiness_wait_body(end: &WaitEnd) -> ReadinessWaitBody {
    let detail = match end {
        WaitEnd::NotReady(detail) => Some(detail.clone()),
        WaitEnd::Exit
        | WaitEnd::Pattern(_)
        | WaitEnd::Prompt(_)
        | WaitEnd::Ready
        | WaitEnd::Output
        | WaitEnd::Idle
        | WaitEnd::TimedOut
        | WaitEnd::Nothing => None,
    };
    ReadinessWaitBody {
        why: wait_end_kind(end),
        detail,
    }
}

/// The result of a stop.
pub fn service_stop_response(stopped: ServiceStopped) -> ServiceStopResponse {
    ServiceStopResponse {
        service: service_body(&stopped.service),
        released: stopped.released,
        still_held: stopped.still_held,
        dependents: stopped.dependents,
    }
}

/// Why a service is where it is.
pub fn service_diagnosis_body(diagnosis: Diagnosis) -> ServiceDiagnosisBody {
    ServiceDiagnosisBody {
        name: diagnosis.name,
        status: diagnosis.status,
        because: diagnosis.cause,
        evidence: diagnosis.evidence,
        hints: diagnosis.hints,
        shared: diagnosis.shared_ports,
        question: diagnosis.question.map(|question| ServiceQuestionBody {
            text: question.text,
            interaction: question.interaction,
            secret: question.secret,
        }),
    }
}

/// A command that is a service.
pub fn detected_service_body(detected: DetectedService) -> DetectedServiceBody {
    let timeout = detected.ready.timeout();
    DetectedServiceBody {
        id: detected.id,
        title: detected.title,
        normalised: detected.normalised,
        kind: detected.ready.kind,
        ready_when: ProbeBody::from(&detected.ready.when),
        ready_timeout_ms: as_millis(timeout),
        port: detected.ready.port,
        default_port: detected.ready.default_port,
        ready_patterns: detected.ready.ready,
        fail_patterns: detected.ready.fail,
        env: detected.env,
        port_arguments: detected.port_arguments,
        terminal: detected.terminal,
    }
}

/// A request to run a service; `start` is made of the other half of the body.
pub fn service_request(
    service: ServiceOptionsBody,
    restart: Option<RestartPolicy>,
    start: StartRequest,
) -> ServiceRequest {
    ServiceRequest {
        name: service.name,
        ready_when: service.ready_when.map(ReadyCondition::from),
        ready_pattern: service.ready_pattern,
        fail_pattern: service.fail_pattern,
        ready_timeout: service.ready_timeout_ms.map(Duration::from_millis),
        restart: restart.unwrap_or(RestartPolicy::Never),
        health: service.health.map(HealthRule::from),
        depends_on: service
            .depends_on
            .into_iter()
            .map(Dependency::from)
            .collect(),
        port: service.port.map_or(PortRequest::Own, port_request),
        ..ServiceRequest::new(start)
    }
}

fn port_request(body: PortRequestBody) -> PortRequest {
    match body {
        PortRequestBody::Number(port) => PortRequest::Fixed(port),
        PortRequestBody::Auto => PortRequest::Lease,
    }
}
