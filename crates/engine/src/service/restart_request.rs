//! Rebuilds the start request of a service that has ended, or that an earlier engine started, in
//! order to restart it.

use ostler_model::{ByteString, IsolationLevel, Lifetime, Owner, RestartPolicy, ServicePlan};

use super::build_request::{DefinitionOrigin, without_port};
use super::caller_services::plan_of;
use super::starter::ResolvedService;
use super::{PortRequest, ServiceError, ServiceRequest};
use crate::admission::secrets::ResolvedSecret;
use crate::admission::{environment, sandbox, secrets};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::{ClientKind, RetentionRequest, SandboxOptions, StartRequest};

/// The client's environment and options of a service, for another version of its definition.
pub(crate) fn base_request(
    core: &EngineInner,
    entry: &ExecutionHandle,
) -> Result<StartRequest, Error> {
    let stored = core.services.stored_request(entry.id);
    if let Some(base) = stored.as_ref().and_then(|it| it.base.clone()) {
        return Ok(base.as_ref().clone());
    }
    let mut start = rebuild_start(core, entry)?;
    // These are assumed to come from the definition.
    start.set_env.clear();
    start.secrets.clear();
    Ok(start)
}

/// Rebuilds the request of a command from its spec.
///
/// # Errors
/// For services and shell sessions, which are more than their command.
pub(crate) fn rebuild_command(
    core: &EngineInner,
    entry: &ExecutionHandle,
    (owner, client_env): (&Owner, Vec<(ByteString, ByteString)>),
) -> Result<StartRequest, Error> {
    let Lifetime::Finite { timeout, idle } = entry.spec.lifetime else {
        return Err(not_restartable(entry, "a service"));
    };
    if entry.spec.shell.is_some() {
        return Err(not_restartable(entry, "a shell session"));
    }
    let known = secrets::resolve_for_restart(&core.settings, &entry.spec, (owner, &client_env))?;
    let mut start = rebuild_start_with(core, entry, &known)?;
    start.base_env = client_env;
    start.timeout = timeout;
    start.idle = idle;
    Ok(start)
}

fn not_restartable(entry: &ExecutionHandle, kind: &str) -> Error {
    let problem = format!("it is {kind}, not a command that can be started again");
    ServiceError::Value {
        what: "execution",
        given: entry.id.short(),
        problem,
    }
    .into()
}

/// Rebuilds the request of a service from its spec.
pub(crate) fn rebuild_service(
    core: &EngineInner,
    entry: &ExecutionHandle,
) -> Result<ResolvedService, Error> {
    if let Some(stored) = core.services.stored_request(entry.id) {
        return Ok(ResolvedService::clone(&stored));
    }
    let plan = plan_of(entry);
    let restart = match entry.spec.lifetime {
        Lifetime::Service { restart, .. } => restart,
        Lifetime::Finite { .. } => RestartPolicy::Never,
    };
    let origin = plan.defined_in.clone().zip(plan.defined_as.clone());
    let mut start = rebuild_start(core, entry)?;
    let port = requested_port(plan, &start);
    if let Some(number) = plan.ready.port.filter(|_| port != PortRequest::Own) {
        let detected = core.services.detect(&core.settings, &start);
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
    let set = environment::value(&start.set_env, b"PORT").map(ToString::to_string);
    match plan.ready.port {
        Some(port) if set == Some(port.to_string()) => PortRequest::Fixed(port),
        Some(_) | None => PortRequest::Own,
    }
}

/// Rebuilds the start request of an execution from its spec: its client's environment is not
/// recorded, so the settings' environment replaces it.
fn rebuild_start(core: &EngineInner, entry: &ExecutionHandle) -> Result<StartRequest, Error> {
    let known = secrets::resolve_for_relaunch(&core.settings, &entry.spec)?;
    rebuild_start_with(core, entry, &known)
}

fn rebuild_start_with(
    core: &EngineInner,
    entry: &ExecutionHandle,
    known: &[ResolvedSecret],
) -> Result<StartRequest, Error> {
    let spec = &entry.spec;
    let reveal = |text: &ByteString| secrets::unredact(text, known);
    let command = secrets::map_command(&spec.command, reveal);
    let mut start = StartRequest::new(command, spec.cwd.clone());
    let variables = spec.env.set.iter();
    start.set_env = variables
        .map(|(name, value)| (name.clone(), reveal(value)))
        .collect();
    start.inherit_env = Some(spec.env.inherit);
    start.secrets.clone_from(&spec.env.secrets);
    start.level = Some(spec.policy.level);
    start.limits = spec.policy.limits;
    start.labels.clone_from(&spec.labels);
    start.description.clone_from(&spec.description);
    start.encoding.clone_from(&spec.encoding);
    start.keep = spec.keep;
    start.client_kind = client_kind(spec.face.as_deref());
    start.retention = spec
        .retention
        .map_or(RetentionRequest::Forever, RetentionRequest::For);
    start.pty = entry.info().size();
    if spec.policy.level >= IsolationLevel::High {
        start.sandbox = rebuild_sandbox_options(core, &start, entry)?;
    } else {
        // Capabilities that were allowed to be missing then may be missing again.
        let missing = spec.policy.missing.iter();
        start.sandbox.allow_degraded = missing.map(|it| it.ability).collect();
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
    let plain = StartRequest {
        sandbox: options.clone(),
        ..start.clone()
    };
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

fn client_kind(name: Option<&str>) -> ClientKind {
    let all = [
        ClientKind::Command,
        ClientKind::Shell,
        ClientKind::Core,
        ClientKind::Pty,
        ClientKind::Cli,
        ClientKind::Rest,
        ClientKind::Library,
    ];
    let found = all.into_iter().find(|face| Some(face.as_str()) == name);
    found.unwrap_or(ClientKind::Library)
}
