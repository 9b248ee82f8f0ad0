//! `ostler version`.

use clap::Args;
use hyper::Method;
use ostler_server::wire::HealthBody;
use serde_json::json;

use crate::client::Body;
use crate::daemon::{other_state, unreachable};
use crate::error::Outcome;
use crate::output::{Out, print_json};
use crate::setup::{Setup, block_on};

/// What `version` takes.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints our version, and that of the daemon where one runs; starts none.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(setup: &Setup, args: &VersionArgs) -> Outcome {
    let client = setup.client_of_running();
    let asked = client.call::<HealthBody>(Method::GET, "/api/v1/health", Body::None);
    let asked = block_on(asked);
    let unreachable = asked
        .as_ref()
        .err()
        .and_then(|_| unreachable(&setup.places));
    let daemon = asked.ok();
    setup.tell_problems();
    let version = env!("CARGO_PKG_VERSION");
    if args.json {
        print_json(&json!({
            "version": version,
            "daemon": daemon,
            "problem": unreachable,
        }))?;
        return Ok(0);
    }
    let mut out = Out::new();
    out.line(format!("ostler {version}"))?;
    match daemon {
        Some(health) => {
            out.line(format!(
                "daemon {} (process {}, since {}, {} running)",
                health.version, health.pid, health.started_at, health.running
            ))?;
            if let Some(other) = other_state(&setup.places, &health.state_dir) {
                out.line(format!("warning: {other}"))?;
            }
        }
        None => out.line(unreachable.as_deref().unwrap_or("daemon not running"))?,
    }
    out.flush()?;
    Ok(0)
}
