//! When each token was last used, in a file beside the tokens that only the daemon writes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use ostler_journal::atomic_file::{self, PRIVATE_MODE};
use ostler_model::{Timestamp, duration};
use ostler_sys::regular_file;
use parking_lot::Mutex;

use super::AccessToken;

/// How far a recorded time may lie behind the last use, in seconds: a token that is used all the
/// time costs one write a minute.
const PRECISION_S: u64 = 60;

/// The times by [`AccessToken::key`].
type UseTimes = BTreeMap<String, Timestamp>;

/// The file, and its content once it was read.
#[derive(Debug)]
pub(super) struct LastUseFile {
    path: PathBuf,
    times: Mutex<Option<UseTimes>>,
}

impl LastUseFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            times: Mutex::default(),
        }
    }

    /// The times as recorded; empty where there is no file that can be read.
    pub(super) fn read(&self) -> UseTimes {
        read(&self.path)
    }

    /// Records a use of `token`, one of `tokens`. A time that cannot be written is lost: it decides
    /// nothing.
    pub(super) fn record(&self, token: &AccessToken, tokens: &[AccessToken], now: Timestamp) {
        let mut times = self.times.lock();
        let times = times.get_or_insert_with(|| read(&self.path));
        let is_recorded = times.get(token.key()).is_some_and(|last| {
            *last <= now && duration::between(*last, now).as_secs() < PRECISION_S
        });
        if is_recorded {
            return;
        }
        times.insert(token.key().to_owned(), now);
        times.retain(|key, _| tokens.iter().any(|token| token.key() == key));
        let written = serde_json::to_vec_pretty(times)
            .map_err(std::io::Error::from)
            .and_then(|bytes| atomic_file::replace(&self.path, &bytes, PRIVATE_MODE));
        if let Err(error) = written {
            tracing::debug!(%error, "the last use of a token is not recorded");
        }
    }
}

fn read(path: &Path) -> UseTimes {
    let text = regular_file::open(path).and_then(io::read_to_string);
    serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
}
