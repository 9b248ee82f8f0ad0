//! `ostler version`.

use clap::Args;
use hyper::Method;
use ostler_api::HealthBody;
use serde_json::json;

use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::daemon::{state_dir_mismatch, unreachable_message};
use crate::error::CommandResult;
use crate::output::{StdoutWriter, print_json};

/// What `version` takes.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints the version of this program, and that of the daemon if one runs; starts none.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(context: &CliContext, args: &VersionArgs) -> CommandResult {
    let client = context.running_daemon_client();
    let health = client.call::<HealthBody>(Method::GET, "/api/v1/health", RequestBody::None);
    let health = block_on(health);
    let unreachable = health
        .as_ref()
        .err()
        .and_then(|_| unreachable_message(&context.dirs));
    let daemon = health.ok();
    context.report_problems();
    let version = env!("CARGO_PKG_VERSION");
    if args.json {
        print_json(&json!({
            "version": version,
            "daemon": daemon,
            "problem": unreachable,
        }))?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    out.write_line(format!("ostler {version}"))?;
    match daemon {
        Some(health) => {
            out.write_line(format!(
                "daemon {} (process {}, since {}, {} running)",
                health.version, health.pid, health.started_at, health.running
            ))?;
            if let Some(mismatch) = state_dir_mismatch(&context.dirs, &health.state_dir) {
                out.write_line(format!("warning: {mismatch}"))?;
            }
        }
        None => out.write_line(unreachable.as_deref().unwrap_or("daemon not running"))?,
    }
    out.flush()?;
    Ok(0)
}
