//! Prompts: the command templates, for clients that are offered the tools of profile `template`.

use ostler_api::CommandTemplateBody;
use ostler_interface::convert::{command_template_body, command_templates_body};
use ostler_interface::error::ApiError;
use ostler_interface::templates::{find_template, parameter_values, template_command};
use ostler_model::visible;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResult, ListPromptsRequestMethod,
    ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::json;

use super::client::ConnectedClient;
use super::profile::ToolGroup;
use super::state::McpState;

/// Whether the client is offered prompts.
pub(super) fn are_offered(client: &ConnectedClient) -> bool {
    let mut groups = client.context.tools.groups();
    groups.any(|group| group == ToolGroup::Template)
}

/// `prompts/list`.
pub(super) async fn list(
    state: &McpState,
    client: &ConnectedClient,
) -> Result<ListPromptsResult, ErrorData> {
    if !are_offered(client) {
        // The library's default would return an empty list.
        return Err(ErrorData::method_not_found::<ListPromptsRequestMethod>());
    }
    let projects = &client.caller.projects.visible;
    let files = &state.options().templates;
    let catalog = files.load(Some(directory(client)), projects);
    let catalog = catalog.await.map_err(|error| protocol_error(&error))?;
    let listing = command_templates_body(&catalog, None);
    let prompts = listing.templates.iter().map(prompt).collect();
    Ok(ListPromptsResult::with_all_items(prompts))
}

/// `prompts/get`: the request to run the template with these values.
pub(super) async fn get(
    state: &McpState,
    client: &ConnectedClient,
    request: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    if !are_offered(client) {
        return Err(ErrorData::method_not_found::<GetPromptRequestMethod>());
    }
    let projects = &client.caller.projects.visible;
    let files = &state.options().templates;
    let catalog = files.load(Some(directory(client)), projects);
    let catalog = catalog.await.map_err(|error| protocol_error(&error))?;
    let message = || -> Result<GetPromptResult, ApiError> {
        let values = parameter_values(request.arguments.unwrap_or_default())?;
        let made = template_command(
            &catalog,
            &client.caller,
            &client.access,
            &request.name,
            &values,
        )?;
        let template = command_template_body(find_template(&catalog, &request.name)?);
        let text = request_text(
            &template,
            &json!(made.record.parameters),
            &made.command.display(),
        );
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).with_description(template.description))
    };
    message().map_err(|error| protocol_error(&error))
}

fn directory(client: &ConnectedClient) -> std::path::PathBuf {
    client.context.cwd.as_path().to_owned()
}

fn protocol_error(error: &ApiError) -> ErrorData {
    ErrorData::invalid_params(error.message().into_owned(), None)
}

fn prompt(template: &CommandTemplateBody) -> Prompt {
    let arguments = template.parameters.iter().map(|(name, parameter)| {
        let mut description = parameter.description.clone();
        if !parameter.options.is_empty() {
            description.push_str(&format!(" ({})", parameter.options.join(", ")));
        }
        PromptArgument::new(name)
            .with_description(description)
            .with_required(parameter.required)
    });
    let description = Some(template.description.as_str());
    Prompt::new(&template.id, description, Some(arguments.collect())).with_title(&template.name)
}

fn request_text(
    template: &CommandTemplateBody,
    parameters: &serde_json::Value,
    command: &str,
) -> String {
    let arguments = json!({"id": template.id, "parameters": parameters});
    let mut text = format!(
        "{}: call the tool template_run with {arguments}. It runs: {}",
        template.name,
        visible(command)
    );
    if template.requires_confirmation {
        text.push_str("\nA person is asked before it starts.");
    }
    text
}
