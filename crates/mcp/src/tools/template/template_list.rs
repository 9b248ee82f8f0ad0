//! `template_list`: the command templates.

use ostler_api::CommandTemplateBody;
use ostler_interface::convert::{command_template_body, command_templates_body};
use ostler_interface::error::ApiError;
use ostler_interface::pagination::{bad_cursor, json_chars};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_interface::templates::find_template;
use ostler_model::ErrorCode;
use ostler_render::{REPLY_CHARS, truncated};
use serde_json::{Value, json};

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};

/// The most characters of a description in a list.
const DESCRIPTION_CHARS: usize = 200;
/// The most problems of definition files in an answer.
const PROBLEMS: usize = 5;
/// The most characters of a problem.
const PROBLEM_CHARS: usize = 300;
/// Reserved for the text around the entries, the problems included.
const FRAME_CHARS: usize = 2_400;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "template_list",
    title: "List command templates",
    about: "List command templates, prepared commands with named parameters: id, what it does, \
            category, parameters (those without a default in required), whether a person is asked \
            before each start. With id: everything of one. template_run runs one.",
    parameters: &[
        Parameter::optional("id", ParameterKind::Text, "Only this one, in full"),
        Parameter::optional(
            "category",
            ParameterKind::Text,
            "Only those of this category",
        ),
        Parameter::optional(
            "cwd",
            ParameterKind::Text,
            "The directory whose project's templates are included; default: the workspace",
        ),
        Parameter::optional("cursor", ParameterKind::Text, "The list before's next"),
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let cwd = call.resolve_directory(&arguments.text("cwd").unwrap_or_default());
    let files = &call.state.options().templates;
    let projects = &call.caller.projects.visible;
    let catalog = files.load(Some(cwd.as_path().to_owned()), projects).await?;
    if let Some(id) = arguments.text("id") {
        let entry = find_template(&catalog, &id)?;
        return Ok(ToolReply::status(&detail(&command_template_body(entry))?));
    }
    let listing = command_templates_body(&catalog, arguments.text("category").as_deref());
    let after = arguments.text("cursor");
    if let Some(after) = &after
        && !listing.templates.iter().any(|it| it.id == *after)
    {
        return Err(bad_cursor(after).into());
    }
    let after = after.unwrap_or_default();
    let rest = listing.templates.iter().filter(|it| it.id > after);
    let mut body = page(rest);
    if !listing.problems.is_empty() {
        body["problems"] = listing
            .problems
            .iter()
            .take(PROBLEMS)
            .map(|problem| Value::from(truncated(problem, PROBLEM_CHARS).to_string()))
            .collect();
    }
    Ok(ToolReply::status(&body))
}

/// Everything of a template.
fn detail(template: &CommandTemplateBody) -> Result<Value, ApiError> {
    let body = json!(template);
    if json_chars(&body) > REPLY_CHARS {
        let message = format!(
            "template '{}' is longer than an answer; its file is {}",
            template.id, template.file
        );
        return Err(ApiError::new(ErrorCode::Template, message));
    }
    Ok(body)
}

/// As many templates as fit into an answer.
fn page<'a>(templates: impl Iterator<Item = &'a CommandTemplateBody>) -> Value {
    let (mut entries, mut chars) = (Vec::new(), 0);
    let mut body = json!({});
    let mut last = None;
    for template in templates {
        let entry = list_entry(template);
        chars += json_chars(&entry);
        if chars > REPLY_CHARS - FRAME_CHARS && !entries.is_empty() {
            body["next"] = json!(last);
            body["hint"] = "cursor: this next".into();
            break;
        }
        last = Some(&template.id);
        entries.push(entry);
    }
    body["templates"] = entries.into();
    body
}

fn list_entry(template: &CommandTemplateBody) -> Value {
    let names: Vec<&String> = template.parameters.keys().collect();
    let required = template.parameters.iter();
    let required: Vec<&String> = required
        .filter(|(_, parameter)| parameter.required)
        .map(|(name, _)| name)
        .collect();
    let mut entry = json!({
        "id": template.id,
        "description": truncated(&template.description, DESCRIPTION_CHARS),
        "category": template.category,
        "parameters": names,
        "required": required,
    });
    if template.requires_confirmation {
        entry["requires_confirmation"] = true.into();
    }
    if let Some(seconds) = template.estimated_duration {
        entry["estimated_duration"] = seconds.into();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(number: usize) -> CommandTemplateBody {
        CommandTemplateBody {
            id: format!("t{number:03}"),
            name: String::new(),
            description: "x".repeat(2_000),
            category: "c".to_owned(),
            command: "true".to_owned(),
            args_template: Vec::new(),
            required_permissions: Vec::new(),
            estimated_duration: None,
            requires_confirmation: false,
            parameters: [].into(),
            source: "user".to_owned(),
            file: "f".to_owned(),
            replaces_shipped: false,
        }
    }

    #[test]
    fn pages_fit_into_an_answer_and_lose_nothing() {
        let all: Vec<CommandTemplateBody> = (0..200).map(template).collect();
        let (mut seen, mut after) = (0, String::new());
        loop {
            let body = page(all.iter().filter(|it| it.id > after));
            assert!(json_chars(&body) <= REPLY_CHARS);
            seen += body["templates"].as_array().map_or(0, Vec::len);
            match body["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, all.len());
    }

    #[test]
    fn what_is_longer_than_an_answer_names_its_file() {
        let long = CommandTemplateBody {
            args_template: vec!["x".repeat(REPLY_CHARS)],
            ..template(1)
        };
        assert!(detail(&long).unwrap_err().message.contains("its file is f"));
        assert!(detail(&template(1)).is_ok());
    }
}
