//! What an execution used, for the ledger entry of its end.

use std::time::Duration;

use ostler_model::{EventRecord, State, StreamName, Timestamp, UsagePeaks};
use serde_json::Value;

use crate::engine_inner::LedgerDetail;
use crate::execution::ExecutionHandle;

/// What an execution that ended with this record has used.
pub(crate) fn of(entry: &ExecutionHandle, end: &EventRecord, peaks: UsagePeaks) -> LedgerDetail {
    let lines = output_lines(entry, end.offset);
    let live = entry.live.borrow();
    let mut detail = totals(&live.state, end.offset);
    detail.extend(measured(&live.state, end.at, peaks, lines));
    detail
}

fn totals(state: &State, output_bytes: u64) -> LedgerDetail {
    LedgerDetail::from([
        ("user_us".to_owned(), state.usage.user_us.into()),
        ("system_us".to_owned(), state.usage.system_us.into()),
        ("max_rss_bytes".to_owned(), state.usage.max_rss_bytes.into()),
        ("output_bytes".to_owned(), output_bytes.into()),
        ("attempts".to_owned(), state.attempt.into()),
        ("prompts".to_owned(), state.prompts.into()),
    ])
}

/// What was measured while it ran, and how many lines it printed; without what is not known.
fn measured(
    state: &State,
    ended_at: Timestamp,
    peaks: UsagePeaks,
    lines: Option<u64>,
) -> impl Iterator<Item = (String, Value)> {
    let lived = |from| Duration::try_from(ended_at.duration_since(from)).ok();
    let lived = state.started_at.and_then(lived);
    let average = lived.and_then(|lived| average_cpu(state, lived));
    let cpu_percent = peaks.cpu_percent.or(average).map(tenths);
    let resident = Some(state.usage.max_rss_bytes).filter(|bytes| *bytes > 0);
    let counts = [
        ("peak_memory_bytes", peaks.memory_bytes.max(resident)),
        ("peak_disk_bytes", peaks.disk_bytes),
        ("peak_processes", peaks.processes.map(u64::from)),
        ("read_bytes", peaks.read_bytes),
        ("written_bytes", peaks.written_bytes),
        ("received_bytes", peaks.received_bytes),
        ("sent_bytes", peaks.sent_bytes),
        ("output_lines", lines),
    ];
    let cpu = ("peak_cpu_percent", cpu_percent.map(Value::from));
    let counts = counts.map(|(name, count)| (name, count.map(Value::from)));
    let all = std::iter::once(cpu).chain(counts);
    all.filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// The processor time of a command over its whole life, in percent of one core: where it was not
/// sampled twice, the only interval that is known. None below a second, of which little is known, and
/// after several attempts, of which only the last is.
fn average_cpu(state: &State, lived: Duration) -> Option<f32> {
    let used = Duration::from_micros(state.usage.user_us.saturating_add(state.usage.system_us));
    (state.attempt == 1 && lived >= Duration::from_secs(1))
        .then(|| used.as_secs_f32() / lived.as_secs_f32() * 100.0)
}

/// Rounded to a tenth, as a number that JSON writes in few digits.
fn tenths(percent: f32) -> f64 {
    (f64::from(percent) * 10.0).round() / 10.0
}

/// The lines of its output, also the removed ones; none where its journal cannot be read.
fn output_lines(entry: &ExecutionHandle, output_bytes: u64) -> Option<u64> {
    if output_bytes == 0 {
        return Some(0);
    }
    let stats = entry.journal().ok()?.stats().ok()?;
    let printed = [StreamName::Stdout, StreamName::Stderr, StreamName::Pty];
    let streams = printed.map(|stream| stats.for_stream(stream));
    let lines = streams.map(|stream| stream.newlines + u64::from(stream.open_line));
    Some(lines.into_iter().sum())
}

#[cfg(test)]
mod tests {
    use ostler_model::Usage;

    use super::*;

    fn ended_after(seconds: i64, attempt: u32) -> (State, Timestamp) {
        let state = State {
            started_at: Some(Timestamp::UNIX_EPOCH),
            attempt,
            usage: Usage {
                user_us: 1_500_000,
                system_us: 500_000,
                max_rss_bytes: 4_096,
            },
            ..State::default()
        };
        let ended_at = Timestamp::from_second(seconds).expect("a time");
        (state, ended_at)
    }

    fn detail(seconds: i64, attempt: u32, peaks: UsagePeaks) -> LedgerDetail {
        let (state, ended_at) = ended_after(seconds, attempt);
        measured(&state, ended_at, peaks, None).collect()
    }

    #[test]
    fn what_was_never_sampled_has_the_average_of_its_life_and_no_zeros() {
        let expected = LedgerDetail::from([
            ("peak_cpu_percent".to_owned(), 66.7.into()),
            ("peak_memory_bytes".to_owned(), 4_096.into()),
        ]);
        assert_eq!(detail(3, 1, UsagePeaks::default()), expected);
        for (seconds, attempt) in [(0, 1), (-5, 1), (3, 2)] {
            let detail = detail(seconds, attempt, UsagePeaks::default());
            assert!(
                !detail.contains_key("peak_cpu_percent"),
                "{seconds} {attempt}"
            );
        }
    }

    #[test]
    fn samples_count_more_than_averages_and_the_larger_memory_counts() {
        let peaks = UsagePeaks {
            cpu_percent: Some(180.04),
            memory_bytes: Some(9_000),
            read_bytes: Some(0),
            ..UsagePeaks::default()
        };
        let expected = LedgerDetail::from([
            ("peak_cpu_percent".to_owned(), 180.0.into()),
            ("peak_memory_bytes".to_owned(), 9_000.into()),
            ("read_bytes".to_owned(), 0.into()),
        ]);
        assert_eq!(detail(3, 1, peaks), expected);
    }
}
