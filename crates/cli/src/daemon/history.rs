//! The history of executions beside an engine.

use std::io::{self, Write as _};
use std::path::Path;

use ostler_engine::Engine;
use ostler_interface::history::{HISTORY_FILES_MIN, History};
use ostler_journal::AtomicFile;
use ostler_model::ExecutionId;
use ostler_store::HistoryStore;
use ostler_sys::{open_files, regular_file};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;

/// The database in the state directory.
const FILE: &str = "history.db";
/// What the ledger of the state directory is called in a server, in the same directory.
const IDENTITY_FILE: &str = "history.id";
const IDENTITY_MODE: u32 = 0o600;
/// The longest content of that file, in bytes.
const IDENTITY_BYTES_MAX: usize = 64;
/// A longer file is not read.
const IDENTITY_FILE_BYTES: u64 = 4096;

/// Keeps a history of the engine up to date until `stop`, in the server that the configuration
/// names, else in a file; none where the daemon may open fewer files than [`HISTORY_FILES_MIN`]:
/// there, executions need them.
pub(super) fn spawn(
    engine: &Engine,
    config: Option<&Config>,
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
    let store = match store(config, &settings.state_dir) {
        Ok(store) => store,
        Err(error) => {
            tracing::error!(%error, "no history is kept: the identity of the ledger is unknown");
            return None;
        }
    };
    let history = History::new(engine.clone(), store);
    let update = history
        .clone()
        .keep_updated(settings.ledger_retention, stop.clone());
    tracker.spawn(update);
    Some(history)
}

fn store(config: Option<&Config>, state_dir: &Path) -> io::Result<HistoryStore> {
    if let Some(config) = config.filter(|config| config.has_history_server()) {
        let ledger = ledger_identity(&state_dir.join(IDENTITY_FILE))?;
        if let Some(server) = config.history_server(ledger) {
            return Ok(HistoryStore::postgres(server));
        }
    }
    Ok(HistoryStore::sqlite(state_dir.join(FILE)))
}

/// The identity of the ledger in this state directory, made once. The directory is locked: there is
/// one daemon.
fn ledger_identity(path: &Path) -> io::Result<String> {
    match regular_file::read_text(path, IDENTITY_FILE_BYTES) {
        Ok(text) if is_identity(text.trim()) => return Ok(text.trim().to_owned()),
        Ok(_) => {
            let message = format!("{} is damaged: remove it", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Unique in the world, as the id of an execution is.
    let identity = ExecutionId::mint().to_string();
    let mut file = AtomicFile::create(path, IDENTITY_MODE)?;
    writeln!(file, "{identity}")?;
    file.commit_durably()?;
    Ok(identity)
}

fn is_identity(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    (16..=IDENTITY_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part)
}
