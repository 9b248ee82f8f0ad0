//! The request that starts again what was started before: as this engine holds it, as it was
//! stored, or, for state directories older than that, rebuilt.

use std::sync::Arc;

use ostler_model::{ByteString, Lifetime, Owner, RequestRecord, ServiceRecord, Spec, StartOptions};

use super::build_request::DefinitionOrigin;
use super::caller_services::plan_of;
use super::manager::ServiceManager;
use super::starter::ResolvedService;
use super::{ServiceError, ServiceRequest, legacy};
use crate::admission::secrets;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::{ClientKind, StartRequest};
use crate::secret_texts::{LiteralEscaping, ResolvedSecret, SecretTexts};

/// The client's environment and options of a service, for another version of its definition.
pub(crate) fn base_request(
    manager: &ServiceManager,
    entry: &ExecutionHandle,
) -> Result<StartRequest, Error> {
    let held = manager.services.stored_request(entry.id);
    if let Some(base) = held.as_ref().and_then(|it| it.base.clone()) {
        return Ok(base.as_ref().clone());
    }
    let secrets = secrets::resolve_for_relaunch(&manager.core.settings, &entry.spec)?;
    let base = stored_service(&entry.spec).and_then(|(_, service)| service.base.as_deref());
    match base {
        Some(base) => Ok(start_with(entry, base.clone(), &secrets)),
        None => legacy::rebuild_base(&manager.core, entry, &secrets),
    }
}

/// The request of a command, for another caller and its environment.
///
/// # Errors
/// For services and shell sessions, which are more than their command.
pub(crate) fn command_request(
    core: &EngineInner,
    entry: &ExecutionHandle,
    owner: &Owner,
    client_env: Vec<(ByteString, ByteString)>,
) -> Result<StartRequest, Error> {
    let Lifetime::Finite { timeout, idle } = entry.spec.lifetime else {
        return Err(not_restartable(entry, "a service"));
    };
    if entry.spec.shell.is_some() {
        return Err(not_restartable(entry, "a shell session"));
    }
    let secrets = secrets::resolve_for_restart(&core.settings, &entry.spec, owner, &client_env)?;
    let mut start = match &entry.spec.request {
        Some(record) => {
            let options = as_resolved(record.options.clone(), &entry.spec);
            start_with(entry, options, &secrets)
        }
        None => legacy::rebuild_start(core, entry, &secrets)?,
    };
    start.base_env = client_env;
    (start.options.timeout, start.options.idle) = (timeout, idle);
    // Its terminal may have been resized.
    start.options.pty = entry.info().size();
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

/// The request of a service.
pub(crate) fn service_request(
    manager: &ServiceManager,
    entry: &ExecutionHandle,
) -> Result<ResolvedService, Error> {
    if let Some(held) = manager.services.stored_request(entry.id) {
        return Ok(ResolvedService::clone(&held));
    }
    let secrets = secrets::resolve_for_relaunch(&manager.core.settings, &entry.spec)?;
    match stored_service(&entry.spec) {
        Some((record, service)) => Ok(from_record(entry, record, service, &secrets)),
        None => legacy::rebuild_service(manager, entry, &secrets),
    }
}

fn stored_service(spec: &Spec) -> Option<(&RequestRecord, &ServiceRecord)> {
    let record = spec.request.as_deref()?;
    Some((record, record.service.as_deref()?))
}

fn from_record(
    entry: &ExecutionHandle,
    record: &RequestRecord,
    service: &ServiceRecord,
    secrets: &[ResolvedSecret],
) -> ResolvedService {
    let plan = plan_of(entry);
    let options = as_resolved(record.options.clone(), &entry.spec);
    let base = service.base.as_deref().cloned();
    let texts = SecretTexts::new(secrets);
    let escaping = LiteralEscaping::of(&entry.spec);
    let reveal = |text: &ByteString| texts.reveal(text, escaping);
    let ready_when = service.ready_when.clone();
    let health = service.health.clone();
    ResolvedService {
        request: ServiceRequest {
            name: service.name.clone(),
            start: start_with(entry, options, secrets),
            ready_when: ready_when.map(|it| it.map_texts(reveal)),
            ready_pattern: service.ready_pattern.clone(),
            fail_pattern: service.fail_pattern.clone(),
            ready_timeout: service.ready_timeout,
            restart: service.restart,
            health: health.map(|it| it.map_texts(reveal)),
            depends_on: service.depends_on.clone(),
            port: service.port,
            automatic: service.automatic,
        },
        origin: plan.defined_in.clone().zip(plan.defined_as.clone()).map(
            |(defined_in, defined_as)| DefinitionOrigin {
                defined_in,
                defined_as,
            },
        ),
        base: base.map(|options| Arc::new(start_with(entry, options, secrets))),
    }
}

/// The options with what the settings decided for the first start, so that the same is started
/// under other settings, too.
fn as_resolved(mut options: StartOptions, spec: &Spec) -> StartOptions {
    options.level.get_or_insert(spec.policy.level);
    match &spec.container {
        Some(container) => {
            let image = &container.image;
            options.container.image.get_or_insert_with(|| image.clone());
        }
        None => {
            options.inherit_env.get_or_insert(spec.env.inherit);
        }
    }
    options.encoding = options.encoding.or_else(|| spec.encoding.clone());
    options.retention = legacy::retention(spec);
    options
}

/// A request with these stored options, secrets in their places. The client's environment is not
/// stored: that of the settings replaces it.
fn start_with(
    entry: &ExecutionHandle,
    options: StartOptions,
    secrets: &[ResolvedSecret],
) -> StartRequest {
    let spec = &entry.spec;
    let texts = SecretTexts::new(secrets);
    let escaping = LiteralEscaping::of(spec);
    let reveal = |text: &ByteString| texts.reveal(text, escaping);
    let command = spec.request.as_ref().and_then(|it| it.command.as_ref());
    let command = command.unwrap_or(&spec.command).map_words(reveal);
    let mut start = StartRequest::new(command, spec.cwd.clone());
    start.options = options.map_texts(reveal);
    start.client_kind = ClientKind::of_name(spec.face.as_deref());
    let template = spec.request.as_ref().and_then(|it| it.template.clone());
    start.template = template.map(|template| Box::new(template.map_values(reveal)));
    start.context = spec.request.as_ref().and_then(|it| it.context.clone());
    start.is_task = spec.request.as_ref().is_some_and(|it| it.is_task);
    start
}
