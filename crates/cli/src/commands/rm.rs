//! `ostler rm`.

use clap::Args;
use hyper::Method;
use ostler_api::{CleanAllResponse, CleanResponse, StopBody};

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

/// Removes executions with all of their files, and tells of changes in overlays that go with them.
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
            let removed = remove(client, &id, args.force).await?;
            let mut out = StdoutWriter::new();
            out.write_line(&id)?;
            out.flush()?;
            if removed.discarded_changes {
                crate::print_note(&format!(
                    "{id}: changes to its workspace that nobody committed went with it"
                ));
            }
            Ok(())
        }
    }))
}

async fn remove(
    client: &DaemonClient,
    id: &str,
    force: bool,
) -> Result<CleanResponse, CommandError> {
    if force {
        let body = StopBody {
            force,
            ..StopBody::default()
        };
        let stopped = stop::stop(client, id, &body).await?;
        end::report_survivors(&stopped);
    }
    // DELETE answers without a body.
    let path = ids::process_path(id, "/clean");
    client.call(Method::POST, &path, RequestBody::None).await
}

async fn remove_all(client: &DaemonClient) -> CommandResult {
    let result: CleanAllResponse = client
        .call(Method::POST, "/api/process/clean_all", RequestBody::None)
        .await?;
    let mut out = StdoutWriter::new();
    out.write_line(format!("{} removed", result.count))?;
    out.flush()?;
    if !result.discarded_changes.is_empty() {
        let ids = result.discarded_changes.iter();
        let ids: Vec<&str> = ids.map(|entry| entry.pid.as_str()).collect();
        crate::print_note(&format!(
            "changes to the workspace that nobody committed went with {} of them: {}",
            ids.len(),
            ids.join(", ")
        ));
    }
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
