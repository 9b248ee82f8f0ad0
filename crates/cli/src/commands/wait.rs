//! `ostler wait`.

use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_model::ErrorCode;
use ostler_server::render::{clean, service as words};
use ostler_server::wire::{Until, WaitBody, WaitedBody, Why};

use super::{follow, ids, parse};
use crate::client::{Attempts, Body, Client};
use crate::error::{CommandError, Outcome};
use crate::setup::{Setup, block_on};

/// What `wait` takes.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// At most this long, for example 30s; then the exit code is 75 and it goes on running
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    timeout: Option<Duration>,
    /// Until the service is ready; exits with 0 then, and with 1 when it shows that it will
    /// not be, or ended
    #[arg(long)]
    ready: bool,
}

/// What a service exits with that failed to become ready.
const EXIT_NOT_READY: u8 = 1;

/// Waits for the end, and exits with the command's own code; or until a service is ready.
///
/// # Errors
/// When the time runs out, or the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &WaitArgs) -> Outcome {
    let client = setup.client();
    block_on(async {
        let waited = match wait(&client, args).await {
            Ok(waited) => waited,
            Err(error) => return Err(ids::suggest(&client, &args.id, error).await),
        };
        match waited.why {
            Why::AtMost => Err(CommandError::new(
                ErrorCode::ProcessTimeout,
                format!("{} is still running{}", waited.info.id, rest(&waited)),
            )),
            Why::Ready => Ok(0),
            Why::NotReady => Ok(not_ready(&waited)),
            Why::Exit if args.ready => Ok(not_ready(&waited)),
            Why::Exit | Why::Pattern | Why::Output | Why::Idle | Why::Prompt | Why::Nothing => {
                Ok(follow::exit_code(&waited.info))
            }
        }
    })
}

/// What it waits for, where it is a service on its way.
fn rest(waited: &WaitedBody) -> String {
    let state = waited.info.service.as_deref();
    let waits = state.and_then(|state| state.waits_for.as_deref());
    waits.map_or_else(String::new, |what| format!("; it waits for {what}"))
}

/// Tells why a service is not ready.
fn not_ready(waited: &WaitedBody) -> u8 {
    let reason = match &waited.detail {
        Some(detail) => detail.clone(),
        None => words::ended(waited.info.error_message.as_deref()),
    };
    crate::tell(&clean(&words::not_ready(&reason)));
    EXIT_NOT_READY
}

/// Waits, also over the death of a daemon.
async fn wait(client: &Client, args: &WaitArgs) -> Result<WaitedBody, CommandError> {
    let begin = Instant::now();
    let mut attempts = Attempts::new();
    loop {
        let left = args
            .timeout
            .map(|limit| limit.saturating_sub(begin.elapsed()));
        let body = WaitBody {
            until: if args.ready {
                Until::Ready
            } else {
                Until::Exit
            },
            pattern: None,
            idle_ms: None,
            at_most_ms: left.map(parse::millis),
        };
        let path = ids::path(&args.id, "/wait");
        match client.call(Method::POST, &path, Body::json(&body)?).await {
            Err(error @ CommandError::Disconnected(_)) => attempts.next(error)?,
            answer => return answer,
        }
    }
}
