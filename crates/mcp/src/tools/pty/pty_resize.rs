//! `pty_resize`: change the size of a terminal.

use ostler_model::TermSize;
use serde_json::json;

use super::pty_start::{COLS, ROWS, parse_size};
use super::session::{self, SESSION};
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::params::{Arguments, Parameter};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_resize",
    title: "Resize a terminal",
    about: "Change a session's size; its program is told.",
    parameters: &[
        SESSION,
        Parameter {
            required: true,
            default: None,
            ..COLS
        },
        Parameter {
            required: true,
            default: None,
            ..ROWS
        },
    ],
    hints: ToolHints {
        read_only: false,
        destructive: false,
        idempotent: true,
    },
    output: None,
    handler: |call, arguments| {
        Box::pin(session::with_session_error_code(run_tool(call, arguments)))
    },
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("session");
    let info = session::find_running(call, &id, "its size stays")?;
    let size = parse_size(&arguments).unwrap_or(TermSize { cols: 80, rows: 24 });
    let resized = call.engine.resize_terminal(call.caller, &id, size, None);
    resized
        .await
        .map_err(|error| session::session_failure(call, &id, error))?;
    Ok(ToolReply::status(&json!({
        "session": info.id.short(),
        "cols": size.cols,
        "rows": size.rows,
    })))
}
