//! `ostler rm`.

use clap::Args;
use hyper::Method;
use ostler_server::wire::{CleanAllBody, StopBody};

use super::{ids, stop};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::Out;
use crate::setup::{Setup, block_on};

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

/// Removes executions with everything they left on disk.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &RmArgs) -> Outcome {
    let client = setup.client();
    if args.all {
        return block_on(all(&client));
    }
    block_on(ids::each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            remove(client, &id, args.force).await?;
            let mut out = Out::new();
            out.line(id)?;
            out.flush()
        }
    }))
}

async fn remove(client: &Client, id: &str, force: bool) -> Result<(), CommandError> {
    if force {
        let body = StopBody {
            force,
            ..StopBody::default()
        };
        stop::stop(client, id, &body).await?;
    }
    let path = ids::path(id, "");
    client
        .bytes(Method::DELETE, &path, Body::None)
        .await
        .map(drop)
}

async fn all(client: &Client) -> Outcome {
    let cleaned: CleanAllBody = client
        .call(Method::POST, "/api/process/clean_all", Body::None)
        .await?;
    let mut out = Out::new();
    out.line(format!("{} removed", cleaned.count))?;
    out.flush()?;
    let error = |pid: &str, reason: &str| {
        CommandError::new(
            ostler_model::ErrorCode::ProcessClean,
            format!("{pid}: {reason}"),
        )
    };
    let mut code = 0;
    for entry in &cleaned.failed {
        let error = error(&entry.pid, &entry.reason);
        crate::report(&error);
        code = error.exit_code();
    }
    Ok(code)
}
