//! `ostler stats`.

use clap::Args;
use hyper::Method;
use ostler_server::render::walls;
use ostler_server::wire::{InfoBody, ResourcesBody};
use serde::Serialize;

use super::{id_alias, ids, watch};
use crate::attach::window_size;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Table, cells, print_json, span};
use crate::setup::{Setup, block_on};

/// Columns of a table that nobody's terminal shows.
const COLUMNS: usize = 80;
/// The fewest characters of a command that are shown.
const LEAST_CHARS: usize = 8;
/// The most trees that are looked at unasked.
const LOOKED_AT: &str = "100";

/// What `stats` takes.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Which executions; the running ones unless given
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Look again every second, until ctrl-c
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What one uses.
#[derive(Debug, Serialize)]
struct Used {
    id: String,
    command: String,
    #[serde(flatten)]
    resources: ResourcesBody,
}

/// Shows what executions use: of what has ended what it used.
///
/// # Errors
/// When the daemon cannot be asked, or there is no such execution.
pub(crate) fn run(setup: &Setup, args: &StatsArgs) -> Outcome {
    let client = setup.client();
    let look = || used(&client, &args.ids);
    if args.watch {
        return block_on(watch::watch(look, |used| table(used).lines()));
    }
    let used = block_on(look())?;
    if args.json {
        print_json(&used)?;
        return Ok(0);
    }
    let mut out = crate::output::Out::new();
    table(&used).print(&mut out)?;
    out.flush()?;
    Ok(0)
}

async fn used(client: &Client, ids: &[String]) -> Result<Vec<Used>, CommandError> {
    let mut used = Vec::new();
    for info in meant(client, ids).await? {
        let path = ids::path(&info.id, "/resources");
        let asked = client.call(Method::GET, &path, Body::None).await;
        // One that was removed since it was listed uses nothing.
        if ids.is_empty() && asked.is_err() {
            continue;
        }
        used.push(Used {
            id: info.id,
            command: info.command,
            resources: asked?,
        });
    }
    Ok(used)
}

async fn meant(client: &Client, ids: &[String]) -> Result<Vec<InfoBody>, CommandError> {
    if ids.is_empty() {
        let running = [("status", "running"), ("limit", LOOKED_AT)];
        return Ok(id_alias::listed(client, &running).await?.executions);
    }
    let mut infos = Vec::new();
    for id in ids {
        let id = id_alias::whole(client, id).await?;
        infos.push(ids::info(client, &id).await?);
    }
    Ok(infos)
}

fn table(used: &[Used]) -> Table {
    let mut table = Table::new(&["ID", "CPU", "MEMORY", "PROCESSES", "COMMAND"]);
    for one in used {
        let living = one.resources.processes.len();
        table.row(cells![
            &one.id,
            span(cpu_seconds(&one.resources)),
            match living {
                0 => "-".to_owned(),
                _ => walls::size(one.resources.memory_bytes),
            },
            living.to_string(),
            &one.command,
        ]);
    }
    let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
    table.fit("COMMAND", columns, LEAST_CHARS);
    table
}

/// Of its living processes and of those that ended.
fn cpu_seconds(resources: &ResourcesBody) -> f64 {
    const MICROS: f64 = 1e6;
    let ended = resources
        .usage
        .user_us
        .saturating_add(resources.usage.system_us);
    resources.cpu_seconds + ended as f64 / MICROS
}
