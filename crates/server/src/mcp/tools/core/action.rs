//! Tools with several actions: which parameters go with which.

use crate::error::Failure;
use crate::params::{Arguments, Kind, Parameter};

/// The most ids one call takes.
const IDS_LIMIT: usize = 20;

pub(in crate::mcp::tools) const IDS: Parameter =
    Parameter::optional("ids", Kind::Ids, "Ids from exec, one or several");
/// What some call it who mean one.
pub(in crate::mcp::tools) const ID: Parameter = Parameter::alias("id", "ids");

/// One action of a tool.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp::tools) struct Action {
    pub(in crate::mcp::tools) word: &'static str,
    /// Parameters it cannot do without.
    pub(in crate::mcp::tools) needs: &'static [&'static str],
    /// Parameters it takes besides.
    pub(in crate::mcp::tools) takes: &'static [&'static str],
}

/// Takes `action` off the arguments and holds the others against what goes with it.
pub(in crate::mcp::tools) fn chosen(
    actions: &'static [Action],
    arguments: &mut Arguments,
) -> Result<&'static str, Failure> {
    let word = arguments.required_text("action");
    let Some(action) = actions.iter().find(|action| action.word == word) else {
        // The table of parameters lets only words of `actions` pass.
        return Err(Failure::value(format!("parameter 'action' is '{word}'")));
    };
    let mut problems = Vec::new();
    for name in action.needs {
        if !arguments.is_given(name) {
            problems.push(format!("action '{word}' needs parameter '{name}'"));
        }
    }
    for name in arguments.given() {
        if !action.needs.contains(&name) && !action.takes.contains(&name) {
            problems.push(format!(
                "parameter '{name}' does not go with action '{word}'; allowed: {}",
                action.allowed()
            ));
        }
    }
    if problems.is_empty() {
        Ok(action.word)
    } else {
        Err(Failure::value(problems.join("; ")))
    }
}

impl Action {
    fn allowed(&self) -> String {
        let names: Vec<&str> = self.needs.iter().chain(self.takes).copied().collect();
        names.join(", ")
    }
}

/// The ids, each once, in the order given.
pub(in crate::mcp::tools) fn ids(arguments: &mut Arguments) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for id in arguments.ids("ids") {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    match ids.len() {
        0 => Err(Failure::value(
            "parameter 'ids' is empty; allowed: ids that exec or action 'list' answered",
        )),
        1..=IDS_LIMIT => Ok(ids),
        count => Err(Failure::value(format!(
            "parameter 'ids' has {count} entries; allowed: at most {IDS_LIMIT}"
        ))),
    }
}

/// A failure that concerns one of several ids.
pub(in crate::mcp::tools) fn about(id: &str, failure: Failure) -> Failure {
    Failure {
        message: format!("{id}: {}", failure.message),
        ..failure
    }
}
