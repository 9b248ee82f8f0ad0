//! The API of [`Engine`] that shows and evaluates the command policy.

use ostler_model::ByteString;
use ostler_policy::{PolicyVerdict, RuleSet};

use super::Engine;
use crate::admission::{arguments, command_policy, workspace_rules};
use crate::error::Error;
use crate::request::StartRequest;

impl Engine {
    /// The command policy in force below a directory, with the rules of its workspace; none where
    /// every command may run. Reads files.
    ///
    /// # Errors
    /// [`Error::Denied`]: the workspace has rules that cannot be used, so nothing may run.
    pub fn policy_in(&self, cwd: &ByteString) -> Result<Option<RuleSet>, Error> {
        let Some(set) = self.inner.settings.policy.as_deref() else {
            return Ok(None);
        };
        let tightened = workspace_rules::with_workspace_rules(set, cwd)?;
        Ok(Some(tightened.unwrap_or_else(|| set.clone())))
    }

    /// The verdict of the command policy on a request, also a denial; none where there is no
    /// policy. Starts nothing and asks nobody. Reads files.
    ///
    /// # Errors
    /// Arguments that admission refuses; [`Error::Denied`] as for [`Engine::policy_in`].
    pub fn policy_verdict(&self, request: &StartRequest) -> Result<Option<PolicyVerdict>, Error> {
        arguments::check(request)?;
        let policy = self.policy_in(&request.cwd)?;
        let settings = &self.inner.settings;
        Ok(policy.map(|set| command_policy::evaluate_command(&set, settings, request)))
    }
}
