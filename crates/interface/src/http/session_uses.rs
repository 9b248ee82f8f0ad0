//! Requests as uses of sessions over HTTP, which end when nothing uses them.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use ostler_model::SessionName;
use ostler_model::owner::Principal;

use super::HttpProblem;

/// A session in use, until all clones are dropped.
pub type SessionUseGuard = Arc<dyn Any + Send + Sync>;

/// The sessions of HTTP clients, which count the requests that use them.
pub trait SessionUses: Debug + Send + Sync {
    /// Uses the session that a request names; none where another transport decides when it ends.
    /// A session that was not used before is recorded, and ends once it is idle for too long.
    ///
    /// # Errors
    /// When there are too many sessions for another one.
    fn begin_named_use(
        &self,
        principal: &Principal,
        session: &SessionName,
    ) -> Result<Option<SessionUseGuard>, HttpProblem>;

    /// Uses the session of requests that name none, if it is recorded.
    fn begin_shared_use(
        &self,
        principal: &Principal,
        session: &SessionName,
    ) -> Option<SessionUseGuard>;
}
