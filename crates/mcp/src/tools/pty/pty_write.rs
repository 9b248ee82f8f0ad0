//! `pty_write`: type, and show the effect.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_engine::{TerminalInput, TerminalInputResult};
use ostler_model::{Cursor, ErrorCode};
use ostler_terminal::{InputPiece, Key, KeyError};

use super::session::{self, SESSION};
use super::session_reply::SessionReply;
use super::settle::{self, PATTERN, SettleUntil, SettleWait, UNTIL, WAIT_MS};
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The default wait for the effect of typing.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_write",
    title: "Type",
    about: "Type into a session, in one write: text, paste, base64, then keys. Answers what that \
            did: new output, or the screen of a full-screen program. until: settled (default: \
            it asks for input, has drawn, or is quiet; 5 s), output, prompt, idle, exit, pattern \
            (30 s).",
    parameters: &[
        SESSION,
        Parameter::optional(
            "text",
            ParameterKind::Text,
            "A line to type, or less with enter false",
        ),
        Parameter::optional(
            "enter",
            ParameterKind::Flag,
            "Press Enter after text or paste; default true, but false with keys or base64",
        ),
        Parameter::optional(
            "keys",
            ParameterKind::List,
            "enter, tab, escape, backspace, up, pagedown, f1, ctrl-c, alt-x, :",
        ),
        Parameter::optional(
            "paste",
            ParameterKind::Text,
            "Pasted (bracketed if the program can)",
        ),
        Parameter::optional("base64", ParameterKind::Text, "Raw bytes"),
        UNTIL,
        PATTERN,
        WAIT_MS,
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| {
        Box::pin(session::with_session_error_code(run_tool(call, arguments)))
    },
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("session");
    let info = session::find_running(call, &id, "nothing was typed")?;
    // Output since the last answer is part of this one.
    let unread = call.unread_from(&info).unwrap_or(info.output_end);
    let pieces = parse_pieces(&mut arguments)?;
    let wait = SettleWait::parse(&mut arguments, None, SETTLE_TIMEOUT)?;
    let wait = wait.unwrap_or(SettleWait {
        until: SettleUntil::Settled,
        timeout: SETTLE_TIMEOUT,
    });
    let typing = TerminalInput {
        pieces,
        lease: None,
    };
    let typed = call.engine.send_input(call.caller, &id, typing).await;
    let typed = typed.map_err(|error| write_failure(call, &id, error))?;
    if typed.accepted == 0 && typed.bytes > 0 {
        return Err(not_accepted(&id, typed).into());
    }
    let wait = wait.after_input(&typed.input);
    let sent = Cursor {
        offset: typed.input.offset,
        event: 0,
    };
    let outcome = settle::wait_session(call, &id, &wait, Some(sent)).await?;
    let mut reply = SessionReply::of_outcome(call, outcome)
        .with_changes(unread)
        .await?;
    reply.set_field("bytes", typed.bytes);
    reply.set_field("taken", typed.accepted);
    if typed.accepted < typed.bytes {
        let TerminalInputResult {
            bytes,
            accepted: taken,
            ..
        } = typed;
        reply.add_note(format!(
            "only {taken} of {bytes} bytes were taken: the program does not read; type the rest \
             when it does"
        ));
    }
    Ok(reply.into_reply(None).await)
}

/// The session can end between the check and the write.
fn write_failure(call: ToolCall<'_>, id: &str, error: ostler_engine::Error) -> ApiError {
    match session::find_running(call, id, "nothing was typed") {
        Err(ended) => ended,
        Ok(_) => session::session_failure(call, id, error),
    }
}

fn not_accepted(id: &str, typed: TerminalInputResult) -> ApiError {
    let message = format!(
        "session {id} took none of {} bytes: the program does not read its terminal",
        typed.bytes
    );
    ApiError::new(ErrorCode::ProcessControl, message)
        .with_hint("look with pty_read, wait until \"prompt\", or pty_close with signal \"INT\"")
}

