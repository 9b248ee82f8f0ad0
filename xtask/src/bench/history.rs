//! The history at a million rows: what one more costs, and what queries take.

use anyhow::{Context, Result};

use super::context::{BenchContext, Measure};
use super::line_process::{self, LineProcess};
use super::postgres::PostgresServer;
use super::report::{Promise, ReportRow};
use super::stats::LatencySummary;

/// Executions in the history.
const ROWS: usize = 1_000_000;
/// Executions of one batch.
const BATCH: usize = 5_000;
/// Queries of each kind.
const QUERIES: usize = 200;
/// Nanoseconds in a microsecond, as [`LatencySummary`] has milliseconds.
const MICROSECONDS: f64 = 1_000.0;

pub(super) const ALL: &[(&str, Measure)] =
    &[("history", in_a_file), ("history-postgresql", in_a_server)];

/// The requests of the program, the names of the rows, and their promises in milliseconds.
const QUERY_ROWS: [(&str, &str, Promise); 5] = [
    (
        "newest",
        "the newest 50 of them, p50",
        Promise::at_most(1.0, "< 1 ms"),
    ),
    ("middle", "50 from the middle by position", Promise::NONE),
    ("text", "50 with a word in the command line", Promise::NONE),
    ("failed", "the newest 50 that failed", Promise::NONE),
    ("statistics", "how a command usually ends", Promise::NONE),
];

fn in_a_file(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    at_a_million_rows(bench, None)
}

fn in_a_server(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let server = PostgresServer::start(bench)?;
    at_a_million_rows(bench, Some(&server.url()))
}

/// Measures a file of SQLite, or the server at a URL.
fn at_a_million_rows(bench: &BenchContext, server: Option<&str>) -> Result<Vec<ReportRow>> {
    let dir = tempfile::tempdir_in(&bench.dir).context("a directory for the database")?;
    let mut command = line_process::program(bench, "history")?;
    let mut program = LineProcess::start(command.arg(dir.path()).args(server))?;
    let mut folds = Vec::new();
    for _ in 0..bench.count(ROWS).div_ceil(BATCH) {
        folds.extend(program.request(&format!("fill {BATCH}"))?);
    }
    let named = |name: &str| match server {
        Some(_) => format!("PostgreSQL: {name}"),
        None => name.to_owned(),
    };
    let folds = LatencySummary::from_samples(&folds);
    let mut rows = vec![ReportRow::absolute(
        &named("one execution more in the history (median of batches of 5,000, up to a million)"),
        folds.p50 * MICROSECONDS,
        "µs",
        Promise::at_most(50.0, "< 50 µs"),
    )];
    for (request, name, promise) in QUERY_ROWS {
        let mut samples = Vec::new();
        for _ in 0..QUERIES {
            samples.extend(program.request(request)?);
        }
        let summary = LatencySummary::from_samples(&samples);
        let name = named(name);
        rows.push(ReportRow::absolute(&name, summary.p50, "ms", promise));
    }
    program.close()?;
    Ok(rows)
}
