//! Our words in the library's.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, Tool as WireTool, ToolAnnotations,
};
use serde_json::Value;

use super::reply::Reply;
use super::tools::Definition;
use crate::error::object;
use crate::params::schema;

/// Where machine fields of log-bearing tools and errors stand in `_meta`.
const RESULT_KEY: &str = "ostler/result";

/// A tool as `tools/list` shows it.
pub(super) fn tool(definition: &Definition) -> WireTool {
    let hints = definition.hints;
    let annotations = ToolAnnotations::with_title(definition.title)
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let input = Arc::new(schema(definition.parameters));
    let mut tool = WireTool::new(definition.name, Cow::Borrowed(definition.about), input);
    tool.output_schema = definition.output.map(|output| Arc::new(object(output())));
    tool.with_annotations(annotations)
}

/// An answer as `tools/call` gives it. Every failure a user can see is a tool error, never a
/// protocol error: those do not reach the model.
pub(super) fn result(reply: Reply) -> CallToolResult {
    let Reply {
        mut blocks,
        structured,
        mut fields,
        failure,
    } = reply;
    let failed = failure.is_some();
    if let Some(failure) = failure {
        blocks.insert(0, failure.text());
        fields.extend(failure.fields());
    }
    let content = blocks.into_iter().map(ContentBlock::text).collect();
    let mut result = if failed {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = structured.filter(|_| !failed);
    result.meta = meta(fields, failed);
    result
}

/// Errors have `{code, retryable, rpc}` at the top of `_meta`; everything else has its fields
/// under our own key.
fn meta(fields: JsonObject, failed: bool) -> Option<MetaObject> {
    if fields.is_empty() {
        return None;
    }
    let mut meta = JsonObject::new();
    let mut rest = JsonObject::new();
    for (key, value) in fields {
        let top = failed && ["code", "retryable", "rpc"].contains(&key.as_str());
        let place = if top { &mut meta } else { &mut rest };
        place.insert(key, value);
    }
    if !rest.is_empty() {
        meta.insert(RESULT_KEY.to_owned(), Value::Object(rest));
    }
    Some(MetaObject(meta))
}
