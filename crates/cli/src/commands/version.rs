//! `ostler version`.

use clap::Args;
use ostler_api::HealthBody;
use ostler_http::rest::HTTP_PROBLEM_HINT;
use ostler_model::ErrorCode;
use serde_json::json;

use crate::client::DaemonState;
use crate::context::{CliContext, block_on};
use crate::daemon::{state_dir_mismatch, unreachable_reason, unresponsive_daemon_message};
use crate::error::{CommandError, CommandResult};
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
/// When standard output cannot be written, or the daemon does not answer.
pub(crate) fn run(context: &CliContext, args: &VersionArgs) -> CommandResult {
    let client = context.running_daemon_client();
    let state = block_on(async { Ok(client.daemon_state().await) })?;
    let mut exit = 0;
    let (daemon, problem) = match state {
        DaemonState::Answers(health) => (Some(health), None),
        DaemonState::Unreachable => (None, unreachable_reason(&context.dirs)),
        DaemonState::Silent => {
            exit = ErrorCode::Initialization.info().exit;
            (None, Some(unresponsive_daemon_message(&context.dirs)))
        }
    };
    context.report_problems();
    let version = env!("CARGO_PKG_VERSION");
    if args.json {
        print_json(&json!({
            "version": version,
            "daemon": daemon,
            "problem": problem,
        }))?;
        return Ok(exit);
    }
    let mut out = StdoutWriter::new();
    out.write_line(format!("ostler {version}"))?;
    match daemon {
        Some(health) => print_daemon(context, &health, &mut out)?,
        None => out.write_line(problem.as_deref().unwrap_or("daemon not running"))?,
    }
    out.flush()?;
    Ok(exit)
}

fn print_daemon(
    context: &CliContext,
    health: &HealthBody,
    out: &mut StdoutWriter,
) -> Result<(), CommandError> {
    out.write_line(format!(
        "daemon {} (process {}, since {}, {} running)",
        health.version, health.pid, health.started_at, health.running
    ))?;
    if let Some(problem) = &health.http_problem {
        out.write_line(format!("warning: HTTP is not served: {problem}"))?;
        out.write_line(format!("hint: {HTTP_PROBLEM_HINT}"))?;
    }
    if let Some(mismatch) = state_dir_mismatch(&context.dirs, &health.state_dir) {
        out.write_line(format!("warning: {mismatch}"))?;
    }
    Ok(())
}
