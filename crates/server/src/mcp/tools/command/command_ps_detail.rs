//! `command_ps_detail`: everything known of one process.

use serde_json::{Value, json};

use super::command_ps_stop::PID;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::Arguments;
use crate::render::REPLY_CHARS;
use crate::wire::InfoBody;

/// The most characters of one field in a detail.
const FIELD_CHARS: usize = 4_000;

pub(super) const DEFINITION: Definition = Definition {
    name: "command_ps_detail",
    title: "",
    about: "Everything known of one process.",
    parameters: &[PID],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(async move { answer(call, arguments) }),
};

fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let info = call.info(&arguments.required_text("pid"))?;
    call.told(&info);
    let mut body = json!(InfoBody::from(&info));
    if let Some(fields) = body.as_object_mut() {
        let id = fields.remove("id").unwrap_or_default();
        fields.insert("pid".to_owned(), id);
    }
    shorten(&mut body);
    Ok(Reply::status(&body))
}

/// Cuts what a caller made huge, so that the detail stays within the budget of a reply.
fn shorten(body: &mut Value) {
    if body.to_string().chars().count() <= REPLY_CHARS {
        return;
    }
    for field in [
        "argv",
        "command",
        "description",
        "directory",
        "labels",
        "degraded",
    ] {
        let text = body[field]
            .as_str()
            .map_or_else(|| body[field].to_string(), str::to_owned);
        let Some((end, _)) = text.char_indices().nth(FIELD_CHARS / 2) else {
            continue;
        };
        let cut = format!("{}… ({} characters)", &text[..end], text.chars().count());
        body[field] = if body[field].is_array() {
            json!([cut])
        } else {
            cut.into()
        };
    }
}
