//! What the scopes of a token let a client do in projects.

use ostler_model::{Caller, ErrorCode, ProjectSet, ProjectView};
use serde::{Deserialize, Serialize};

use crate::error::ApiError;

/// The scope of tokens that change something.
pub const PROJECT_WRITE: &str = "project:write";

/// What a client may do in the projects that it sees. The default is everything: clients of the
/// daemon's socket, and tokens without a scope for projects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProjectAccess {
    /// Where it sees executions, their output, services and questions, and starts what requires no
    /// more.
    read: ProjectSet,
    /// Where it does everything; none of them is missing in `read`.
    write: ProjectSet,
}

impl ProjectAccess {
    /// Reading in some projects and in those where it may write.
    #[must_use]
    pub fn new(read: &ProjectSet, write: ProjectSet) -> Self {
        Self {
            read: read.union(&write),
            write,
        }
    }

    /// Reading everywhere, and nothing else.
    #[must_use]
    pub fn read_only() -> Self {
        Self::new(&ProjectSet::All, ProjectSet::none())
    }

    /// Whether it is everything, which is not stored.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether nothing may be changed anywhere.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.write.is_empty()
    }

    /// Refuses what starts, stops or changes something, where nothing may be; `what` names it.
    ///
    /// # Errors
    /// [`ErrorCode::Permission`], with the scope that is missing.
    pub fn check_write(&self, what: &str) -> Result<(), ApiError> {
        if !self.is_read_only() {
            return Ok(());
        }
        let message =
            format!("{what} needs the scope {PROJECT_WRITE}, which the token does not have");
        let hint =
            format!("make one that has it with `ostler token new NAME --scope {PROJECT_WRITE}`");
        Err(ApiError::new(ErrorCode::Permission, message).with_hint(hint))
    }

    /// Whether something may be changed in this project, or in none where it is absent.
    #[must_use]
    pub fn may_write(&self, project: Option<&str>) -> bool {
        self.write.contains(project)
    }

    /// The caller of a request that changes nothing.
    #[must_use]
    pub fn reader(&self, caller: Caller) -> Caller {
        let projects = ProjectView {
            visible: self.read.clone(),
            reachable: self.read.clone(),
        };
        Caller { projects, ..caller }
    }

    /// The caller of a request that changes something: it reaches only where it may.
    #[must_use]
    pub fn writer(&self, caller: Caller) -> Caller {
        let projects = ProjectView {
            visible: self.read.clone(),
            reachable: self.write.clone(),
        };
        Caller { projects, ..caller }
    }

    /// The project of what a client starts that names none: the only one that it may write to, else
    /// the only one that it sees, else that of the daemon where it sees that.
    #[must_use]
    pub fn default_project(&self, of_daemon: Option<&str>) -> Option<String> {
        let only = self.write.single().or_else(|| self.read.single());
        let of_daemon = of_daemon.filter(|project| self.read.contains(Some(project)));
        only.or(of_daemon).map(str::to_owned)
    }

    /// The project that a request names instead.
    ///
    /// # Errors
    /// [`ErrorCode::Permission`] for one that the client does not see; [`ErrorCode::Value`] for a
    /// client that sees all of them: what it starts belongs to the daemon's project.
    pub fn check_named(&self, project: &str) -> Result<(), ApiError> {
        let Some(names) = self.read.names() else {
            let message = "a project is named only with a token whose scopes name projects";
            return Err(ApiError::value(message)
                .with_hint("POST /api/v1/projects/{id}/execute starts for a project"));
        };
        if names.contains(project) {
            return Ok(());
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!(
            "the token has no scope for project '{}'; allowed: {}",
            ostler_model::visible(project),
            names.join(", ")
        );
        Err(ApiError::new(ErrorCode::Permission, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> ProjectSet {
        ProjectSet::named(names.iter().copied())
    }

    #[test]
    fn who_may_only_read_is_told_the_missing_scope() {
        assert!(ProjectAccess::default().check_write("tool exec").is_ok());
        let of_one = ProjectAccess::new(&set(&["a"]), set(&["b"]));
        assert!(of_one.check_write("tool exec").is_ok());
        for none in [
            ProjectAccess::read_only(),
            ProjectAccess::new(&set(&["a"]), set(&[])),
        ] {
            let error = none.check_write("tool exec").unwrap_err();
            assert_eq!(error.code, ErrorCode::Permission);
            assert_eq!(
                error.message,
                "tool exec needs the scope project:write, which the token does not have"
            );
        }
    }

    #[test]
    fn who_writes_in_a_project_sees_it() {
        let access = ProjectAccess::new(&set(&["a"]), set(&["b"]));
        assert!(access.may_write(Some("b")) && !access.may_write(Some("a")));
        assert!(!access.may_write(None) && ProjectAccess::default().may_write(None));
        assert_eq!(access, ProjectAccess::new(&set(&["a", "b"]), set(&["b"])));
        assert!(access.check_named("b").is_ok() && access.check_named("a").is_ok());
        let foreign = access.check_named("c").unwrap_err();
        assert_eq!(foreign.code, ErrorCode::Permission);
        assert!(foreign.message.ends_with("allowed: a, b"), "{foreign:?}");
        let any = ProjectAccess::default().check_named("a").unwrap_err();
        assert_eq!(any.code, ErrorCode::Value);
    }

    #[test]
    fn a_start_belongs_to_the_only_project_there_is() {
        let project = |read: &[&str], write: &[&str]| {
            let access = ProjectAccess::new(&set(read), set(write));
            access.default_project(Some("daemon"))
        };
        assert_eq!(project(&["a", "b"], &["b"]).as_deref(), Some("b"));
        assert_eq!(project(&["a"], &[]).as_deref(), Some("a"));
        assert_eq!(project(&[], &["a", "b"]), None);
        assert_eq!(project(&[], &["a", "daemon"]).as_deref(), Some("daemon"));
        let all = ProjectAccess::default();
        assert_eq!(
            all.default_project(Some("daemon")).as_deref(),
            Some("daemon")
        );
        assert_eq!(all.default_project(None), None);
    }
}
