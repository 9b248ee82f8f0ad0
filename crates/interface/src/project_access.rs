//! What the scopes of a token let a client do in projects.

use ostler_model::ErrorCode;

use crate::error::ApiError;

/// The scope of tokens that change something.
pub const PROJECT_WRITE: &str = "project:write";

/// What a client may do in the projects that it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProjectAccess {
    /// It sees executions, their output, services and questions; it starts what requires no more.
    Read,
    /// Everything: clients of the daemon's socket, and tokens without a scope for projects.
    #[default]
    Write,
}

impl ProjectAccess {
    /// Refuses what starts, stops or changes something; `what` names it.
    ///
    /// # Errors
    /// [`ErrorCode::Permission`], with the scope that is missing.
    pub fn check_write(self, what: &str) -> Result<(), ApiError> {
        if self == Self::Write {
            return Ok(());
        }
        let message =
            format!("{what} needs the scope {PROJECT_WRITE}, which the token does not have");
        let hint =
            format!("make one that has it with `ostler token new NAME --scope {PROJECT_WRITE}`");
        Err(ApiError::new(ErrorCode::Permission, message).with_hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_only_read_is_told_the_missing_scope() {
        assert!(ProjectAccess::Write.check_write("tool exec").is_ok());
        let error = ProjectAccess::Read.check_write("tool exec").unwrap_err();
        assert_eq!(error.code, ErrorCode::Permission);
        assert_eq!(
            error.message,
            "tool exec needs the scope project:write, which the token does not have"
        );
    }
}
