//! The history of executions beside an engine.

use ostler_engine::Engine;
use ostler_interface::history::{HISTORY_FILES_MIN, History};
use ostler_sys::open_files;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The database in the state directory.
const FILE: &str = "history.db";
/// Keeps a history of the engine up to date until `stop`; none where the daemon may open fewer
/// files than [`HISTORY_FILES_MIN`]: there, executions need them.
pub(super) fn spawn(
    engine: &Engine,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Option<History> {
    let limit = open_files::limit();
    if limit < HISTORY_FILES_MIN {
        tracing::warn!(
            limit,
            needed = HISTORY_FILES_MIN,
            "no history is kept: too few open files"
        );
        return None;
    }
    let settings = engine.settings();
    let history = History::new(engine.clone(), settings.state_dir.join(FILE));
    let update = history
        .clone()
        .keep_updated(settings.ledger_retention, stop.clone());
    tracker.spawn(update);
    Some(history)
}
