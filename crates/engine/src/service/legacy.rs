//! Requests of executions whose state directory is older than the stored request
//! ([`RequestRecord`](ostler_model::RequestRecord)): rebuilt from the resolved spec, as far as that
//! tells what was requested.

use ostler_model::{
    ByteString, IsolationLevel, Lifetime, PortRequest, RestartPolicy, RetentionRequest,
    SandboxOptions, ServicePlan, Spec,
};

use super::ServiceRequest;
use super::build_request::{DefinitionOrigin, without_port};
use super::caller_services::plan_of;
use super::manager::ServiceManager;
use super::starter::ResolvedService;
use crate::admission::{container, environment, sandbox};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::{ClientKind, StartRequest};
use crate::secret_texts::{LiteralEscaping, ResolvedSecret, SecretTexts};

/// Rebuilds the client's own options of a defined service: variables and secrets are assumed to
/// come from the definition.
pub(super) fn rebuild_base(
    core: &EngineInner,
    entry: &ExecutionHandle,
    known: &[ResolvedSecret],
) -> Result<StartRequest, Error> {
    let mut start = rebuild_start(core, entry, known)?;
    start.options.set_env.clear();
    start.options.secrets.clear();
    Ok(start)
}

/// Rebuilds the request of a service.
pub(super) fn rebuild_service(
    manager: &ServiceManager,
    entry: &ExecutionHandle,
    known: &[ResolvedSecret],
) -> Result<ResolvedService, Error> {
    let texts = SecretTexts::new(known);
    let escaping = LiteralEscaping::of(&entry.spec);
    let plan = plan_of(entry)
        .clone()
        .map_texts(|text| texts.reveal(text, escaping));
    let restart = match entry.spec.lifetime {
        Lifetime::Service { restart, .. } => restart,
        Lifetime::Finite { .. } => RestartPolicy::Never,
    };
    let origin = plan.defined_in.clone().zip(plan.defined_as.clone());
    let mut start = rebuild_start(&manager.core, entry, known)?;
    let port = requested_port(&plan, &start);
    if let Some(number) = plan.ready.port.filter(|_| port != PortRequest::Own) {
        let detected = manager.services.detect(&manager.core.settings, &start);
        start.command = without_port(&start.command, detected.as_ref(), number);
    }
    Ok(ResolvedService {
        request: ServiceRequest {
            name: (!plan.name.is_empty()).then(|| plan.name.clone()),
            start,
            ready_when: Some(plan.ready.when.clone()),
            // The requested patterns cannot be distinguished from the table's any more, and those
            // the table adds again.
            ready_pattern: plan.ready.ready.last().cloned(),
            fail_pattern: plan.ready.fail.last().cloned(),
            ready_timeout: plan.ready.timeout,
            restart,
            health: plan.health.clone(),
            depends_on: plan.depends_on.clone(),
            port,
            automatic: plan.automatic,
        },
        origin: origin.map(|(defined_in, defined_as)| DefinitionOrigin {
            defined_in,
            defined_as,
        }),
        base: None,
    })
}

/// The requested port, as far as known: `PORT` is set where one was assigned.
fn requested_port(plan: &ServicePlan, start: &StartRequest) -> PortRequest {
    if plan.leased_port.is_some() {
        return PortRequest::Lease;
    }
    let set = environment::value(&start.options.set_env, b"PORT").map(ToString::to_string);
    match plan.ready.port {
        Some(port) if set == Some(port.to_string()) => PortRequest::Fixed(port),
        Some(_) | None => PortRequest::Own,
    }
}

/// Rebuilds the start request of an execution, without its client's environment, which is not
/// stored.
pub(super) fn rebuild_start(
    core: &EngineInner,
    entry: &ExecutionHandle,
    known: &[ResolvedSecret],
) -> Result<StartRequest, Error> {
    let spec = &entry.spec;
    let texts = SecretTexts::new(known);
    let escaping = LiteralEscaping::of(spec);
    let reveal = |text: &ByteString| texts.reveal(text, escaping);
    let command = spec.command.map_words(reveal);
    let mut start = StartRequest::new(command, spec.cwd.clone());
    let variables = spec.env.set.iter();
    start.options.set_env = variables
        .map(|(name, value)| (name.clone(), reveal(value)))
        .collect();
    start.options.inherit_env = Some(spec.env.inherit);
    start.options.secrets.clone_from(&spec.env.secrets);
    start.options.level = Some(spec.policy.level);
    start.options.limits = spec.policy.limits;
    let text = |text: &String| reveal(&ByteString::from(text.as_str())).to_string();
    start.options.labels = spec.labels.iter().map(text).collect();
    start.options.description = text(&spec.description);
    start.options.encoding.clone_from(&spec.encoding);
    start.options.keep = spec.keep;
    start.client_kind = ClientKind::of_name(spec.face.as_deref());
    start.options.retention = retention(spec);
    start.options.pty = entry.info().size();
    if let Some(container) = &spec.container {
        *start.options.container = container::options_of(container);
    }
    if spec.policy.level >= IsolationLevel::High {
        start.options.sandbox = rebuild_sandbox_options(core, &start, entry)?;
    } else {
        // Capabilities that were allowed to be missing then may be missing again.
        let missing = spec.policy.missing.iter();
        start.options.sandbox.allow_degraded = missing.map(|it| it.ability).collect();
    }
    Ok(start)
}

/// The sandbox options that its isolation policy results from: what it exposes beyond the defaults.
fn rebuild_sandbox_options(
    core: &EngineInner,
    start: &StartRequest,
    entry: &ExecutionHandle,
) -> Result<SandboxOptions, Error> {
    let Some(sandbox) = &entry.spec.policy.confinement else {
        return Ok(SandboxOptions::default());
    };
    let mut options = SandboxOptions {
        workspace: sandbox.workspace.clone(),
        overlay: sandbox.overlay,
        network: (sandbox.network != core.settings.isolation.network)
            .then(|| sandbox.network.clone()),
        forwards: sandbox.forwards.clone(),
        allow_degraded: sandbox.without.clone(),
        ..SandboxOptions::default()
    };
    let mut plain = start.clone();
    plain.options.sandbox = options.clone();
    if let Some(default_spec) = sandbox::resolve(&core.settings, &plain)? {
        let beyond = |all: &[ByteString], known: &[ByteString]| {
            let more = all.iter().filter(|it| !known.contains(it));
            more.cloned().collect()
        };
        options.read = beyond(&sandbox.read, &default_spec.read);
        options.write = beyond(&sandbox.write, &default_spec.write);
    }
    Ok(options)
}

/// The retention that was in force.
pub(super) fn retention(spec: &Spec) -> RetentionRequest {
    spec.retention
        .map_or(RetentionRequest::Forever, RetentionRequest::For)
}
