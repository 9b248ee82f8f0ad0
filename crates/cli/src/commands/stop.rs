//! `ostler stop`.

use std::time::Duration;

use clap::Args;
use hyper::Method;
use ostler_server::wire::{InfoBody, StopBody};

use super::{ids, parse};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};
use crate::setup::{Setup, block_on};

/// What `stop` takes.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// At once, without a polite request
    #[arg(short, long, conflicts_with = "grace")]
    force: bool,
    /// Between the polite request and the kill, for example 10s
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    grace: Option<Duration>,
    /// Recorded with the stop
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// What became of each, as JSON
    #[arg(long)]
    json: bool,
}

/// Stops each execution and waits until it has ended.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &StopArgs) -> Outcome {
    let client = setup.client();
    let body = StopBody {
        force: args.force,
        grace_ms: args.grace.map(parse::millis),
        reason: args.reason.clone(),
    };
    block_on(ids::each(&client, &args.ids, |id| {
        let (client, body) = (&client, &body);
        async move {
            let info = stop(client, &id, body).await?;
            if args.json {
                return print_json(&info);
            }
            let mut out = Out::new();
            out.line(&info.id)?;
            out.flush()
        }
    }))
}

/// Stops one execution.
///
/// # Errors
/// As the daemon answers.
pub(crate) async fn stop(
    client: &Client,
    id: &str,
    body: &StopBody,
) -> Result<InfoBody, CommandError> {
    let path = ids::path(id, "/stop");
    // What has ended is not stopped twice.
    let body = Body::json(body)?;
    client.call_repeatable(Method::POST, &path, body).await
}
