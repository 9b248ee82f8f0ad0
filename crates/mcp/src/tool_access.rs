//! Which tool calls change something: a client whose token may only read is refused there.

use ostler_interface::error::ApiError;
use ostler_model::Caller;
use rmcp::model::JsonObject;

use super::client::ConnectedClient;
use super::tools::ToolDefinition;

/// Actions of multi-action tools that change nothing.
const READ_ACTIONS: &[(&str, &[&str])] = &[
    ("service", &["list", "status", "logs", "why"]),
    ("workspace", &["changes", "diff"]),
];
/// The tool that starts a template, which itself checks what the template requires.
const TEMPLATE_TOOL: &str = "template_run";

/// The caller of a call: it reaches where the client may change something, or where it sees
/// something, as the tool needs.
///
/// # Errors
/// [`ErrorCode::Permission`](ostler_model::ErrorCode::Permission), with the scope that is missing.
pub(super) fn caller_of(
    client: &ConnectedClient,
    tool: &ToolDefinition,
    arguments: &JsonObject,
) -> Result<Caller, ApiError> {
    let caller = client.caller.clone();
    if !writes(tool, arguments) {
        return Ok(caller);
    }
    client.access.check_write(&format!("tool {}", tool.name))?;
    Ok(client.access.writer(caller))
}

/// Whether a call changes something.
fn writes(tool: &ToolDefinition, arguments: &JsonObject) -> bool {
    if tool.hints.read_only || tool.name == TEMPLATE_TOOL {
        return false;
    }
    let action = arguments.get("action").and_then(|it| it.as_str());
    !READ_ACTIONS.iter().any(|(name, actions)| {
        *name == tool.name && action.is_some_and(|action| actions.contains(&action))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::profile::{GROUPS, ToolSet};
    use crate::tools::{tool_named, tools_in};

    fn may_read(tool: &ToolDefinition, action: Option<&str>) -> bool {
        let arguments = action.map(|action| ("action".to_owned(), json!(action)));
        !writes(tool, &arguments.into_iter().collect())
    }

    #[test]
    fn who_may_only_read_calls_tools_that_change_nothing() {
        for tool in tools_in(ToolSet::from_groups(&GROUPS)) {
            let expected = tool.hints.read_only || tool.name == TEMPLATE_TOOL;
            assert_eq!(may_read(tool, None), expected, "{}", tool.name);
            assert_eq!(may_read(tool, Some("stop")), expected, "{}", tool.name);
        }
    }

    #[test]
    fn tables_name_tools_and_actions_that_there_are() {
        assert!(tool_named(TEMPLATE_TOOL).is_some());
        for (name, actions) in READ_ACTIONS {
            let tool = tool_named(name).unwrap();
            for action in *actions {
                assert!(may_read(tool, Some(action)), "{name} {action}");
                assert!(
                    format!("{:?}", tool.parameters).contains(action),
                    "{name} {action}"
                );
            }
        }
    }
}
