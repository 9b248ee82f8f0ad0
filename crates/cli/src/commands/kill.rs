//! `ostler kill`.

use clap::Args;
use hyper::Method;
use ostler_model::Signal;
use ostler_server::wire::SignalBody;

use super::{ids, parse};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::setup::{Setup, block_on};

/// What `kill` takes.
#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// Which signal, by name or number
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", value_parser = parse::signal)]
    signal: Signal,
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Sends the signal to each execution's process group.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &KillArgs) -> Outcome {
    let client = setup.client();
    block_on(ids::each(&client, &args.ids, |id| {
        let client = &client;
        async move { send(client, &id, args.signal).await }
    }))
}

/// Sends one signal to one execution.
///
/// # Errors
/// As the daemon answers.
pub(crate) async fn send(client: &Client, id: &str, signal: Signal) -> Result<(), CommandError> {
    let body = Body::json(&SignalBody { signal })?;
    let path = ids::path(id, "/signal");
    client.bytes(Method::POST, &path, body).await.map(drop)
}
