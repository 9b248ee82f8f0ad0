//! `ostler service stop` and `ostler service restart`.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use ostler_api::{EnsureResponse, ServiceBody, ServiceStopResponse, StopBody, UpResponse};
use ostler_model::duration::as_millis;
use ostler_model::{ErrorCode, PortHolder};

use super::client::{AllWorkspacesArgs, ServiceClient, service_client};
use super::print::{OutputMode, WaitUi, wait_and_print};
use super::progress::ProgressLines;
use super::wait::{Interrupt, ReadyWaitArgs};
use crate::batch::BatchExit;
use crate::client::RequestBody;
use crate::commands::value_parsers;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;
use crate::output::{StdoutWriter, print_json};

/// What verbs take that do one thing to each name.
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// Which services
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
}

/// What `stop` takes.
#[derive(Debug, Args)]
pub(crate) struct ServiceStopArgs {
    /// Which services
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// At once, without a polite request
    #[arg(short, long, conflicts_with = "grace")]
    force: bool,
    /// Between the polite request and the kill, for example 10s
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    grace: Option<Duration>,
    /// Recorded with the stop
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    workspaces: AllWorkspacesArgs,
    /// What became of each, as JSON
    #[arg(long)]
    json: bool,
}

/// What `restart` takes.
#[derive(Debug, Args)]
pub(crate) struct ServiceRestartArgs {
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    workspaces: AllWorkspacesArgs,
}

/// What `dismiss` takes.
#[derive(Debug, Args)]
pub(crate) struct DismissArgs {
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    workspaces: AllWorkspacesArgs,
}

/// How services are stopped.
#[derive(Debug)]
pub(super) struct StopOptions {
    pub(super) body: StopBody,
    pub(super) json: bool,
}

/// A service to be stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StopTarget {
    /// The name for people.
    pub(super) name: String,
    /// The selector in the request: its id, if known.
    pub(super) selector: String,
}

impl StopTarget {
    pub(super) fn from_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            selector: name.to_owned(),
        }
    }
}

/// Stops services, and waits until they have ended and their ports are free.
///
/// # Errors
/// When the daemon cannot be reached.
pub(super) fn stop(context: &CliContext, args: &ServiceStopArgs) -> CommandResult {
    let client = service_client(context, None)?.with_workspaces(args.workspaces);
    let body = StopBody {
        force: args.force,
        grace_ms: args.grace.map(as_millis),
        reason: args.reason.clone(),
    };
    let options = StopOptions {
        body,
        json: args.json,
    };
    let targets: Vec<StopTarget> = args
        .names
        .iter()
        .map(|name| StopTarget::from_name(name))
        .collect();
    block_on(stop_targets(&client, &targets, &options))
}

/// Stops one after the other; continues after an error, and returns the first error's exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) async fn stop_targets(
    client: &ServiceClient,
    targets: &[StopTarget],
    options: &StopOptions,
) -> CommandResult {
    let mut stopped_names = HashSet::new();
    let mut exit = BatchExit::default();
    for StopTarget { name, selector: by } in targets {
        // It was stopped together with an earlier one.
        if stopped_names.contains(name) {
            continue;
        }
        let body = RequestBody::json(&options.body)?;
        let stopped: Result<ServiceStopResponse, _> = client.post(by, "/stop", body).await;
        let result = match stopped {
            Ok(stopped) => {
                stopped_names.extend(stopped.dependents.iter().cloned());
                print_stopped(&stopped, options.json)
            }
            Err(error) => Err(error),
        };
        exit.record(result)?;
    }
    Ok(exit.code())
}

