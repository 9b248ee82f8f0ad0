//! Which tool calls change something: a client whose token may only read is refused there.

use ostler_interface::error::ApiError;
use ostler_interface::project_access::ProjectAccess;
use rmcp::model::JsonObject;

use super::tools::ToolDefinition;

/// Actions of multi-action tools that change nothing.
const READ_ACTIONS: &[(&str, &[&str])] = &[
    ("service", &["list", "status", "logs", "why"]),
    ("workspace", &["changes", "diff"]),
];
/// The tool that starts a template, which itself checks what the template requires.
const TEMPLATE_TOOL: &str = "template_run";

/// Refuses a call that the client may not make.
///
/// # Errors
/// [`ErrorCode::Permission`](ostler_model::ErrorCode::Permission), with the scope that is missing.
pub(super) fn check(
    access: ProjectAccess,
    tool: &ToolDefinition,
    arguments: &JsonObject,
) -> Result<(), ApiError> {
    if tool.hints.read_only || tool.name == TEMPLATE_TOOL {
        return Ok(());
    }
    let action = arguments.get("action").and_then(|it| it.as_str());
    let reads = |action| {
        READ_ACTIONS
            .iter()
            .any(|(name, actions)| *name == tool.name && actions.contains(&action))
    };
    match action {
        Some(action) if reads(action) => Ok(()),
        Some(_) | None => access.check_write(&format!("tool {}", tool.name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::profile::{GROUPS, ToolSet};
    use crate::tools::{tool_named, tools_in};

    fn may_read(tool: &ToolDefinition, action: Option<&str>) -> bool {
        let arguments = action.map(|action| ("action".to_owned(), json!(action)));
        check(ProjectAccess::Read, tool, &arguments.into_iter().collect()).is_ok()
    }

    #[test]
    fn who_may_only_read_calls_tools_that_change_nothing() {
        for tool in tools_in(ToolSet::from_groups(&GROUPS)) {
            let expected = tool.hints.read_only || tool.name == TEMPLATE_TOOL;
            assert_eq!(may_read(tool, None), expected, "{}", tool.name);
            assert_eq!(may_read(tool, Some("stop")), expected, "{}", tool.name);
            let none = JsonObject::new();
            assert!(check(ProjectAccess::Write, tool, &none).is_ok());
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
