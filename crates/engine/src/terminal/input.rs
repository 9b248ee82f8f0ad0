//! Input to a terminal session.

use ostler_terminal::{InputPiece, Modes, encode};

use crate::lease::LeaseId;
use crate::search::SentInput;

/// The most bytes of one input.
pub const TYPING_BYTES: usize = 4 * 1024 * 1024;

/// Input to a terminal: one atomic write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalInput {
    /// The pieces, in order.
    pub pieces: Vec<InputPiece>,
    /// The caller's writer's lease; none where there is no lease.
    pub lease: Option<LeaseId>,
}

/// The result of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalInputResult {
    /// Bytes of the input.
    pub bytes: u64,
    /// Bytes the terminal accepted; fewer when the program does not read.
    pub accepted: u64,
    /// Identifies the input for [`WaitFor::PatternAfterInput`](crate::WaitFor::PatternAfterInput).
    pub input: SentInput,
}

/// Every mode at once.
const ALL_MODES: Modes = Modes {
    bracketed_paste: true,
    application_cursor: true,
    application_keypad: true,
    mouse: true,
};

/// The bytes of an input that does not depend on the terminal's modes; text never does.
pub(crate) fn mode_independent_bytes(pieces: &[InputPiece]) -> Option<Vec<u8>> {
    let bytes = encode(pieces, Modes::default());
    let simple = |piece: &InputPiece| matches!(piece, InputPiece::Text(_) | InputPiece::Raw(_));
    let is_plain = pieces.iter().all(simple) || encode(pieces, ALL_MODES) == bytes;
    is_plain.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_modes_change_asks_for_them() {
        let key = |name: &str| InputPiece::Key(name.parse().expect("a key"));
        let text = || InputPiece::Text("a\n".to_owned());
        assert_eq!(
            mode_independent_bytes(&[text(), key("enter")]),
            Some(b"a\r\r".to_vec())
        );
        assert_eq!(mode_independent_bytes(&[key("ctrl-c")]), Some(vec![3]));
        assert_eq!(mode_independent_bytes(&[text(), key("up")]), None);
        assert_eq!(
            mode_independent_bytes(&[InputPiece::Paste("a".to_owned())]),
            None
        );
    }
}
