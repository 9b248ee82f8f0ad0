//! The MCP App (extension `io.modelcontextprotocol/ui`): a page that clients show beside the answers
//! of some tools, and which calls tools through them. It is offered to clients that declare the
//! extension, in both protocol eras.

use ostler_interface::error::object;
use rmcp::model::{ClientCapabilities, JsonObject, MetaObject, Resource, Tool as WireTool};
use serde_json::{Value, json};

use super::state::McpState;

/// The extension's name among capabilities.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The type of a page of the extension.
pub(super) const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The resource with the page.
pub(super) const APP_URI: &str = "ui://ostler/dashboard";
/// The tools whose answers it shows.
const TOOLS: [&str; 2] = ["process", "service"];

/// Whether a client with these capabilities is offered the app, where there is one.
pub(super) fn is_offered(state: &McpState, client: Option<&ClientCapabilities>) -> bool {
    let page = state.options().app.as_ref();
    client.is_some_and(shows_apps) && page.is_some_and(|page| page.is_there())
}

/// The settings of the extension, as the server declares them.
pub(super) fn settings() -> (String, JsonObject) {
    let settings = object(json!({"mimeTypes": [MIME_TYPE]}));
    (EXTENSION.to_owned(), settings)
}

/// The same tool, bound to the app where it is one of its tools.
pub(super) fn bound(mut tool: WireTool) -> WireTool {
    if TOOLS.contains(&&*tool.name) {
        let ui = object(json!({"ui": {"resourceUri": APP_URI}}));
        tool.meta = Some(MetaObject(ui));
    }
    tool
}

/// The app in `resources/list`.
pub(super) fn resource() -> Resource {
    Resource::new(APP_URI, "dashboard")
        .with_title("Dashboard")
        .with_description("What runs, with its output, as a page of an MCP App")
        .with_mime_type(MIME_TYPE)
}

/// The page, where there is one.
pub(super) async fn html(state: &McpState) -> Option<String> {
    let page = state.options().app.clone()?;
    let reading = tokio::task::spawn_blocking(move || page.html());
    reading.await.ok().flatten()
}

/// Whether a client declares the extension for pages of this type. One that names no types shows
/// the only one that there is.
fn shows_apps(client: &ClientCapabilities) -> bool {
    let extensions = client.extensions.as_ref();
    let Some(settings) = extensions.and_then(|extensions| extensions.get(EXTENSION)) else {
        return false;
    };
    match settings.get("mimeTypes").and_then(Value::as_array) {
        Some(types) => types.iter().any(|it| it == MIME_TYPE),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(extensions: Value) -> ClientCapabilities {
        serde_json::from_value(json!({"extensions": extensions})).expect("capabilities")
    }

    #[test]
    fn the_app_is_for_clients_that_show_its_type() {
        for (extensions, shows) in [
            (json!({EXTENSION: {"mimeTypes": [MIME_TYPE]}}), true),
            (
                json!({EXTENSION: {"mimeTypes": ["text/x", MIME_TYPE]}}),
                true,
            ),
            (json!({EXTENSION: {}}), true),
            (json!({EXTENSION: {"mimeTypes": ["text/html"]}}), false),
            (json!({EXTENSION: {"mimeTypes": []}}), false),
            (json!({"io.modelcontextprotocol/tasks": {}}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                shows_apps(&client(extensions.clone())),
                shows,
                "{extensions}"
            );
        }
        assert!(!shows_apps(&ClientCapabilities::default()));
    }
}
