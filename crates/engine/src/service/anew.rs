//! Starting anew what ended, and what an earlier engine started.

use ostler_model::{IsolationLevel, Lifetime, Owner, Restart, ServicePlan, Text};

use super::clerk::Wanted;
use super::compose::{Origin, without_port};
use super::view::plan_of;
use super::{PortWish, ServiceError, ServiceRequest};
use crate::admission::secrets::Secret;
use crate::admission::{confinement, environment, secrets};
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;
use crate::request::{Confine, Face, RetentionRequest, StartRequest};

/// What the front brought that started it, for another version of its definition.
pub(crate) fn front(core: &Core, entry: &Entry) -> Result<StartRequest, Error> {
    let kept = core.book.wanted_of(entry.id);
    if let Some(front) = kept.as_ref().and_then(|it| it.front.clone()) {
        return Ok(front.as_ref().clone());
    }
    let mut start = start_of(core, entry)?;
    // These came with the definition, as far as anybody can tell now.
    start.set_env.clear();
    start.secrets.clear();
    Ok(start)
}

/// The request a command was started with, as far as its spec tells.
///
/// # Errors
/// For services and shell sessions, which are more than their command.
pub(crate) fn command(
    core: &Core,
    entry: &Entry,
    (owner, front): (&Owner, Vec<(Text, Text)>),
) -> Result<StartRequest, Error> {
    let Lifetime::Finite { timeout, idle } = entry.spec.lifetime else {
        return Err(more_than_a_command(entry, "a service"));
    };
    if entry.spec.shell.is_some() {
        return Err(more_than_a_command(entry, "a shell session"));
    }
    let known = secrets::once_more(&core.settings, &entry.spec, (owner, &front))?;
    let mut start = start_with(core, entry, &known)?;
    start.base_env = front;
    start.timeout = timeout;
    start.idle = idle;
    Ok(start)
}

fn more_than_a_command(entry: &Entry, what: &str) -> Error {
    let problem = format!("it is {what}, not a command that can be started again");
    ServiceError::Value {
        what: "execution",
        given: entry.id.short(),
        problem,
    }
    .into()
}

/// What it takes to start it as it was started.
pub(crate) fn wanted(core: &Core, entry: &Entry) -> Result<Wanted, Error> {
    if let Some(kept) = core.book.wanted_of(entry.id) {
        return Ok(Wanted::clone(&kept));
    }
    let plan = plan_of(entry);
    let restart = match entry.spec.lifetime {
        Lifetime::Service { restart, .. } => restart,
        Lifetime::Finite { .. } => Restart::Never,
    };
    let origin = plan.defined_in.clone().zip(plan.defined_as.clone());
    let mut start = start_of(core, entry)?;
    let port = given(plan, &start);
    if let Some(number) = plan.ready.port.filter(|_| port != PortWish::Own) {
        let detected = core.book.detect(&core.settings, &start);
        start.command = without_port(&start.command, detected.as_ref(), number);
    }
    Ok(Wanted {
        request: ServiceRequest {
            name: (!plan.name.is_empty()).then(|| plan.name.clone()),
            start,
            ready_when: Some(plan.ready.when.clone()),
            // The patterns that were asked for cannot be told from the table's any more, and
            // those the table gives again.
            ready_pattern: plan.ready.ready.last().cloned(),
            fail_pattern: plan.ready.fail.last().cloned(),
            ready_timeout: plan.ready.timeout,
            restart,
            health: plan.health.clone(),
            depends_on: plan.depends_on.clone(),
            port,
            automatic: plan.automatic,
        },
        origin: origin.map(|(defined_in, defined_as)| Origin {
            defined_in,
            defined_as,
        }),
        front: None,
    })
}

/// What was asked about its port, as far as can be told: `PORT` is set where it was given one.
fn given(plan: &ServicePlan, start: &StartRequest) -> PortWish {
    if plan.leased_port.is_some() {
        return PortWish::Lease;
    }
    let set = environment::value(&start.set_env, b"PORT").map(ToString::to_string);
    match plan.ready.port {
        Some(port) if set == Some(port.to_string()) => PortWish::Fixed(port),
        Some(_) | None => PortWish::Own,
    }
}

/// The request an execution was started with, as far as its spec tells: its front's environment
/// is gone, so the settings' stands in.
fn start_of(core: &Core, entry: &Entry) -> Result<StartRequest, Error> {
    let known = secrets::again(&core.settings, &entry.spec)?;
    start_with(core, entry, &known)
}

fn start_with(core: &Core, entry: &Entry, known: &[Secret]) -> Result<StartRequest, Error> {
    let spec = &entry.spec;
    let reveal = |text: &Text| secrets::reveal(text, known);
    let command = secrets::in_command(&spec.command, reveal);
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
    start.face = face(spec.face.as_deref());
    start.retention = spec
        .retention
        .map_or(RetentionRequest::Forever, RetentionRequest::For);
    start.pty = entry.info().size();
    if spec.policy.level >= IsolationLevel::High {
        start.confine = confine(core, &start, entry)?;
    } else {
        // What it was allowed to lack then it may lack again.
        let missing = spec.policy.missing.iter();
        start.confine.allow_degraded = missing.map(|it| it.ability).collect();
    }
    Ok(start)
}

/// The wishes that led to its walls: what they show beyond what everybody is shown.
fn confine(core: &Core, start: &StartRequest, entry: &Entry) -> Result<Confine, Error> {
    let Some(walls) = &entry.spec.policy.confinement else {
        return Ok(Confine::default());
    };
    let mut wishes = Confine {
        workspace: walls.workspace.clone(),
        overlay: walls.overlay,
        network: (walls.network != core.settings.isolation.network).then(|| walls.network.clone()),
        forwards: walls.forwards.clone(),
        allow_degraded: walls.without.clone(),
        ..Confine::default()
    };
    let plain = StartRequest {
        confine: wishes.clone(),
        ..start.clone()
    };
    if let Some(shown) = confinement::draft(&core.settings, &plain)? {
        let beyond = |all: &[Text], known: &[Text]| {
            let more = all.iter().filter(|it| !known.contains(it));
            more.cloned().collect()
        };
        wishes.read = beyond(&walls.read, &shown.read);
        wishes.write = beyond(&walls.write, &shown.write);
    }
    Ok(wishes)
}

fn face(name: Option<&str>) -> Face {
    let all = [
        Face::Command,
        Face::Shell,
        Face::Core,
        Face::Pty,
        Face::Cli,
        Face::Rest,
        Face::Library,
    ];
    let found = all.into_iter().find(|face| Some(face.as_str()) == name);
    found.unwrap_or(Face::Library)
}
