//! `ostler wait`.

use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_api::{WaitBody, WaitEndKind, WaitResponse, WaitUntil};
use ostler_model::ErrorCode;
use ostler_model::duration::as_millis;
use ostler_render::{clean, service as words};

use super::{id_alias, ids, value_parsers};
use crate::client::{DaemonClient, RequestBody, RetryLimit};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;

/// What `wait` takes.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Which execution; of several, all are waited for, and the exit code is that of the last
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// At most this long, for example 30s; then the exit code is 75 and it goes on running
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    timeout: Option<Duration>,
    /// Until the service is ready; exits with 0 then, and with 1 when it shows that it will
    /// not be, or ended
    #[arg(long)]
    ready: bool,
}

/// The exit code if a service failed to become ready.
const EXIT_NOT_READY: u8 = 1;

/// Waits for the end, and exits with the command's exit code; or until a service is ready.
///
/// # Errors
/// When the timeout expires, or the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &WaitArgs) -> CommandResult {
    let client = context.client();
    // A time limit beyond all clocks is none.
    let deadline = args
        .timeout
        .and_then(|limit| Instant::now().checked_add(limit));
    block_on(async {
        let mut result = Ok(0);
        for id in &args.ids {
            // As wait(1): what became of those before the last one is only told.
            if let Err(error) = result {
                crate::print_error(&error);
            }
            result = wait_for_one(&client, id, args.ready, deadline).await;
            result = result.map_err(|error| ids::name_subject(error, id, &args.ids));
        }
        result
    })
}

/// Waits for one; returns its exit code.
async fn wait_for_one(
    client: &DaemonClient,
    id: &str,
    ready: bool,
    deadline: Option<Instant>,
) -> CommandResult {
    let result = match id_alias::resolve(client, id).await {
        Ok(id) => wait(client, &id, ready, deadline).await,
        Err(error) => Err(error),
    };
    match result {
        Ok(result) => exit_code(&result, ready),
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}

fn exit_code(result: &WaitResponse, ready: bool) -> CommandResult {
    match result.why {
        WaitEndKind::TimedOut => Err(CommandError::new(
            ErrorCode::ProcessTimeout,
            format!(
                "{} is still running{}",
                result.info.id,
                waiting_reason(result)
            ),
        )),
        WaitEndKind::Ready => Ok(0),
        WaitEndKind::NotReady => Ok(report_not_ready(result)),
        WaitEndKind::Exit if ready => Ok(report_not_ready(result)),
        WaitEndKind::Exit
        | WaitEndKind::Pattern
        | WaitEndKind::Output
        | WaitEndKind::Idle
        | WaitEndKind::Prompt
        | WaitEndKind::Nothing => match &result.error {
            Some(error) => Err(CommandError::new(error.code.0, error.message.clone())),
            None => Ok(end::exit_code(&result.info)),
        },
    }
}

/// What a starting service waits for.
fn waiting_reason(result: &WaitResponse) -> String {
    let state = result.info.service.as_deref();
    let waiting_for = state.and_then(|state| state.waits_for.as_deref());
    waiting_for.map_or_else(String::new, |what| format!("; it waits for {what}"))
}

/// Reports why a service is not ready.
fn report_not_ready(result: &WaitResponse) -> u8 {
    let state = result.info.service.as_deref();
    let was_ready = state.is_some_and(|state| state.evidence.is_some());
    let reason = match &result.detail {
        Some(detail) => detail.clone(),
        None => words::end_reason(result.info.error_message.as_deref(), was_ready),
    };
    crate::print_note(&clean(&words::render_not_ready(&reason, was_ready)));
    EXIT_NOT_READY
}

/// Waits, across daemon restarts.
async fn wait(
    client: &DaemonClient,
    id: &str,
    ready: bool,
    deadline: Option<Instant>,
) -> Result<WaitResponse, CommandError> {
    let mut attempts = RetryLimit::new();
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let body = WaitBody {
            until: if ready {
                WaitUntil::Ready
            } else {
                WaitUntil::Exit
            },
            pattern: None,
            idle_ms: None,
            at_most_ms: left.map(as_millis),
        };
        let path = ids::path(id, "/wait");
        match client
            .call(Method::POST, &path, RequestBody::json(&body)?)
            .await
        {
            Err(error @ CommandError::Disconnected(_)) => attempts.allow_retry(error)?,
            result => return result,
        }
    }
}