/// Reports the result of a stop; a process that survived, or a port that is still in use, is an error.
fn print_stopped(stopped: &ServiceStopResponse, json: bool) -> Result<(), CommandError> {
    if json {
        print_json(stopped)?;
    } else {
        let mut out = StdoutWriter::new();
        for dependent in &stopped.dependents {
            out.write_line(format!("{dependent} stopped, which depends on it"))?;
        }
        let name = &stopped.service.name;
        match stopped.released.as_slice() {
            [] if stopped.service.execution.is_none() => {
                out.write_line(format!("{name} was never started"))?;
            }
            [] => out.write_line(format!("{name} stopped"))?,
            ports => {
                let numbers: Vec<String> = ports.iter().map(u16::to_string).collect();
                let word = if ports.len() == 1 { "port" } else { "ports" };
                out.write_line(format!(
                    "{name} stopped; {word} {} free",
                    numbers.join(", ")
                ))?;
            }
        }
        out.flush()?;
    }
    if let Some(info) = &stopped.service.execution {
        end::check_survivors(info)?;
    }
    match stopped.still_held.as_slice() {
        [] => Ok(()),
        port_holders => {
            let holders: Vec<String> = port_holders.iter().map(describe_holder).collect();
            let message = format!(
                "{} stopped, but {}",
                stopped.service.name,
                holders.join("; ")
            );
            Err(CommandError::new(ErrorCode::ProcessControl, message)
                .with_hint("somebody else listens there; nothing of theirs was touched"))
        }
    }
}

fn describe_holder(holder: &PortHolder) -> String {
    let who = match (holder.process.as_str(), holder.pid) {
        ("", None) => "another user's process".to_owned(),
        ("", Some(pid)) => format!("pid {pid}"),
        (process, None) => process.to_owned(),
        (process, Some(pid)) => format!("{process} (pid {pid})"),
    };
    format!("{} is held by {who}", holder.address)
}

/// Removes ended services from lists; continues after an error, and returns the first error's
/// exit code.
///
/// # Errors
/// When the daemon cannot be reached, or standard output cannot be written.
pub(super) fn dismiss(context: &CliContext, args: &DismissArgs) -> CommandResult {
    let client = service_client(context, None)?.with_workspaces(args.workspaces);
    block_on(async {
        let mut exit = BatchExit::default();
        for name in &args.names.names {
            let dismissed: Result<ServiceBody, _> =
                client.post(name, "/dismiss", RequestBody::None).await;
            exit.record(dismissed.and_then(|service| print_name(&service.name)))?;
        }
        Ok(exit.code())
    })
}

/// Prints the name of a service that the verb was carried out for.
pub(super) fn print_name(name: &str) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    out.write_line(name)?;
    out.flush()
}

/// Restarts services, and waits until they are ready; continues after an error, and returns the first
/// error's exit code.
///
/// # Errors
/// When the daemon cannot be reached, or standard output cannot be written.
pub(super) fn restart(context: &CliContext, args: &ServiceRestartArgs) -> CommandResult {
    let client = service_client(context, None)?.with_workspaces(args.workspaces);
    let mut progress = ProgressLines::new(context, false);
    block_on(async {
        let mut interrupt = Interrupt::install()?;
        let mut exit = BatchExit::default();
        let mut restarted = Vec::new();
        for name in &args.names.names {
            let service = client.post(name, "/restart", RequestBody::None).await;
            exit.record(service.map(|service| restarted.push(restart_response(service))))?;
        }
        if restarted.is_empty() {
            return Ok(exit.code());
        }
        let mode = OutputMode {
            json: false,
            single: args.names.names.len() == 1,
        };
        let wait = ReadyWaitArgs {
            no_wait: false,
            timeout: None,
        };
        let waited = wait_and_print(
            &client.daemon,
            UpResponse {
                services: restarted,
                failures: Vec::new(),
                pending: Vec::new(),
            },
            wait,
            mode,
            WaitUi {
                progress: &mut progress,
                interrupt: &mut interrupt,
            },
        )
        .await;
        let waited = waited.map(|code| exit.add_code(code));
        exit.record(waited)?;
        Ok(exit.code())
    })
}

fn restart_response(service: ServiceBody) -> EnsureResponse {
    EnsureResponse {
        service,
        reused: false,
        completes: false,
        note: "restarted".to_owned(),
        waited: None,
        reason: None,
        shared: Vec::new(),
        message: String::new(),
    }
}
