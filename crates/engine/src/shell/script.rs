//! Encodes a script as the bytes that are typed.

use ostler_model::ShellKind;
use ostler_model::spec::SCRIPT_BYTES;
use ostler_terminal::{InputPiece, Modes, encode};

use crate::admission::arguments::{self, ArgumentError};

/// Makes a line editor insert the next character literally (`quoted-insert`).
const QUOTE: u8 = 0x16;
/// The key that submits a line.
const ENTER: u8 = b'\r';
/// The key that discards the text at a prompt.
pub(super) const INTERRUPT: u8 = 0x03;

/// As [`clear_keys`] for fish, for texts of up to 16 lines.
const FISH_CLEAR_KEYS: &[u8] = b"\x1b\x1b\x0b\
    \x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\
    \x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f\x15\x7f";

/// The keys that cancel a search, a menu or an unfinished key sequence of a line editor and then
/// remove the text on both sides of the cursor. None of them prints a new prompt or changes `$?`.
pub(super) const fn clear_keys(kind: ShellKind) -> &'static [u8] {
    match kind {
        // abort, kill-line, unix-line-discard; the last one also removes the others where they are
        // no keys: in the insert mode of vi, and without a line editor
        ShellKind::Bash => b"\x07\x0b\x15",
        // cancel (the history pager and its search), kill-line, and for each line of the text
        // backward-kill-line and backward-delete-char
        ShellKind::Fish => FISH_CLEAR_KEYS,
        // kill-whole-line, twice: an escape typed before consumes the first one
        ShellKind::Zsh => b"\x15\x15",
    }
}

/// The keys that end an unfinished paste. An interrupt, where it discards the text, too.
pub(super) const fn end_paste_keys(kind: ShellKind) -> &'static [u8] {
    match kind {
        // The terminal sends a signal for it, also within a paste.
        ShellKind::Bash | ShellKind::Zsh => &[INTERRUPT],
        // To fish it is a key, and part of the paste.
        ShellKind::Fish => b"\x1b[201~",
    }
}

/// A script, encoded for typing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedScript {
    pub(super) bytes: Vec<u8>,
    /// Whether the shell reads it as one piece, and shows no prompt before all of it has run.
    pub(super) one_piece: bool,
}

/// The script with normalized newlines, if a terminal can carry it.
///
/// # Errors
/// [`ArgumentError`] when it is too long or contains a character that a terminal treats as a key.
pub(super) fn check(script: &str) -> Result<String, ArgumentError> {
    arguments::check_length("the script", script.len(), SCRIPT_BYTES)?;
    let script = script.replace("\r\n", "\n");
    let is_key = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if script.contains(is_key) {
        return Err(ArgumentError::Invalid {
            what: "the script".to_owned(),
            problem: "it has a control character, which a terminal takes for a key; \
                      newlines and tabs are allowed",
        });
    }
    Ok(script)
}

/// The bytes to type at the prompt of a shell in these modes: one bracketed paste where it is
/// enabled; else line by line, with each tab quoted so that nothing is completed.
pub(super) fn encode_script(kind: ShellKind, script: &str, modes: Modes) -> TypedScript {
    let script = script.strip_suffix('\n').unwrap_or(script);
    let is_multiline = script.contains('\n');
    let mut bytes = if modes.bracketed_paste {
        paste_bytes(kind, script, modes)
    } else {
        encode(&[InputPiece::Text(quote_tabs(kind, script))], modes)
    };
    bytes.push(ENTER);
    TypedScript {
        bytes,
        one_piece: modes.bracketed_paste || !is_multiline,
    }
}

/// In fish a carriage return is a key even within a paste, and each one redraws everything: 500
/// lines take 38 s, and 4 s with newlines.
fn paste_bytes(kind: ShellKind, script: &str, modes: Modes) -> Vec<u8> {
    let mut bytes = encode(&[InputPiece::Paste(script.to_owned())], modes);
    if kind == ShellKind::Fish {
        for byte in bytes.iter_mut().filter(|byte| **byte == b'\r') {
            *byte = b'\n';
        }
    }
    bytes
}

fn quote_tabs(kind: ShellKind, script: &str) -> String {
    match kind {
        ShellKind::Bash | ShellKind::Zsh => {
            let tab: String = [char::from(QUOTE), '\t'].into_iter().collect();
            script.replace('\t', &tab)
        }
        // Fish has no such key, and supports bracketed paste.
        ShellKind::Fish => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASTES: Modes = Modes {
        bracketed_paste: true,
        application_cursor: false,
        application_keypad: false,
        mouse: false,
    };

    fn typed(script: &str, modes: Modes) -> (String, bool) {
        let keys = encode_script(ShellKind::Bash, script, modes);
        (String::from_utf8(keys.bytes).expect("text"), keys.one_piece)
    }

    #[test]
    fn a_script_is_pasted_where_that_can_be() {
        let (bytes, whole) = typed("a\n\tb\n", PASTES);
        assert!(bytes.starts_with("\x1b[200~a") && bytes.ends_with("\tb\x1b[201~\r"));
        assert!(whole);
    }

    #[test]
    fn a_script_is_typed_where_it_cannot() {
        let plain = Modes::default();
        assert_eq!(typed("a\n\tb", plain), ("a\r\u{16}\tb\r".to_owned(), false));
        assert_eq!(typed("a\n", plain), ("a\r".to_owned(), true));
    }

    #[test]
    fn keys_in_a_script_are_refused() {
        assert_eq!(check("a\r\nb\tc").as_deref(), Ok("a\nb\tc"));
        for script in ["\x03", "a\x1b[A", "a\rb", "\x7f", "\u{9b}31m"] {
            assert!(check(script).is_err(), "{script:?}");
        }
        assert!(check(&"x".repeat(SCRIPT_BYTES)).is_ok());
        assert!(check(&"x".repeat(SCRIPT_BYTES + 1)).is_err());
    }
}
