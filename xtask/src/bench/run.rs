//! Selection and order of the suites.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::context::{BenchContext, Measure};
use super::machine::Machine;
use super::report;
use super::{
    concurrency, containers, echo, engine, followers, history, isolation, journal, logs, monitor,
    output, pty, retained_memory, services, start, transports,
};
use crate::console::{CheckResult, print_line};
use crate::workspace::{Profile, Workspace};

/// What bench can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Which suite
    #[arg(value_enum)]
    suite: Suite,
    /// Measured rounds; one more is thrown away
    #[arg(long, default_value_t = 6)]
    rounds: u32,
    /// Where state is kept; a journalled file system, or a tmpfs for figures without a disk
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A tenth of the calls, on builds without optimisation: to see that everything works
    #[arg(long)]
    brief: bool,
    /// Only these measurements; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Suite {
    /// Commands, their output and their journals
    Core,
    /// The MCP transports
    Mcp,
    /// Terminal sessions
    Pty,
    /// Restrictions of commands
    Isolation,
    /// Services: how soon they are ready, and what watching them costs
    Services,
    /// A million executions in the history
    History,
    /// Containers against the engine's own commands
    Containers,
    /// Streams of REST
    Http,
    /// What failed, in answers to long logs of real tools
    Logs,
}

const CORE: &[(&str, Measure)] = &[
    ("echo", echo::one_in_flight),
    ("flood", echo::in_flight),
    ("engine", engine::start_to_result),
    ("start", start::first_answer),
    ("output", output::hundred_megabytes),
    ("ingest", output::ingest),
    ("journal", journal::reading),
    ("memory", retained_memory::after_commands),
    ("shims", concurrency::memory),
    ("printing", concurrency::printing),
    ("monitor", monitor::cost),
];

const MCP: &[(&str, Measure)] = &[
    ("transports", transports::one_in_flight),
    ("transports-flood", transports::in_flight),
    ("list-sizes", transports::tool_list_sizes),
];

/// Builds, measures, publishes. A missed promise is reported and is not an error: machines differ.
pub(crate) fn run(workspace: &Workspace, args: &BenchArgs) -> Result<CheckResult> {
    let mut bench = BenchContext {
        workspace,
        rounds: args.rounds,
        brief: args.brief,
        binary: workspace.ostler(Profile::Dist),
        dir: args.dir.clone().unwrap_or_else(std::env::temp_dir),
    };
    if !workspace.is_binary_named() {
        bench.binary = bench.build("ostler")?;
    }
    let machine = Machine::here(workspace.root(), &bench.dir)?;
    match args.suite {
        Suite::Core => run_suite(&bench, &machine, args, "core", CORE),
        Suite::Mcp => run_suite(&bench, &machine, args, "mcp", MCP),
        Suite::Pty => run_suite(&bench, &machine, args, "pty", pty::ALL),
        Suite::Isolation => run_suite(&bench, &machine, args, "isolation", isolation::ALL),
        Suite::Services => run_suite(&bench, &machine, args, "services", services::ALL),
        Suite::History => run_suite(&bench, &machine, args, "history", history::ALL),
        Suite::Containers => run_suite(&bench, &machine, args, "containers", containers::ALL),
        Suite::Http => run_suite(&bench, &machine, args, "http", followers::ALL),
        Suite::Logs => {
            let path = logs::measure(&bench, &machine, &args.only)?;
            print_line(format_args!("written to {}", path.display()));
            Ok(CheckResult::from_success(true))
        }
    }
}

/// Runs the measurements one by one, and publishes the table.
fn run_suite(
    bench: &BenchContext,
    machine: &Machine,
    args: &BenchArgs,
    title: &str,
    measures: &[(&str, Measure)],
) -> Result<CheckResult> {
    let mut rows = Vec::new();
    let mut broken = false;
    for (name, measure) in measures {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == name) {
            continue;
        }
        print_line(format_args!("measuring {name}"));
        match measure(bench).with_context(|| format!("the measurement {name}")) {
            Ok(more) => rows.extend(more),
            Err(error) => {
                broken = true;
                print_line(format_args!("{error:#}"));
            }
        }
    }
    if bench.brief {
        report::print(title, machine, &rows);
        return Ok(CheckResult::from_success(!broken));
    }
    let path = report::publish(bench.workspace.root(), title, machine, &rows)?;
    print_line(format_args!("written to {}", path.display()));
    Ok(CheckResult::from_success(!broken))
}
