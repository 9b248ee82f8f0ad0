//! What a terminal answers by itself, as if its person had typed it.

use crate::snapshot::CursorPosition;

/// DSR 5: all is well.
pub const STATUS: &[u8] = b"\x1b[0n";
/// DA1: a VT220 that knows colours, and nothing that a program could go on to ask about.
pub const ATTRIBUTES: &[u8] = b"\x1b[?62;22c";

/// DSR 6: where the cursor stands, counted from 1.
#[must_use]
pub fn cursor(at: CursorPosition) -> Vec<u8> {
    let (row, col) = (u32::from(at.row) + 1, u32::from(at.col) + 1);
    format!("\x1b[{row};{col}R").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_counted_from_one() {
        let at = CursorPosition {
            col: 79,
            row: 0,
            visible: false,
        };
        assert_eq!(cursor(at), b"\x1b[1;80R");
    }
}
