//! `ostler kill`.

use clap::Args;
use hyper::Method;
use ostler_api::SignalBody;
use ostler_model::Signal;

use super::{ids, value_parsers};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// What `kill` takes.
#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// Which signal, by name or number
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", value_parser = value_parsers::SIGNAL, hide_possible_values = true)]
    signal: Signal,
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Sends the signal to each execution's process group.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &KillArgs) -> CommandResult {
    let client = context.client();
    block_on(ids::for_each(&client, &args.ids, |id| {
        let client = &client;
        async move { send(client, &id, args.signal).await }
    }))
}

/// Sends one signal to one execution.
///
/// # Errors
/// As the daemon responds.
pub(crate) async fn send(
    client: &DaemonClient,
    id: &str,
    signal: Signal,
) -> Result<(), CommandError> {
    let body = RequestBody::json(&SignalBody { signal })?;
    let path = ids::path(id, "/signal");
    client.call_bytes(Method::POST, &path, body).await.map(drop)
}
