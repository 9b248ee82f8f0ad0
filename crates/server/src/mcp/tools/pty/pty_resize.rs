//! `pty_resize`: another size.

use ostler_model::TermSize;
use serde_json::json;

use super::pty_start::{COLS, ROWS, size};
use super::session::{self, SESSION};
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Parameter};

pub(super) const DEFINITION: Definition = Definition {
    name: "pty_resize",
    title: "Resize a terminal",
    about: "Change a session's size; its program is told.",
    parameters: &[
        SESSION,
        Parameter {
            required: true,
            preset: None,
            ..COLS
        },
        Parameter {
            required: true,
            preset: None,
            ..ROWS
        },
    ],
    hints: Hints {
        read_only: false,
        destructive: false,
        idempotent: true,
    },
    output: None,
    call: |call, arguments| Box::pin(session::told(answer(call, arguments))),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("session");
    let info = session::living(call, &id, "its size stays")?;
    let size = size(&arguments).unwrap_or(TermSize { cols: 80, rows: 24 });
    let resized = call.engine.resize_terminal(call.caller, &id, size, None);
    resized
        .await
        .map_err(|error| session::failure(call, &id, error))?;
    Ok(Reply::status(&json!({
        "session": info.id.short(),
        "cols": size.cols,
        "rows": size.rows,
    })))
}
