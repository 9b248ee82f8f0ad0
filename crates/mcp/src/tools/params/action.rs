//! Tools with several actions: which parameters each action takes.

use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The most ids one call takes.
const IDS_LIMIT: usize = 20;

pub(in crate::tools) const IDS: Parameter =
    Parameter::optional("ids", ParameterKind::Ids, "Ids from exec, one or several");
/// An alias of `ids` for calls that name one id.
pub(in crate::tools) const ID: Parameter = Parameter::alias("id", "ids");

/// One action of a tool.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) struct ToolAction {
    pub(in crate::tools) name: &'static str,
    /// Required parameters.
    pub(in crate::tools) required: &'static [&'static str],
    /// Optional parameters.
    pub(in crate::tools) optional: &'static [&'static str],
}

/// Takes `action` from the arguments and validates the others against it.
pub(in crate::tools) fn parse_action(
    actions: &'static [ToolAction],
    arguments: &mut Arguments,
) -> Result<&'static str, ApiError> {
    let word = arguments.required_text("action");
    let Some(action) = actions.iter().find(|action| action.name == word) else {
        // The parameter table admits only names of `actions`.
        return Err(ApiError::value(format!("parameter 'action' is '{word}'")));
    };
    let mut problems = Vec::new();
    for name in action.required {
        if !arguments.is_given(name) {
            problems.push(format!("action '{word}' needs parameter '{name}'"));
        }
    }
    for name in arguments.given_names() {
        if !action.required.contains(&name) && !action.optional.contains(&name) {
            problems.push(format!(
                "parameter '{name}' does not go with action '{word}'; allowed: {}",
                action.allowed()
            ));
        }
    }
    if problems.is_empty() {
        Ok(action.name)
    } else {
        Err(ApiError::value(problems.join("; ")))
    }
}

impl ToolAction {
    fn allowed(&self) -> String {
        let names: Vec<&str> = self.required.iter().chain(self.optional).copied().collect();
        names.join(", ")
    }
}

/// The ids without duplicates, in the order given.
pub(in crate::tools) fn parse_ids(arguments: &mut Arguments) -> Result<Vec<String>, ApiError> {
    let mut ids: Vec<String> = Vec::new();
    for id in arguments.ids("ids") {
        if id.is_empty() {
            return Err(ApiError::value(
                "parameter 'ids' has an empty id; allowed: ids that exec or action 'list' answered",
            ));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    match ids.len() {
        0 => Err(ApiError::value(
            "parameter 'ids' is empty; allowed: ids that exec or action 'list' answered",
        )),
        1..=IDS_LIMIT => Ok(ids),
        count => Err(ApiError::value(format!(
            "parameter 'ids' has {count} entries; allowed: at most {IDS_LIMIT}"
        ))),
    }
}

/// A failure that concerns one of several ids.
pub(in crate::tools) fn with_id(id: &str, failure: ApiError) -> ApiError {
    ApiError {
        message: format!("{id}: {}", failure.message),
        ..failure
    }
}
