//! `ostler rm`.

use clap::Args;
use hyper::Method;
use ostler_api::{CleanAllResponse, StopBody};

use super::{ids, stop};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;
use crate::output::StdoutWriter;

/// What `rm` takes.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Which executions
    #[arg(
        required_unless_present = "all",
        conflicts_with = "all",
        value_name = "ID"
    )]
    ids: Vec<String>,
    /// All that have ended
    #[arg(short, long)]
    all: bool,
    /// Stop what is running first, at once
    #[arg(short, long, conflicts_with = "all")]
    force: bool,
}

/// Removes executions with all of their files.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &RmArgs) -> CommandResult {
    let client = context.client();
    if args.all {
        return block_on(remove_all(&client));
    }
    block_on(ids::for_each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            remove(client, &id, args.force).await?;
            let mut out = StdoutWriter::new();
            out.write_line(id)?;
            out.flush()
        }
    }))
}

async fn remove(client: &DaemonClient, id: &str, force: bool) -> Result<(), CommandError> {
    if force {
        let body = StopBody {
            force,
            ..StopBody::default()
        };
        let stopped = stop::stop(client, id, &body).await?;
        end::report_survivors(&stopped);
    }
    let path = ids::path(id, "");
    client
        .call_bytes(Method::DELETE, &path, RequestBody::None)
        .await
        .map(drop)
}

async fn remove_all(client: &DaemonClient) -> CommandResult {
    let result: CleanAllResponse = client
        .call(Method::POST, "/api/process/clean_all", RequestBody::None)
        .await?;
    let mut out = StdoutWriter::new();
    out.write_line(format!("{} removed", result.count))?;
    out.flush()?;
    let error = |pid: &str, reason: &str| {
        CommandError::new(
            ostler_model::ErrorCode::ProcessClean,
            format!("{pid}: {reason}"),
        )
    };
    let mut code = 0;
    for entry in &result.failed {
        let error = error(&entry.pid, &entry.reason);
        crate::print_error(&error);
        code = error.exit_code();
    }
    Ok(code)
}
