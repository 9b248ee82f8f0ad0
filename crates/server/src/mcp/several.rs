//! Waiting on several executions at once.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ostler_engine::{WaitEnd, WaitFor, Waited};

use super::context::Call;
use super::progress::Of;
use super::reply::Interrupted;

/// Waits on several that run already, until for the first of them (with `all`, for each)
/// `until` is so. One answer per id, in their order; where nothing came to pass in time
/// it ended with [`WaitEnd::AtMost`].
pub(super) async fn wait(
    call: Call<'_>,
    ids: &[String],
    until: &WaitFor,
    (all, at_most): (bool, Duration),
) -> Result<Vec<Waited>, Interrupted> {
    let mut over: Vec<Option<Waited>> = ids.iter().map(|_| None).collect();
    let mut under_way: FuturesUnordered<_> =
        ids.iter()
            .enumerate()
            .map(|(place, id)| async move {
                (place, call.engine.wait(call.caller, id, until, None).await)
            })
            .collect();
    let collected = async {
        while let Some((place, waited)) = under_way.next().await {
            over[place] = Some(waited?);
            if !all {
                break;
            }
        }
        Ok::<(), Interrupted>(())
    };
    let patience = call.link.patience();
    let at_most = patience.map_or(at_most, |patience| patience.min(at_most));
    // What is collected before the time is over stays; progress is that of the first.
    let collecting = tokio::time::timeout(at_most, collected);
    let first = Of::Name(ids.first().map_or("", String::as_str));
    call.link
        .attend(call, first, collecting)
        .await
        .unwrap_or(Ok(()))?;
    let told = over.into_iter().zip(ids);
    told.map(|(waited, id)| waited.map_or_else(|| unchanged(call, id), Ok))
        .collect()
}

/// How it stands, for what was not waited for any longer.
fn unchanged(call: Call<'_>, id: &str) -> Result<Waited, Interrupted> {
    let info = call.info(id)?;
    Ok(Waited {
        cursor: info.cursor(),
        why: if info.state.is_finished() {
            WaitEnd::Exit
        } else {
            WaitEnd::AtMost
        },
        info,
    })
}
