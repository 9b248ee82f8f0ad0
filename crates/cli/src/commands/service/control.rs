//! `ostler service stop` and `ostler service restart`.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use ostler_model::{ErrorCode, Holder};
use ostler_server::wire::{EnsuredBody, ServiceBody, ServiceStoppedBody, StopBody};

use super::answer::{How, awaited};
use super::ask::{Desk, WorkspaceArgs, desk};
use super::board::Board;
use super::waiting::{Interrupt, WaitArgs};
use crate::client::Body;
use crate::commands::parse;
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};
use crate::setup::{Setup, block_on};

/// What verbs take that do one thing to each name.
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// Which services
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
}

/// What `stop` takes.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Which services
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// At once, without a polite request
    #[arg(short, long, conflicts_with = "grace")]
    force: bool,
    /// Between the polite request and the kill, for example 10s
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    grace: Option<Duration>,
    /// Recorded with the stop
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    workspaces: WorkspaceArgs,
    /// What became of each, as JSON
    #[arg(long)]
    json: bool,
}

/// What `restart` takes.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    workspaces: WorkspaceArgs,
}

/// What `dismiss` takes.
#[derive(Debug, Args)]
pub(crate) struct DismissArgs {
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    workspaces: WorkspaceArgs,
}

/// How services are stopped.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) body: StopBody,
    pub(super) json: bool,
}

/// One that is to be stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StopTarget {
    /// What people call it.
    pub(super) name: String,
    /// What it is asked for by: its id, where that is known.
    pub(super) by: String,
}

impl StopTarget {
    pub(super) fn called(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            by: name.to_owned(),
        }
    }
}

/// Stops services, and waits until they are gone and their ports free.
///
/// # Errors
/// When the daemon cannot be asked.
pub(super) fn stop(setup: &Setup, args: &StopArgs) -> Outcome {
    let desk = desk(setup, None)?.over(args.workspaces);
    let body = StopBody {
        force: args.force,
        grace_ms: args.grace.map(parse::millis),
        reason: args.reason.clone(),
    };
    let stopping = Stopping {
        body,
        json: args.json,
    };
    let meant: Vec<StopTarget> = args
        .names
        .iter()
        .map(|name| StopTarget::called(name))
        .collect();
    block_on(stop_each(&desk, &meant, &stopping))
}

/// Stops one after the other; goes on after an error, and exits with the first one's code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) async fn stop_each(desk: &Desk, meant: &[StopTarget], stopping: &Stopping) -> Outcome {
    let mut gone = HashSet::new();
    let mut code = 0;
    for StopTarget { name, by } in meant {
        // It went before another one already.
        if gone.contains(name) {
            continue;
        }
        let body = Body::json(&stopping.body)?;
        let stopped: Result<ServiceStoppedBody, _> = desk.post(by, "/stop", body).await;
        let told = match stopped {
            Ok(stopped) => {
                gone.extend(stopped.dependents.iter().cloned());
                tell(&stopped, stopping.json)
            }
            Err(error) => Err(error),
        };
        match told {
            Ok(()) => {}
            Err(CommandError::BrokenPipe) => return Err(CommandError::BrokenPipe),
            Err(error) => {
                crate::report(&error);
                code = if code == 0 { error.exit_code() } else { code };
            }
        }
    }
    Ok(code)
}

/// Says what became of a stop; a port that is still held is an error (E8).
fn tell(stopped: &ServiceStoppedBody, json: bool) -> Result<(), CommandError> {
    if json {
        print_json(stopped)?;
    } else {
        let mut out = Out::new();
        for dependent in &stopped.dependents {
            out.line(format!("{dependent} stopped, which depends on it"))?;
        }
        let name = &stopped.service.name;
        match stopped.released.as_slice() {
            [] => out.line(format!("{name} stopped"))?,
            ports => {
                let told: Vec<String> = ports.iter().map(u16::to_string).collect();
                let word = if ports.len() == 1 { "port" } else { "ports" };
                out.line(format!("{name} stopped; {word} {} free", told.join(", ")))?;
            }
        }
        out.flush()?;
    }
    match stopped.still_held.as_slice() {
        [] => Ok(()),
        held => {
            let told: Vec<String> = held.iter().map(holder).collect();
            let message = format!("{} stopped, but {}", stopped.service.name, told.join("; "));
            Err(CommandError::new(ErrorCode::ProcessControl, message)
                .with_hint("somebody else listens there; nothing of theirs was touched"))
        }
    }
}

fn holder(holder: &Holder) -> String {
    let who = match (holder.process.as_str(), holder.pid) {
        ("", None) => "another user's process".to_owned(),
        ("", Some(pid)) => format!("pid {pid}"),
        (process, None) => process.to_owned(),
        (process, Some(pid)) => format!("{process} (pid {pid})"),
    };
    format!("{} is held by {who}", holder.address)
}

/// Leaves ended services out of lists; goes on after an error, and exits with the first one's
/// code.
///
/// # Errors
/// When the daemon cannot be asked, or standard output cannot be written.
pub(super) fn dismiss(setup: &Setup, args: &DismissArgs) -> Outcome {
    let desk = desk(setup, None)?.over(args.workspaces);
    block_on(async {
        let mut code = 0;
        for name in &args.names.names {
            let dismissed: Result<ServiceBody, _> = desk.post(name, "/dismiss", Body::None).await;
            match dismissed {
                Ok(service) => {
                    let mut out = Out::new();
                    out.line(&service.name)?;
                    out.flush()?;
                }
                Err(error) => {
                    crate::report(&error);
                    code = if code == 0 { error.exit_code() } else { code };
                }
            }
        }
        Ok(code)
    })
}

/// Starts services anew, and waits until they are ready.
///
/// # Errors
/// When the daemon cannot be asked.
pub(super) fn restart(setup: &Setup, args: &RestartArgs) -> Outcome {
    let desk = desk(setup, None)?.over(args.workspaces);
    let mut board = Board::new(setup, false);
    block_on(async {
        let mut interrupt = Interrupt::catch()?;
        let mut begun = Vec::new();
        for name in &args.names.names {
            let service: ServiceBody = desk.post(name, "/restart", Body::None).await?;
            begun.push(EnsuredBody {
                service,
                reused: false,
                completes: false,
                note: "restarted".to_owned(),
                waited: None,
                reason: None,
                shared: Vec::new(),
                message: String::new(),
            });
        }
        let how = How {
            json: false,
            single: begun.len() == 1,
        };
        let wait = WaitArgs {
            no_wait: false,
            timeout: None,
        };
        awaited(&desk.client, begun, wait, how, (&mut board, &mut interrupt)).await
    })
}
