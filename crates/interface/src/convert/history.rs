//! The history.

use ostler_api::{HistoryEntryBody, HistoryFreshnessBody, RunStatisticsBody, RunTotalsBody};
use ostler_model::Timestamp;
use ostler_store::{HistoryRow, HistoryStatus, RunStatistics, RunTotals};

use crate::history::HistoryFreshness;

/// One row.
pub fn history_entry_body(row: HistoryRow) -> HistoryEntryBody {
    let status = HistoryStatus::of(&row).as_str().to_owned();
    let duration_ms = match (row.started, row.ended) {
        (Some(started), Some(ended)) => Some(milliseconds(started, ended)),
        (Some(_) | None, _) => None,
    };
    HistoryEntryBody {
        position: row.position,
        id: row.id.short(),
        uuid: row.id,
        principal: row.owner.principal.0,
        project: row.owner.project,
        session: row.owner.session.map(|name| name.0),
        task: row.owner.task,
        client: row.client,
        command: row.command,
        cwd: row.directory,
        labels: row.labels,
        level: row.level,
        in_force: row.in_force,
        policy: row.policy,
        status,
        cause: row.cause,
        exit_code: row.code,
        signal: row.signal,
        created_at: row.created,
        started_at: row.started,
        ended_at: row.ended,
        duration_ms,
        attempts: row.attempts,
        totals: row.totals.map(run_totals_body),
        fingerprint: row.fingerprint.map(|fingerprint| fingerprint.to_string()),
    }
}

fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or_default()
}

const fn run_totals_body(totals: RunTotals) -> RunTotalsBody {
    RunTotalsBody {
        user_us: totals.usage.user_us,
        system_us: totals.usage.system_us,
        max_rss_bytes: totals.usage.max_rss_bytes,
        peak_cpu_percent: totals.peaks.cpu_percent,
        peak_memory_bytes: totals.peaks.memory_bytes,
        peak_disk_bytes: totals.peaks.disk_bytes,
        peak_processes: totals.peaks.processes,
        read_bytes: totals.peaks.read_bytes,
        written_bytes: totals.peaks.written_bytes,
        received_bytes: totals.peaks.received_bytes,
        sent_bytes: totals.peaks.sent_bytes,
        output_bytes: totals.output_bytes,
        output_lines: totals.output_lines,
        prompts: totals.prompts,
    }
}

/// How a command usually ends.
pub fn run_statistics_body(statistics: &RunStatistics) -> RunStatisticsBody {
    let milliseconds =
        |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    RunStatisticsBody {
        runs: statistics.runs,
        failures: statistics.failures,
        median_ms: milliseconds(statistics.median),
        p90_ms: milliseconds(statistics.p90),
        peak_memory_bytes: statistics.peak_memory_bytes,
    }
}

/// How far the history is behind.
#[must_use]
pub fn history_freshness_body(freshness: HistoryFreshness) -> HistoryFreshnessBody {
    HistoryFreshnessBody {
        behind: freshness.behind,
        behind_reason: freshness.error,
    }
}
