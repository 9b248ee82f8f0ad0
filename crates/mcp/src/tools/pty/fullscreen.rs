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

/// Number of bytes at the beginning that belong to a control sequence that began in `before`, the
/// output before them. A line end ends any sequence, as where lines are rendered.
pub(super) fn sequence_rest(before: &[u8], bytes: &[u8]) -> usize {
    let mut parser = EscapeParser::default();
    parser.advance(&before[line_start(before)..], |_, _| {});
    if parser.is_in_text() {
        0
    } else {
        sequence_end(parser, bytes)
    }
}

/// Where a piece of output that is to end at `end` ends between characters and control sequences:
/// before the incomplete one there; after it, where the piece begins with it, or at the end of the
/// bytes.
pub(super) fn whole_end(bytes: &[u8], end: usize) -> usize {
    let line_start = line_start(&bytes[..end]);
    let mut parser = EscapeParser::new(line_start as u64);
    parser.advance(&bytes[line_start..end], |_, _| {});
    if !parser.is_in_text() {
        return match usize::try_from(parser.sequence_offset()) {
            Ok(0) | Err(_) => end + sequence_end(parser, &bytes[end..]),
            Ok(start) => start,
        };
    }
    match end - partial_character(&bytes[..end]) {
        0 => {
            let is_whole = |end: &usize| partial_character(&bytes[..*end]) == 0;
            (end..bytes.len()).find(is_whole).unwrap_or(bytes.len())
        }
        whole => whole,
    }
}

/// Number of bytes up to the end of the parser's incomplete sequence, or of its line.
fn sequence_end(mut parser: EscapeParser, bytes: &[u8]) -> usize {
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' {
            return at;
        }
        parser.advance(std::slice::from_ref(byte), |_, _| {});
        if parser.is_in_text() {
            return at + 1;
        }
    }
    bytes.len()
}

/// Where the last line begins.
fn line_start(bytes: &[u8]) -> usize {
    let line_end = bytes.iter().rposition(|&byte| byte == b'\n');
    line_end.map_or(0, |at| at + 1)
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

    #[test]
    fn a_piece_ends_between_sequences_and_characters() {
        for (text, end, expected) in [
            ("abc", 2, 2),
            ("ab\x1b[1;31mc", 4, 2),
            ("\x1b[1;31mc", 3, 7),
            ("\x1b]0;title\x07c", 1, 10),
            ("\x1b]0;title", 1, 9),
            ("\x1b]0;ti\nabc", 1, 6),
            ("\x1b]0;ti\nabc", 8, 8),
            ("a\u{20ac}b", 2, 1),
            ("\u{20ac}b", 1, 3),
            ("\u{20ac}", 1, 3),
            ("", 0, 0),
        ] {
            assert_eq!(whole_end(text.as_bytes(), end), expected, "{text:?}");
        }
    }

    #[test]
    fn the_rest_of_a_sequence_is_no_text() {
        assert_eq!(sequence_rest(b"a\x1b[1;", b"31mb"), 3);
        assert_eq!(sequence_rest(b"a\x1b]0;t", b"itle\x07b"), 5);
        assert_eq!(sequence_rest(b"a\x1b]0;t", b"itle"), 4);
        assert_eq!(sequence_rest(b"a\x1b]0;t\n", b"itle"), 0);
        assert_eq!(sequence_rest(b"a\x1b[1m", b"31mb"), 0);
        assert_eq!(sequence_rest(b"", b"31mb"), 0);
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
