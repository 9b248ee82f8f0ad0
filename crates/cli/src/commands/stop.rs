//! `ostler stop`.

use std::time::Duration;

use clap::Args;
use hyper::Method;
use ostler_api::{ExecutionBody, StopBody};
use ostler_model::duration::as_millis;

use super::{ids, value_parsers};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;
use crate::output::{StdoutWriter, print_json};

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
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
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
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &StopArgs) -> CommandResult {
    let client = context.client();
    let body = StopBody {
        force: args.force,
        grace_ms: args.grace.map(as_millis),
        reason: args.reason.clone(),
    };
    block_on(ids::for_each(&client, &args.ids, |id| {
        let (client, body) = (&client, &body);
        async move {
            let info = stop(client, &id, body).await?;
            if args.json {
                print_json(&info)?;
            } else {
                let mut out = StdoutWriter::new();
                out.write_line(&info.id)?;
                out.flush()?;
            }
            end::check_survivors(&info)
        }
    }))
}

/// Stops one execution.
///
/// # Errors
/// As the daemon responds.
pub(crate) async fn stop(
    client: &DaemonClient,
    id: &str,
    body: &StopBody,
) -> Result<ExecutionBody, CommandError> {
    let path = ids::path(id, "/stop");
    // An ended execution is not stopped again.
    let body = RequestBody::json(body)?;
    client.call_idempotent(Method::POST, &path, body).await
}
