//! `ostler service logs`: `ostler logs` by the name of a service.

use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_api::{EventsBody, ExecutionBody, ServiceBody};
use ostler_model::duration::as_millis;
use ostler_model::{ErrorCode, REPLACED};

use super::client::{AllWorkspacesArgs, ServiceClient, service_client};
use crate::client::RequestBody;
use crate::commands::logs::{self, LogsArgs};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// How long a replaced service is given to be started again.
const REPLACEMENT_WAIT: Duration = Duration::from_secs(30);

/// What `service logs` takes.
#[derive(Debug, Args)]
pub(crate) struct ServiceLogsArgs {
    #[command(flatten)]
    logs: LogsArgs,
    #[command(flatten)]
    workspaces: AllWorkspacesArgs,
}

/// Shows the output of a service. With `--follow`, one that is replaced, because its definition
/// changed for example, is followed further.
///
/// # Errors
/// When the service is unknown or never ran, or its output cannot be read or written.
pub(super) fn run(context: &CliContext, args: ServiceLogsArgs) -> CommandResult {
    let client = service_client(context, None)?.with_workspaces(args.workspaces);
    let mut args = args.logs;
    let service = block_on(client.show(&args.id))?;
    let is_named = service.name == args.id;
    let name = service.name.clone();
    let Some(mut info) = service.execution else {
        return Err(never_ran_error(&service));
    };
    let follows = args.follow && is_named;
    loop {
        let next = args.without_start();
        let code = logs::run(context, args.of_execution(&info.id))?;
        if !follows {
            return Ok(code);
        }
        let Some(replacement) = block_on(find_replacement(&client, &name, &info.id))? else {
            return Ok(code);
        };
        crate::print_note(&format!(
            "{name} was replaced: {} ends, {} goes on",
            info.id, replacement.id
        ));
        (info, args) = (replacement, next);
    }
}

fn never_ran_error(service: &ServiceBody) -> CommandError {
    let name = &service.name;
    let message = format!("{name} never ran");
    CommandError::new(ErrorCode::ProcessNotFound, message)
        .with_hint(format!("`ostler service ensure {name}` starts it"))
}

/// The execution that replaces an ended one of this service; none where it ended otherwise, or is
/// not started again in time.
async fn find_replacement(
    client: &ServiceClient,
    name: &str,
    ended: &str,
) -> Result<Option<ExecutionBody>, CommandError> {
    let deadline = Instant::now() + REPLACEMENT_WAIT;
    // Events since now: what happens after the service was looked up is among them.
    let mut events = next_events(client, None, Duration::ZERO).await?;
    loop {
        let Some(info) = client.show(name).await?.execution else {
            return Ok(None);
        };
        if info.id != ended {
            return Ok((!info.is_finished()).then_some(info));
        }
        let reason = info.stop_reason.as_deref().unwrap_or_default();
        let left = deadline.saturating_duration_since(Instant::now());
        if !reason.starts_with(REPLACED) || left.is_zero() {
            return Ok(None);
        }
        events = next_events(client, Some(events.next), left).await?;
    }
}

async fn next_events(
    client: &ServiceClient,
    cursor: Option<u64>,
    wait: Duration,
) -> Result<EventsBody, CommandError> {
    let wait = as_millis(wait);
    let cursor = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
    let path = format!("/api/v1/events?wait_ms={wait}{cursor}");
    client
        .daemon
        .call(Method::GET, &path, RequestBody::None)
        .await
}
