//! Waiting on several executions at once.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ostler_engine::{WaitEnd, WaitFor, WaitOutcome};

use super::progress::ProgressTarget;
use super::reply::ToolInterrupt;
use super::tool_call::ToolCall;

/// Waits on several running executions, until `until` is met for the first of them (with `all`, for
/// each). One outcome per id, in order; [`WaitEnd::TimedOut`] where nothing happened in time.
pub(super) async fn wait_many(
    call: ToolCall<'_>,
    ids: &[String],
    until: &WaitFor,
    all: bool,
    timeout: Duration,
) -> Result<Vec<WaitOutcome>, ToolInterrupt> {
    let mut results: Vec<Option<WaitOutcome>> = ids.iter().map(|_| None).collect();
    let mut waits: FuturesUnordered<_> =
        ids.iter()
            .enumerate()
            .map(|(index, id)| async move {
                (index, call.engine.wait(call.caller, id, until, None).await)
            })
            .collect();
    let collected = async {
        while let Some((place, waited)) = waits.next().await {
            results[place] = Some(waited?);
            if !all {
                break;
            }
        }
        Ok::<(), ToolInterrupt>(())
    };
    let max_wait = call.context.max_wait();
    let timeout = max_wait.map_or(timeout, |patience| patience.min(timeout));
    // Outcomes before the deadline are kept; progress is reported for the first execution.
    let collecting = tokio::time::timeout(timeout, collected);
    let first = ProgressTarget::Name(ids.first().map_or("", String::as_str));
    call.run_with_progress(first, collecting)
        .await
        .unwrap_or(Ok(()))?;
    let results_by_id = results.into_iter().zip(ids);
    results_by_id
        .map(|(waited, id)| waited.map_or_else(|| current_state(call, id), Ok))
        .collect()
}

/// The present state of an execution that is not waited for any longer.
fn current_state(call: ToolCall<'_>, id: &str) -> Result<WaitOutcome, ToolInterrupt> {
    let info = call.info(id)?;
    Ok(WaitOutcome {
        cursor: info.cursor(),
        end: if info.state.is_finished() {
            WaitEnd::Exit
        } else {
            WaitEnd::TimedOut
        },
        info,
    })
}
