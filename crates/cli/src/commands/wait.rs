//! `ostler wait`.

use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_api::{WaitBody, WaitEndKind, WaitResponse, WaitUntil};
use ostler_model::ErrorCode;
use ostler_model::duration::as_millis;
use ostler_render::{clean, service as words};

use super::{ids, value_parsers};
use crate::client::{DaemonClient, RequestBody, RetryLimit};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;

/// What `wait` takes.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
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
    block_on(async {
        let result = match wait(&client, args).await {
            Ok(waited) => waited,
            Err(error) => return Err(ids::suggest(&client, &args.id, error).await),
        };
        match result.why {
            WaitEndKind::TimedOut => Err(CommandError::new(
                ErrorCode::ProcessTimeout,
                format!(
                    "{} is still running{}",
                    result.info.id,
                    waiting_reason(&result)
                ),
            )),
            WaitEndKind::Ready => Ok(0),
            WaitEndKind::NotReady => Ok(report_not_ready(&result)),
            WaitEndKind::Exit if args.ready => Ok(report_not_ready(&result)),
            WaitEndKind::Exit
            | WaitEndKind::Pattern
            | WaitEndKind::Output
            | WaitEndKind::Idle
            | WaitEndKind::Prompt
            | WaitEndKind::Nothing => match result.error {
                Some(error) => Err(CommandError::new(error.code.0, error.message)),
                None => Ok(end::exit_code(&result.info)),
            },
        }
    })
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
async fn wait(client: &DaemonClient, args: &WaitArgs) -> Result<WaitResponse, CommandError> {
    let start = Instant::now();
    let mut attempts = RetryLimit::new();
    loop {
        let left = args
            .timeout
            .map(|limit| limit.saturating_sub(start.elapsed()));
        let body = WaitBody {
            until: if args.ready {
                WaitUntil::Ready
            } else {
                WaitUntil::Exit
            },
            pattern: None,
            idle_ms: None,
            at_most_ms: left.map(as_millis),
        };
        let path = ids::path(&args.id, "/wait");
        match client
            .call(Method::POST, &path, RequestBody::json(&body)?)
            .await
        {
            Err(error @ CommandError::Disconnected(_)) => attempts.allow_retry(error)?,
            result => return result,
        }
    }
}