/// The input pieces, in the order of the parameters' description.
fn parse_pieces(arguments: &mut Arguments) -> Result<Vec<InputPiece>, ApiError> {
    let plain = !arguments.is_given("keys") && !arguments.is_given("base64");
    let words = arguments.is_given("text") || arguments.is_given("paste");
    let is_enter_given = arguments.is_given("enter");
    let enter = if is_enter_given {
        arguments.flag("enter")
    } else {
        plain && words
    };
    let mut pieces = Vec::new();
    let mut is_ended = false;
    if let Some(text) = arguments.text("text") {
        // A text that ends its own line means one Enter, not two.
        is_ended = text.ends_with(['\n', '\r']);
        pieces.push(InputPiece::Text(text));
    }
    if let Some(text) = arguments.text("paste") {
        is_ended = false;
        pieces.push(InputPiece::Paste(text));
    }
    if enter && !is_ended && (words || is_enter_given) {
        pieces.push(InputPiece::Text("\r".to_owned()));
    }
    if let Some(given) = arguments.text("base64") {
        pieces.push(InputPiece::Raw(decode_base64(&given)?));
    }
    let keys = arguments.list("keys");
    for (index, name) in keys.into_iter().enumerate() {
        let key: Result<Key, KeyError> = name.parse();
        let key =
            key.map_err(|error| ApiError::value(format!("parameter 'keys[{index}]': {error}")))?;
        pieces.push(InputPiece::Key(key));
    }
    if pieces.is_empty() {
        return Err(ApiError::value(
            "nothing to type; allowed: text, paste, base64, keys, or enter alone",
        ));
    }
    Ok(pieces)
}

fn decode_base64(given: &str) -> Result<Vec<u8>, ApiError> {
    STANDARD.decode(given).map_err(|error| {
        ApiError::value(format!(
            "parameter 'base64': {error}; allowed: standard base64 with padding"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn typed(given: Value) -> Result<Vec<InputPiece>, String> {
        let mut given = ostler_interface::error::object(given);
        given.insert("session".to_owned(), "k".into());
        let arguments = Arguments::check(DEFINITION.parameters, given);
        let mut arguments = arguments.map_err(|error| error.to_string())?;
        parse_pieces(&mut arguments).map_err(|failure| failure.message)
    }

    fn text(text: &str) -> InputPiece {
        InputPiece::Text(text.to_owned())
    }

    #[test]
    fn enter_follows_text_alone_unless_it_is_said_otherwise() {
        let enter = || text("\r");
        let key = |name: &str| InputPiece::Key(name.parse().unwrap());
        for (given, pieces) in [
            (json!({"text": "ls"}), vec![text("ls"), enter()]),
            (json!({"text": "ls\n"}), vec![text("ls\n")]),
            (json!({"text": "ls", "enter": false}), vec![text("ls")]),
            (
                json!({"text": ":w", "enter": true, "keys": ["escape"]}),
                vec![text(":w"), enter(), key("escape")],
            ),
            (
                json!({"text": "a", "keys": ["tab"]}),
                vec![text("a"), key("tab")],
            ),
            (json!({"keys": ["ctrl-c"]}), vec![key("ctrl-c")]),
            (json!({"enter": true}), vec![enter()]),
            (
                json!({"paste": "a\nb\n"}),
                vec![InputPiece::Paste("a\nb\n".to_owned()), enter()],
            ),
            (
                json!({"base64": "G1s="}),
                vec![InputPiece::Raw(vec![0x1b, b'['])],
            ),
        ] {
            assert_eq!(typed(given.clone()), Ok(pieces), "{given}");
        }
    }

    #[test]
    fn untypable_scripts_are_refused() {
        for (given, expected) in [
            (json!({}), "nothing to type"),
            (json!({"enter": false}), "nothing to type"),
            (json!({"keys": ["enter", "hyper-x"]}), "keys[1]"),
            (json!({"base64": "?"}), "standard base64"),
        ] {
            let refused = typed(given.clone()).unwrap_err();
            assert!(refused.contains(expected), "{given}: {refused}");
        }
    }
}
