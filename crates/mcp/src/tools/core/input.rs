//! Input for a command: text for a pipe, text and keys for a terminal.

use ostler_terminal::{InputPiece, Key, KeyError};

use ostler_interface::error::ApiError;
use ostler_interface::params::Arguments;

/// The input of one call.
#[derive(Debug, Clone)]
pub(super) struct InputArguments {
    text: Option<String>,
    /// Whether the text is a line to be ended with Enter.
    enter: bool,
    keys: Vec<Key>,
}

impl InputArguments {
    /// Parses `text`, `enter` and `keys`. With keys, Enter is pressed only if the call requests it.
    pub(super) fn parse(arguments: &mut Arguments) -> Result<Self, ApiError> {
        let has_keys = arguments.is_given("keys");
        let is_enter_requested = arguments.is_given("enter") && arguments.flag("enter");
        let is_enter_refused = arguments.is_given("enter") && !is_enter_requested;
        let text = arguments.text("text");
        if text.is_none() && !has_keys && !is_enter_requested {
            return Err(ApiError::value(
                "action 'write' needs parameter 'text', or 'keys' for a terminal",
            ));
        }
        let keys = arguments.list("keys").into_iter().enumerate();
        let key = |(index, name): (usize, String)| {
            let key: Result<Key, KeyError> = name.parse();
            key.map_err(|error| ApiError::value(format!("parameter 'keys[{index}]': {error}")))
        };
        Ok(Self {
            text,
            enter: is_enter_requested || !(has_keys || is_enter_refused),
            keys: keys.map(key).collect::<Result<_, _>>()?,
        })
    }

    /// The text, with an end of line where it is to be entered and has none.
    fn line_with_end(&self, end: char) -> String {
        let mut line = self.text.clone().unwrap_or_default();
        if self.enter && !line.ends_with(['\n', '\r']) {
            line.push(end);
        }
        line
    }

    /// The bytes for a pipe.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, ApiError> {
        if self.keys.is_empty() {
            return Ok(self.line_with_end('\n').into_bytes());
        }
        let failure = ApiError::value("parameter 'keys' is for a terminal, and it has none");
        Err(failure.with_hint("give text, or start it with exec and input \"tty\""))
    }

    /// The pieces for a terminal, where Enter ends a line.
    pub(super) fn pieces(&self) -> Vec<InputPiece> {
        let line = self.line_with_end('\r');
        let text = (!line.is_empty()).then_some(InputPiece::Text(line));
        let keys = self.keys.iter().cloned().map(InputPiece::Key);
        text.into_iter().chain(keys).collect()
    }
}
