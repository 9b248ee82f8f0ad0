//! `ostler clear`.

use clap::Args;
use hyper::Method;
use ostler_api::ClearOutputResponse;

use super::ids;
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;
use crate::output::StdoutWriter;

/// What `clear` takes.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Drops the present output of each execution.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &ClearArgs) -> CommandResult {
    let client = context.client();
    block_on(ids::for_each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let path = ids::path(&id, "/output");
            let dropped: ClearOutputResponse = client
                .call(Method::DELETE, &path, RequestBody::None)
                .await?;
            let mut out = StdoutWriter::new();
            out.write_line(format!("{id}: {} bytes dropped", dropped.dropped_bytes))?;
            out.flush()
        }
    }))
}
