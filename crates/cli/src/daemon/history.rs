//! The history of executions beside an engine.

use ostler_engine::Engine;
use ostler_interface::history::History;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The database in the state directory.
const FILE: &str = "history.db";
/// Keeps a history of the engine up to date until `stop`.
pub(super) fn spawn(engine: &Engine, tracker: &TaskTracker, stop: &CancellationToken) -> History {
    let settings = engine.settings();
    let history = History::new(engine.clone(), settings.state_dir.join(FILE));
    let update = history
        .clone()
        .keep_updated(settings.ledger_retention, stop.clone());
    tracker.spawn(update);
    history
}
