//! The authenticated identity of a request, and the callers it may be.

use axum::http::request::Parts;
use ostler_model::owner::{Owner, Principal};
use ostler_model::{Caller, ErrorCode, Scope, SessionName};

use super::HttpProblem;
use crate::project_access::ProjectAccess;

/// The session of requests that name none and have none of their own.
pub const SHARED_SESSION: &str = "http";

/// The authenticated identity of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpIdentity {
    /// The user or the token's holder.
    pub principal: Principal,
    /// Whether it has access to all sessions of its principal.
    pub sees_all: bool,
    /// Whether it may shut the daemon down.
    pub may_stop: bool,
    /// The project of what HTTP clients start; none means the project of each command's directory.
    pub project: Option<String>,
    /// What it may do in projects.
    pub access: ProjectAccess,
}

impl HttpIdentity {
    /// This identity as the caller of a session of its own, which sees no other.
    #[must_use]
    pub fn caller(&self, session: SessionName) -> Caller {
        Caller {
            owner: self.owner(Some(session)),
            scope: Scope::Session,
            projects: ostler_model::ProjectView::default(),
        }
    }

    /// This identity as the caller of the shared session. With `sessions:all` it sees the others
    /// too.
    #[must_use]
    pub fn shared_caller(&self) -> Caller {
        let mut caller = self.caller(SessionName(SHARED_SESSION.to_owned()));
        if self.sees_all {
            caller.scope = Scope::Principal;
        }
        caller
    }

    /// The caller of REST requests that name no session.
    #[must_use]
    pub fn rest_caller(&self) -> Caller {
        if self.sees_all {
            return Caller {
                owner: self.owner(None),
                scope: Scope::Principal,
                projects: ostler_model::ProjectView::default(),
            };
        }
        self.caller(SessionName(SHARED_SESSION.to_owned()))
    }

    fn owner(&self, session: Option<SessionName>) -> Owner {
        Owner {
            principal: self.principal.clone(),
            project: self.project.clone(),
            session,
            task: None,
            channel: ostler_model::RequestChannel::Network,
        }
    }
}

/// The identity that the authentication attached to a request.
///
/// # Errors
/// When there is none.
pub fn identity(parts: &Parts) -> Result<HttpIdentity, HttpProblem> {
    let identity = parts.extensions.get::<HttpIdentity>().cloned();
    let to_problem =
        || HttpProblem::new(ErrorCode::Permission, "the request has no identity", None);
    identity.ok_or_else(to_problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_widens_what_is_seen() {
        let mut identity = HttpIdentity {
            principal: Principal::unix(1),
            sees_all: false,
            may_stop: false,
            project: None,
            access: ProjectAccess::Write,
        };
        let narrow = identity.rest_caller();
        assert_eq!(narrow.scope, Scope::Session);
        assert_eq!(narrow.owner.channel, ostler_model::RequestChannel::Network);
        assert_eq!(narrow.owner.session, Some(SessionName("http".to_owned())));
        identity.sees_all = true;
        assert_eq!(identity.rest_caller().owner.session, None);
        let named = identity.caller(SessionName("a".to_owned()));
        assert_eq!(named.scope, Scope::Session);
        assert_eq!(identity.shared_caller().scope, Scope::Principal);
    }
}
