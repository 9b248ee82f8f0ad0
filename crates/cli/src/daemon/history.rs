//! The history of executions beside an engine.

use ostler_engine::Engine;
use ostler_interface::history::History;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The database in the state directory.
const FILE: &str = "history.db";
/// Added to the nice value of the thread that writes it: commands and their output come first, and
/// what it could not write yet is written once they leave time.
const NICENESS: i32 = 15;

/// Keeps a history of the engine up to date until `stop`.
pub(super) fn spawn(engine: &Engine, tracker: &TaskTracker, stop: &CancellationToken) -> History {
    let settings = engine.settings();
    let history = History::new(engine.clone(), settings.state_dir.join(FILE));
    let update = history
        .clone()
        .keep_updated(settings.ledger_retention, stop.clone());
    let runtime = Handle::current();
    tracker.spawn_blocking(move || {
        if let Err(error) = rustix::process::nice(NICENESS) {
            tracing::warn!(%error, "the history is written at the priority of requests");
        }
        runtime.block_on(update);
    });
    history
}
