//! What can be derived from terminal output without an emulator: whether it draws, and whether its
//! end is incomplete. Pure.

use ostler_escape::{ControlSequence, EscapeEvent, EscapeParser};

/// An escape sequence longer than this, in bytes, is not waited for.
const SEQUENCE_BYTES: u64 = 256;

/// Whether the bytes position text on the screen, clear it, or switch to the alternate screen, as
/// full-screen programs do: then the screen shows the result, and lines do not.
pub(super) fn draws_screen(bytes: &[u8]) -> bool {
    let mut draws = false;
    EscapeParser::default().advance(bytes, |event, _| {
        if let EscapeEvent::ControlSequence(sequence) = event {
            draws |= is_drawing(&sequence);
        }
    });
    draws
}

fn is_drawing(sequence: &ControlSequence<'_>) -> bool {
    match (sequence.intermediates(), sequence.last()) {
        (b"", b'H' | b'f' | b'd' | b'r') => true,
        (b"", b'J') => matches!(sequence.first_param(), 2 | 3),
        (b"?", b'h' | b'l') => {
            let mut modes = sequence.params();
            modes.any(|mode| matches!(mode, 47 | 1047 | 1049))
        }
        _ => false,
    }
}

/// Number of bytes at the end that begin an incomplete character or control sequence.
pub(super) fn incomplete_tail(bytes: &[u8]) -> usize {
    let mut parser = EscapeParser::default();
    parser.advance(bytes, |_, _| {});
    if parser.is_in_text() {
        return partial_character(bytes);
    }
    let length = parser.offset() - parser.sequence_offset();
    let is_awaited = length <= SEQUENCE_BYTES;
    if is_awaited {
        usize::try_from(length).unwrap_or(0)
    } else {
        0
    }
}

fn partial_character(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    let half = (1..=longest).find(|&length| bytes[bytes.len() - length] & 0xc0 == 0xc0);
    half.filter(|&length| {
        let cut = std::str::from_utf8(&bytes[bytes.len() - length..]);
        cut.is_err_and(|error| error.error_len().is_none())
    })
    .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_do_not_paint_and_screens_do() {
        for plain in [
            "",
            "a\r\nb",
            "\x1b[31mred\x1b[0m",
            "50%\r\x1b[K100%",
            "\x1b[?2004h$ ",
            "\x1b[?25l\x1b[2A\x1b[J",
            "\x1b]0;t\x07",
            "\x1b",
            "\x1b[",
            "\x1b[1;2",
        ] {
            assert!(!draws_screen(plain.as_bytes()), "{plain:?}");
        }
        for drawn in [
            "\x1b[H",
            "a\x1b[12;3Hb",
            "\x1b[2J",
            "\x1b[?1049h",
            "\x1b[?1;47l",
            "\x1b[1;24r",
        ] {
            assert!(draws_screen(drawn.as_bytes()), "{drawn:?}");
        }
    }

    #[test]
    fn what_is_on_its_way_is_left() {
        for (bytes, left) in [
            (&b"abc"[..], 0),
            (b"", 0),
            (b"a\x1b", 1),
            (b"a\x1b[", 2),
            (b"a\x1b[1;3", 5),
            (b"a\x1b[1;31m", 0),
            (b"a\x1b]0;ti", 6),
            (b"a\x1b]0;ti\x07", 0),
            (b"a\x1b]0;ti\x1b", 7),
            (b"a\x1b]0;ti\x1b\\", 0),
            (b"a\x1b(", 2),
            (b"a\x1b(B", 0),
            ("a\u{20ac}".as_bytes(), 0),
            (&"a\u{20ac}".as_bytes()[..3], 2),
            (&"a\u{1f600}".as_bytes()[..4], 3),
            (b"a\x80", 0),
            (b"a\xff", 0),
        ] {
            assert_eq!(incomplete_tail(bytes), left, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_rest_is_whole(text in "[ -~\u{e9}\u{4f60}\x1b\x07\\[\\]m]{0,40}") {
            for cut in 0..=text.len() {
                let bytes = &text.as_bytes()[..cut];
                let left = incomplete_tail(bytes);
                prop_assert!(left <= bytes.len());
                let _drawn = draws_screen(bytes);
            }
        }
    }
}
