//! `ostler service ps`.

use std::path::{Path, PathBuf};

use clap::Args;
use ostler_api::ServiceBody;
use ostler_model::{Timestamp, duration};
use ostler_render::{clean, service as words};

use super::client::{AllWorkspacesArgs, service_client};
use crate::commands::ps::{command_cell, note_more_results};
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;
use crate::output::{StdoutWriter, Style, StyledLine, TextTable, cells, print_json};

/// What `ps` takes.
#[derive(Debug, Args)]
pub(crate) struct ServiceListArgs {
    /// Also those that are stopped, dismissed, or only defined
    #[arg(short, long)]
    all: bool,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only names
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Where ostler.toml is looked for, upwards; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[command(flatten)]
    workspaces: AllWorkspacesArgs,
    /// Commands in full
    #[arg(long)]
    no_trunc: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Lists services.
///
/// # Errors
/// When the daemon cannot be reached.
pub(super) fn run(context: &CliContext, args: &ServiceListArgs) -> CommandResult {
    let client = service_client(context, args.cwd.clone())?
        .with_workspaces(args.workspaces)
        .include_dismissed(args.all);
    let list = block_on(client.list(args.limit))?;
    let received = list.services.len();
    let mut services = list.services;
    services.retain(|service| args.all || service.status != "stopped");
    if args.json {
        print_json(&services)?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    if args.quiet {
        services
            .iter()
            .try_for_each(|service| out.write_line(&service.name))?;
    } else {
        let style = Style::of_stdout(&context.env);
        services_table(&services, style, args.no_trunc).print(&mut out)?;
    }
    out.flush()?;
    note_more_results(received, list.total, list.next.as_deref());
    if let Some(count @ 1..) = list.elsewhere {
        crate::print_note(&format!(
            "{count} more in other workspaces; --all-workspaces shows them"
        ));
    }
    for service in &services {
        for note in &service.notes {
            crate::print_note(&format!("{}: {}", service.name, clean(note)));
        }
    }
    Ok(0)
}

fn services_table(services: &[ServiceBody], style: Style, no_trunc: bool) -> TextTable {
    let mut table = TextTable::new(&[
        "NAME",
        "WORKSPACE",
        "STATUS",
        "URL",
        "PORTS",
        "PID",
        "RESTARTS",
        "UPTIME",
        "COMMAND",
    ]);
    let none = || "-".to_owned();
    let now = Timestamp::now();
    for service in services {
        let info = service.execution.as_ref();
        let living = info.filter(|_| service.living);
        let state = living.and_then(|info| info.service.as_deref());
        let restarts = info
            .and_then(|info| info.service.as_deref())
            .map(|it| it.restarts);
        let ports = state.map(|state| {
            let ports: Vec<_> = state.ports.iter().map(|port| &port.bound).collect();
            clean(&words::render_ports(&ports)).into_owned()
        });
        // Between two attempts there is no process.
        let running = state.filter(|state| state.backoff_until.is_none());
        let pid = running.and(living).and_then(|info| info.os_pid);
        let uptime = running.and_then(|state| state.attempt_start_time);
        let url = state.and_then(|state| state.url.as_deref()).map(clean);
        table.push_row(cells![
            &service.name,
            workspace_dir(service).unwrap_or_else(none),
            status(service, style),
            url.map_or_else(none, std::borrow::Cow::into_owned),
            ports.filter(|ports| !ports.is_empty()).unwrap_or_else(none),
            pid.map_or_else(none, |pid| pid.to_string()),
            restarts.map_or_else(none, |count| count.to_string()),
            uptime.map_or_else(none, |start| duration::compact(duration::between(
                start, now
            ))),
            command_cell(&service.command, no_trunc),
        ]);
    }
    table
}

/// The status, with what holds it up until somebody acts.
fn status(service: &ServiceBody, style: Style) -> StyledLine {
    let status = style.service(&service.status);
    let living = service.execution.as_ref().filter(|_| service.living);
    let asks = living.and_then(|info| info.service.as_ref()?.prompt.as_ref());
    let is_up = ["ready", "running"].contains(&service.status.as_str());
    match living {
        Some(info) if info.paused => status.and(", paused"),
        Some(_) if asks.is_some() && !is_up => status.and(", asks"),
        Some(_) | None => status,
    }
}

/// The directory of its workspace.
fn workspace_dir(service: &ServiceBody) -> Option<String> {
    let file = Path::new(service.workspace.as_deref()?);
    let dir = file.parent()?.display().to_string();
    Some(clean(&dir).into_owned())
}
