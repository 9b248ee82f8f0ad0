//! `ostler clear`.

use clap::Args;
use hyper::Method;
use ostler_server::wire::DroppedBody;

use super::ids;
use crate::client::Body;
use crate::error::Outcome;
use crate::output::Out;
use crate::setup::{Setup, block_on};

/// What `clear` takes.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Drops the output of each execution up to now.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &ClearArgs) -> Outcome {
    let client = setup.client();
    block_on(ids::each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let path = ids::path(&id, "/output");
            let dropped: DroppedBody = client.call(Method::DELETE, &path, Body::None).await?;
            let mut out = Out::new();
            out.line(format!("{id}: {} bytes dropped", dropped.dropped_bytes))?;
            out.flush()
        }
    }))
}
