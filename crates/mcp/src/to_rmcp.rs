//! Conversions to the MCP library's types.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, Resource, Tool as WireTool,
    ToolAnnotations,
};
use serde_json::Value;

use super::options::Structured;
use super::reply::{RESULT_KEY, ResourceLink, ToolReply};
use super::tools::ToolDefinition;
use ostler_interface::error::object;
use ostler_interface::params::object_schema;

/// A tool as `tools/list` shows it.
pub(super) fn to_wire_tool(definition: &'static ToolDefinition) -> WireTool {
    let input = Arc::new(object_schema(definition.parameters));
    let mut tool = WireTool::new(definition.name, Cow::Borrowed(definition.about), input);
    tool.output_schema = definition.output.map(|output| Arc::new(object(output())));
    tool.annotations = annotations(definition);
    tool
}

/// The annotations of a tool, without the protocol's defaults (destructive, not idempotent, the
/// title that the name says): models read the list.
fn annotations(definition: &ToolDefinition) -> Option<ToolAnnotations> {
    let hints = definition.hints;
    let mut annotations = ToolAnnotations::default();
    let title = Some(definition.title).filter(|title| !title.is_empty());
    annotations.title = title.map(str::to_owned);
    if hints.read_only {
        annotations.read_only_hint = Some(true);
    } else {
        annotations.destructive_hint = (!hints.destructive).then_some(false);
        annotations.idempotent_hint = hints.idempotent.then_some(true);
    }
    (annotations != ToolAnnotations::default()).then_some(annotations)
}

/// The result of `tools/call`. Every failure is a tool error, never a protocol error: those do not
/// reach the model.
///
/// `notifications_line` has the pending notifications.
pub(super) fn to_call_result(
    reply: ToolReply,
    notifications_line: Option<String>,
    structured_for: Structured,
) -> CallToolResult {
    let ToolReply {
        mut blocks,
        structured,
        mut fields,
        failure,
        is_worded: worded,
        links,
    } = reply;
    let failed = failure.is_some();
    if let Some(failure) = failure {
        if !worded {
            blocks.insert(0, failure.text());
        }
        fields.extend(failure.fields());
    }
    let blocks = blocks.into_iter().map(ContentBlock::text);
    let links = links.into_iter().map(to_content_block);
    let notifications_block = notifications_line.into_iter().map(ContentBlock::text);
    let content = blocks.chain(links).chain(notifications_block).collect();
    let mut result = if failed {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = match structured_for {
        Structured::Never => None,
        Structured::Auto => structured.filter(|_| !failed),
        Structured::Always => structured
            .or_else(|| Some(Value::Object(fields.clone())))
            .filter(|_| !failed),
    };
    result.meta = meta(fields, failed);
    result
}

fn to_content_block(link: ResourceLink) -> ContentBlock {
    let resource = Resource::new(link.uri, link.name).with_title(link.title);
    ContentBlock::resource_link(resource.with_mime_type(link.mime_type))
}

/// Errors have `{code, retryable, rpc}` at the top of `_meta`; everything else has its fields under
/// [`RESULT_KEY`].
fn meta(fields: JsonObject, failed: bool) -> Option<MetaObject> {
    if fields.is_empty() {
        return None;
    }
    let mut meta = JsonObject::new();
    let mut rest = JsonObject::new();
    for (key, value) in fields {
        let is_top_level = failed && ["code", "retryable", "rpc"].contains(&key.as_str());
        let target = if is_top_level { &mut meta } else { &mut rest };
        target.insert(key, value);
    }
    if !rest.is_empty() {
        meta.insert(RESULT_KEY.to_owned(), Value::Object(rest));
    }
    Some(MetaObject(meta))
}
