//! Device reports: the answers that a terminal sends by itself, as input of the program.

use crate::snapshot::CursorPosition;

/// The answer to DSR 5: no malfunction.
pub const STATUS: &[u8] = b"\x1b[0n";
/// The answer to DA1: a VT220 with colours, and no feature that a program could query further.
pub const ATTRIBUTES: &[u8] = b"\x1b[?62;22c";

/// The answer to DSR 6: the cursor's position, from 1.
#[must_use]
pub fn cursor_position(position: CursorPosition) -> Vec<u8> {
    let (row, col) = (u32::from(position.row) + 1, u32::from(position.col) + 1);
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
        assert_eq!(cursor_position(at), b"\x1b[1;80R");
    }
}
