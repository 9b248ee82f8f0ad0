//! The authenticated identity of a request, and the callers it may be.

use axum::http::HeaderMap;
use axum::http::request::Parts;
use ostler_model::owner::{Owner, Principal};
use ostler_model::{Caller, ErrorCode, ProjectView, Scope, SessionName};

use super::HttpProblem;
use super::project_name::requested_project;
use crate::project_access::ProjectAccess;

/// The session of REST requests that name none.
const SHARED_SESSION: &str = "http";

/// The authenticated identity of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpIdentity {
    /// The user or the token's holder.
    pub principal: Principal,
    /// The name of its token.
    pub token: Option<String>,
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
    /// This identity in a request: what it starts belongs to the project that the headers name, or
    /// else to `of_daemon` or the only project of its token.
    ///
    /// # Errors
    /// When the headers name a project that it does not see.
    pub fn in_request(
        self,
        headers: &HeaderMap,
        of_daemon: Option<&str>,
    ) -> Result<Self, HttpProblem> {
        let project = match requested_project(headers)? {
            Some(named) => {
                self.access.check_named(named)?;
                Some(named.to_owned())
            }
            None => self.access.default_project(of_daemon),
        };
        Ok(Self { project, ..self })
    }

    /// This identity as the caller of a session of its own, which sees no other. This one and the
    /// others change nothing; [`ProjectAccess::writer`] is for requests that do.
    #[must_use]
    pub fn caller(&self, session: SessionName) -> Caller {
        self.reader(Some(session), Scope::Session)
    }

    /// The session of agents that name none and have none of their own: one for each token, or, where
    /// none are asked for, that of REST requests.
    #[must_use]
    pub fn agent_session(&self) -> SessionName {
        let name = self.token.as_ref();
        SessionName(name.map_or_else(
            || SHARED_SESSION.to_owned(),
            |name| format!("{SHARED_SESSION}-{name}"),
        ))
    }

    /// This identity as the caller of that session. With `sessions:all` it sees the others
    /// too.
    #[must_use]
    pub fn agent_caller(&self) -> Caller {
        let mut caller = self.caller(self.agent_session());
        if self.sees_all {
            caller.scope = Scope::Principal;
        }
        caller
    }

    /// The caller of REST requests that name no session.
    #[must_use]
    pub fn rest_caller(&self) -> Caller {
        if self.sees_all {
            return self.reader(None, Scope::Principal);
        }
        self.caller(SessionName(SHARED_SESSION.to_owned()))
    }

    fn reader(&self, session: Option<SessionName>, scope: Scope) -> Caller {
        let owner = Owner {
            principal: self.principal.clone(),
            project: self.project.clone(),
            session,
            task: None,
            channel: ostler_model::RequestChannel::Network,
        };
        self.access.reader(Caller {
            owner,
            scope,
            projects: ProjectView::default(),
        })
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
    use axum::http::HeaderValue;
    use ostler_model::ProjectSet;

    use super::*;
    use crate::http::PROJECT_HEADER;

    fn identity(access: ProjectAccess) -> HttpIdentity {
        HttpIdentity {
            principal: Principal::unix(1),
            token: None,
            sees_all: false,
            may_stop: false,
            project: None,
            access,
        }
    }

    #[test]
    fn a_scope_widens_what_is_seen() {
        let mut identity = identity(ProjectAccess::default());
        let narrow = identity.rest_caller();
        assert_eq!(narrow.scope, Scope::Session);
        assert_eq!(narrow.owner.channel, ostler_model::RequestChannel::Network);
        assert_eq!(narrow.owner.session, Some(SessionName("http".to_owned())));
        identity.token = Some("ci".to_owned());
        let (rest, agent) = (identity.rest_caller(), identity.agent_caller());
        assert_eq!(rest.owner.session, Some(SessionName("http".to_owned())));
        let of_token = SessionName("http-ci".to_owned());
        assert_eq!(agent.owner.session, Some(of_token));
        identity.sees_all = true;
        assert_eq!(identity.rest_caller().owner.session, None);
        let named = identity.caller(SessionName("a".to_owned()));
        assert_eq!(named.scope, Scope::Session);
        assert_eq!(identity.agent_caller().scope, Scope::Principal);
        assert!(identity.rest_caller().sees_all());
    }

    #[test]
    fn a_request_names_one_of_the_projects_of_its_token() {
        let projects = ProjectSet::named(["a", "b"]);
        let access = ProjectAccess::new(&projects, projects.clone());
        let in_request = |names: &[&'static str]| {
            let headers = names.iter().map(|name| HeaderValue::from_static(name));
            let name = axum::http::HeaderName::from_static(PROJECT_HEADER);
            let headers = headers.map(|value| (name.clone(), value)).collect();
            let identity = identity(access.clone()).in_request(&headers, Some("daemon"))?;
            Ok::<_, HttpProblem>(identity.caller(SessionName("s".to_owned())))
        };
        assert_eq!(in_request(&[]).unwrap().owner.project, None);
        let caller = in_request(&["b"]).unwrap();
        assert_eq!(caller.owner.project.as_deref(), Some("b"));
        assert_eq!(caller.projects.reachable, projects);
        assert_eq!(in_request(&["c"]).unwrap_err().0.status, 403);
        assert_eq!(in_request(&["a", "b"]).unwrap_err().0.status, 422);
    }
}
