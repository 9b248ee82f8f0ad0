//! When a service is started again.

use serde::{Deserialize, Serialize};

/// What happens when the process of a service ends without a stop request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartPolicy {
    /// It is not started again.
    Never,
    /// It is started again after every end but a success, at most this many times.
    OnFailure {
        /// Attempts after the first.
        max: u32,
    },
    /// It is started again after every end, at most this many times.
    Always {
        /// Attempts after the first.
        max: u32,
    },
}
