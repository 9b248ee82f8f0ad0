//! `pty_write`: type, and see what it did.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_engine::{Typed, Typing};
use ostler_model::{Cursor, ErrorCode};
use ostler_terminal::{Key, KeyError, Piece};

use super::session::{self, SESSION};
use super::settle::{self, PATTERN, UNTIL, Until, WAIT_MS, Wait};
use super::told::Telling;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

/// How long a call waits for what typing did.
const SETTLED: Duration = Duration::from_secs(5);

pub(super) const DEFINITION: Definition = Definition {
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
            Kind::Text,
            "A line to type, or less with enter false",
        ),
        Parameter::optional(
            "enter",
            Kind::Flag,
            "Press Enter after text or paste; default true, but false with keys or base64",
        ),
        Parameter::optional(
            "keys",
            Kind::List,
            "enter, tab, escape, backspace, up, pagedown, f1, ctrl-c, alt-x, :",
        ),
        Parameter::optional("paste", Kind::Text, "Pasted (bracketed if the program can)"),
        Parameter::optional("base64", Kind::Text, "Raw bytes"),
        UNTIL,
        PATTERN,
        WAIT_MS,
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(session::told(answer(call, arguments))),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("session");
    let info = session::living(call, &id, "nothing was typed")?;
    // What came since the last answer is part of this one.
    let unread = call.unread(&info).unwrap_or(info.output_end);
    let pieces = pieces(&mut arguments)?;
    let wait = Wait::read(&mut arguments, None, SETTLED)?;
    let wait = wait.unwrap_or(Wait {
        until: Until::Settled,
        at_most: SETTLED,
    });
    let typing = Typing {
        pieces,
        lease: None,
    };
    let typed = call.engine.type_in(call.caller, &id, typing).await;
    let typed = typed.map_err(|error| failed(call, &id, error))?;
    if typed.taken == 0 && typed.bytes > 0 {
        return Err(not_taken(&id, typed).into());
    }
    let wait = wait.after_input(&typed.input);
    let sent = Cursor {
        offset: typed.input.offset,
        event: 0,
    };
    let outcome = settle::wait(call, &id, &wait, Some(sent)).await?;
    let mut telling = Telling::of(call, outcome).with_changes(unread).await?;
    telling.field("bytes", typed.bytes);
    telling.field("taken", typed.taken);
    if typed.taken < typed.bytes {
        let Typed { bytes, taken, .. } = typed;
        telling.note(format!(
            "only {taken} of {bytes} bytes were taken: the program does not read; type the rest \
             when it does"
        ));
    }
    Ok(telling.reply(None).await)
}

/// It can end between our look and the write.
fn failed(call: Call<'_>, id: &str, error: ostler_engine::Error) -> Failure {
    match session::living(call, id, "nothing was typed") {
        Err(ended) => ended,
        Ok(_) => session::failure(call, id, error),
    }
}

fn not_taken(id: &str, typed: Typed) -> Failure {
    let message = format!(
        "session {id} took none of {} bytes: the program does not read its terminal",
        typed.bytes
    );
    Failure::new(ErrorCode::ProcessControl, message)
        .with_hint("look with pty_read, wait until \"prompt\", or pty_close with signal \"INT\"")
}

/// What is typed, in the order of the parameters' description.
fn pieces(arguments: &mut Arguments) -> Result<Vec<Piece>, Failure> {
    let plain = !arguments.is_given("keys") && !arguments.is_given("base64");
    let words = arguments.is_given("text") || arguments.is_given("paste");
    let asked = arguments.is_given("enter");
    let enter = if asked {
        arguments.flag("enter")
    } else {
        plain && words
    };
    let mut pieces = Vec::new();
    let mut is_ended = false;
    if let Some(text) = arguments.text("text") {
        // Who ends a line themselves means one Enter, not two.
        is_ended = text.ends_with(['\n', '\r']);
        pieces.push(Piece::Text(text));
    }
    if let Some(text) = arguments.text("paste") {
        is_ended = false;
        pieces.push(Piece::Paste(text));
    }
    if enter && !is_ended && (words || asked) {
        pieces.push(Piece::Text("\r".to_owned()));
    }
    if let Some(given) = arguments.text("base64") {
        pieces.push(Piece::Raw(decoded(&given)?));
    }
    let keys = arguments.list("keys");
    for (place, name) in keys.into_iter().enumerate() {
        let key: Result<Key, KeyError> = name.parse();
        let key =
            key.map_err(|error| Failure::value(format!("parameter 'keys[{place}]': {error}")))?;
        pieces.push(Piece::Key(key));
    }
    if pieces.is_empty() {
        return Err(Failure::value(
            "nothing to type; allowed: text, paste, base64, keys, or enter alone",
        ));
    }
    Ok(pieces)
}

fn decoded(given: &str) -> Result<Vec<u8>, Failure> {
    STANDARD.decode(given).map_err(|error| {
        Failure::value(format!(
            "parameter 'base64': {error}; allowed: standard base64 with padding"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn typed(given: Value) -> Result<Vec<Piece>, String> {
        let mut given = crate::error::object(given);
        given.insert("session".to_owned(), "k".into());
        let arguments = Arguments::check(DEFINITION.parameters, given);
        let mut arguments = arguments.map_err(|error| error.to_string())?;
        pieces(&mut arguments).map_err(|failure| failure.message)
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn enter_follows_text_alone_unless_it_is_said_otherwise() {
        let enter = || text("\r");
        let key = |name: &str| Piece::Key(name.parse().unwrap());
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
                vec![Piece::Paste("a\nb\n".to_owned()), enter()],
            ),
            (
                json!({"base64": "G1s="}),
                vec![Piece::Raw(vec![0x1b, b'['])],
            ),
        ] {
            assert_eq!(typed(given.clone()), Ok(pieces), "{given}");
        }
    }

    #[test]
    fn what_cannot_be_typed_is_told() {
        for (given, told) in [
            (json!({}), "nothing to type"),
            (json!({"enter": false}), "nothing to type"),
            (json!({"keys": ["enter", "hyper-x"]}), "keys[1]"),
            (json!({"base64": "?"}), "standard base64"),
        ] {
            let refused = typed(given.clone()).unwrap_err();
            assert!(refused.contains(told), "{given}: {refused}");
        }
    }
}
