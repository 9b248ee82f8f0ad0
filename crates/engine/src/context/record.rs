//! What is stored of a context.

use std::path::Path;
use std::time::Duration;

use ostler_lifecycle::context::{ContextEnd, ContextLifecycle, ContextState};
use ostler_model::{ByteString, ContextId, Owner, StartOptions, Timestamp};
use ostler_sys::owned_dir::DirIdentity;
use serde::{Deserialize, Serialize};

/// The problem of a context without its directory.
pub(super) const DIRECTORY_GONE: &str = "its directory is gone";

/// A context as it is stored. Secrets are in it by name only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContextRecord {
    pub(super) id: ContextId,
    /// Its caller, with the project and the task.
    pub(super) owner: Owner,
    pub(super) project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// The absolute directory that its executions work in.
    pub(super) directory: ByteString,
    /// The identity of a directory that Ostler created; none of one that was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) created: Option<CreatedDir>,
    /// The bytes that the directory had when it was made this context's; none where they could not
    /// be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base_bytes: Option<u64>,
    #[serde(rename = "idle_timeout_ms", with = "millis")]
    pub(super) idle_timeout: Duration,
    /// What every start in it asks for.
    #[serde(default)]
    pub(super) options: StartOptions,
    pub(super) created_at: Timestamp,
    /// When its last use began or ended.
    pub(super) used_at: Timestamp,
    pub(super) stage: StoredStage,
}

/// The identity of a directory that Ostler created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedDir {
    /// None until it was created.
    inode: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    btime_ns: Option<i64>,
}

/// What of its state outlives the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredStage {
    /// Nothing ran in it yet, and its directory may not exist.
    Creating,
    /// It can be used.
    Ready,
    /// Its executions are stopped, then its files are removed.
    Stopping,
    /// Its files are removed once its executions have ended.
    Ending,
}

impl CreatedDir {
    /// Before it was created.
    pub(super) const PLANNED: Self = Self {
        inode: None,
        btime_ns: None,
    };

    pub(super) const fn new(identity: DirIdentity) -> Self {
        Self {
            inode: Some(identity.inode),
            btime_ns: identity.btime_ns,
        }
    }

    /// None where it was not created yet, as far as is known.
    pub(super) fn identity(self) -> Option<DirIdentity> {
        let inode = self.inode?;
        let btime_ns = self.btime_ns;
        Some(DirIdentity { inode, btime_ns })
    }
}

impl StoredStage {
    /// The stage of a state; none where nothing is to be stored any more.
    pub(super) const fn of(state: &ContextState) -> Option<Self> {
        match state {
            ContextState::Creating => Some(Self::Creating),
            ContextState::Idle { .. } | ContextState::Busy { .. } => Some(Self::Ready),
            ContextState::Ending {
                end: ContextEnd::Requested,
                ..
            } => Some(Self::Stopping),
            ContextState::Ending { .. } | ContextState::Failed { .. } => Some(Self::Ending),
            ContextState::Ended { .. } => None,
        }
    }
}

impl ContextRecord {
    /// The directory and the name of one that Ostler created.
    pub(super) fn place(&self) -> Option<(&Path, &str)> {
        Some((self.directory.as_path().parent()?, self.id.as_str()))
    }

    /// Its lifecycle under this engine, while `uses` executions run in it, and where its directory
    /// `is_gone`; also whether its executions are to be stopped or its files removed.
    pub(super) fn resume(
        &self,
        uses: u32,
        is_gone: bool,
    ) -> (ContextLifecycle, ostler_lifecycle::context::ContextDecision) {
        let idle = self.idle_timeout;
        match self.stage {
            StoredStage::Creating => ContextLifecycle::resumed(idle, uses, ContextEnd::NotCreated),
            // Its removal could not be stored.
            StoredStage::Ready if is_gone => {
                let problem = DIRECTORY_GONE.to_owned();
                ContextLifecycle::resumed(idle, uses, ContextEnd::Unhealthy { problem })
            }
            StoredStage::Ready => (
                ContextLifecycle::adopted(idle, uses, self.used_at),
                ostler_lifecycle::context::ContextDecision::Nothing,
            ),
            StoredStage::Stopping => ContextLifecycle::resumed(idle, uses, ContextEnd::Requested),
            StoredStage::Ending => ContextLifecycle::resumed(idle, uses, ContextEnd::Idle),
        }
    }
}

mod millis {
    use std::time::Duration;

    use ostler_model::duration::as_millis;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(as_millis(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
