//! What is written to a command: text for a pipe, text and keys for a terminal.

use ostler_terminal::{Key, KeyError, Piece};

use crate::error::Failure;
use crate::params::Arguments;

/// What one call writes.
#[derive(Debug, Clone)]
pub(super) struct InputArguments {
    text: Option<String>,
    /// Whether the text is a line, which is entered.
    enter: bool,
    keys: Vec<Key>,
}

impl InputArguments {
    /// Reads `text`, `enter` and `keys`. Who gives keys says when Enter is pressed.
    pub(super) fn read(arguments: &mut Arguments) -> Result<Self, Failure> {
        let has_keys = arguments.is_given("keys");
        let is_asked = arguments.is_given("enter") && arguments.flag("enter");
        let is_refused = arguments.is_given("enter") && !is_asked;
        let text = arguments.text("text");
        if text.is_none() && !has_keys && !is_asked {
            return Err(Failure::value(
                "action 'write' needs parameter 'text', or 'keys' for a terminal",
            ));
        }
        let keys = arguments.list("keys").into_iter().enumerate();
        let key = |(place, name): (usize, String)| {
            let key: Result<Key, KeyError> = name.parse();
            key.map_err(|error| Failure::value(format!("parameter 'keys[{place}]': {error}")))
        };
        Ok(Self {
            text,
            enter: is_asked || !(has_keys || is_refused),
            keys: keys.map(key).collect::<Result<_, _>>()?,
        })
    }

    /// The text, ended where it is entered and does not end itself.
    fn line(&self, end: char) -> String {
        let mut line = self.text.clone().unwrap_or_default();
        if self.enter && !line.ends_with(['\n', '\r']) {
            line.push(end);
        }
        line
    }

    /// For a pipe.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Failure> {
        if self.keys.is_empty() {
            return Ok(self.line('\n').into_bytes());
        }
        let failure = Failure::value("parameter 'keys' is for a terminal, and it has none");
        Err(failure.with_hint("give text, or start it with exec and input \"tty\""))
    }

    /// For a terminal, where Enter ends a line.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let line = self.line('\r');
        let text = (!line.is_empty()).then_some(Piece::Text(line));
        let keys = self.keys.iter().cloned().map(Piece::Key);
        text.into_iter().chain(keys).collect()
    }
}
