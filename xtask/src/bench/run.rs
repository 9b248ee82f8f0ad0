//! Selection and order of the suites.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::machine::Machine;
use super::report::{self, ReportRow};
use super::{
    concurrency, echo, engine, isolation, journal, logs, output, pty, retained_memory, services,
    start, transports,
};
use crate::console::{CheckResult, print_line};
use crate::shell;
use crate::test_env::TestEnv;
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
    /// Walls around commands
    Isolation,
    /// Services: how soon they are ready, and what watching them costs
    Services,
    /// What failed, in answers to long logs of real tools
    Logs,
}

/// The context of every measurement.
#[derive(Debug)]
pub(super) struct BenchContext<'a> {
    pub(super) workspace: &'a Workspace,
    /// The number of measured rounds.
    pub(super) rounds: u32,
    brief: bool,
    binary: PathBuf,
    dir: PathBuf,
}

/// The divisor of counts in a brief run.
const BRIEF_DIVISOR: usize = 10;

impl BenchContext<'_> {
    /// A new test environment on the chosen file system, its daemon running.
    pub(super) fn started_env(&self) -> Result<TestEnv> {
        let env = self.idle_env()?;
        env.list()?;
        Ok(env)
    }

    /// A new test environment in which nothing runs yet.
    pub(super) fn idle_env(&self) -> Result<TestEnv> {
        TestEnv::new(&self.dir, &self.binary)
    }

    /// The measured binary.
    pub(super) fn ostler(&self) -> &Path {
        &self.binary
    }

    /// The count, or a fraction of it in a brief run.
    pub(super) fn count(&self, full: usize) -> usize {
        if self.brief {
            full.div_ceil(BRIEF_DIVISOR)
        } else {
            full
        }
    }

    /// Builds with optimization, unless the run is brief; returns the profile's directory.
    pub(super) fn build(&self, args: &[&str]) -> Result<PathBuf> {
        let mut cargo = shell::command("cargo", self.workspace.root());
        cargo.args(["build", "--quiet"]).args(args);
        if !self.brief {
            cargo.args(["--profile", "dist"]);
        }
        shell::run(&mut cargo)?;
        let profile = if self.brief { "debug" } else { "dist" };
        Ok(self.workspace.target().join(profile))
    }
}

pub(super) type Measure = fn(&BenchContext<'_>) -> Result<Vec<ReportRow>>;

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
];

const MCP: &[(&str, Measure)] = &[
    ("faces", transports::one_in_flight),
    ("faces-flood", transports::in_flight),
    ("weights", transports::tool_list_sizes),
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
        bench.binary = bench.build(&["--package", "ostler-cli"])?.join("ostler");
    }
    let machine = Machine::here(workspace.root(), &bench.dir)?;
    match args.suite {
        Suite::Core => run_suite(&bench, &machine, args, ("core", CORE)),
        Suite::Mcp => run_suite(&bench, &machine, args, ("mcp", MCP)),
        Suite::Pty => run_suite(&bench, &machine, args, ("pty", pty::ALL)),
        Suite::Isolation => run_suite(&bench, &machine, args, ("isolation", isolation::ALL)),
        Suite::Services => run_suite(&bench, &machine, args, ("services", services::ALL)),
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
    (title, measures): (&str, &[(&str, Measure)]),
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
