//! What can be derived from terminal output without an emulator: whether it draws, and whether its
//! end is incomplete. Pure.

/// An escape sequence longer than this, in bytes, is not waited for.
const SEQUENCE_BYTES: usize = 256;
const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Whether the bytes position text on the screen, clear it, or switch to the alternate screen, as
/// full-screen programs do: then the screen shows the result, and lines do not.
pub(super) fn draws_screen(bytes: &[u8]) -> bool {
    let mut sequences = bytes.split(|&byte| byte == ESC).skip(1);
    sequences.any(|sequence| match sequence {
        [b'[', rest @ ..] => parse_control(rest).is_some_and(is_drawing),
        _ => false,
    })
}

fn is_drawing((parameters, last): (&[u8], u8)) -> bool {
    match (parameters, last) {
        (_, b'H' | b'f' | b'd' | b'r') | (b"2" | b"3", b'J') => true,
        (parameters, b'h' | b'l') => is_alternate_screen(parameters),
        _ => false,
    }
}

/// Parameters and final byte of a control sequence.
fn parse_control(rest: &[u8]) -> Option<(&[u8], u8)> {
    let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    Some((&rest[..end], rest[end]))
}

fn is_alternate_screen(parameters: &[u8]) -> bool {
    let modes = parameters.strip_prefix(b"?").unwrap_or_default();
    let mut modes = modes.split(|&byte| byte == b';');
    modes.any(|mode| matches!(mode, b"47" | b"1047" | b"1049"))
}

/// Number of bytes at the end that begin an incomplete character or control sequence.
pub(super) fn incomplete_tail(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(SEQUENCE_BYTES)..];
    match last_escape(tail) {
        Some(at) if is_open(&tail[at + 1..]) => {
            // The ESC of a string terminator (ESC \) is not the start of the sequence.
            let begin = last_escape(&tail[..at]);
            let inside = begin.filter(|begin| is_open(&tail[begin + 1..at]));
            tail.len() - inside.unwrap_or(at)
        }
        Some(_) | None => partial_character(tail),
    }
}

fn last_escape(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|&byte| byte == ESC)
}

/// Whether a sequence of ESC and these bytes is incomplete.
fn is_open(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [b'[', rest @ ..] => parse_control(rest).is_none(),
        [b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => !rest.contains(&BEL),
        [0x20..=0x2f, rest @ ..] => rest.iter().all(|byte| (0x20..=0x2f).contains(byte)),
        _ => false,
    }
}

fn partial_character(tail: &[u8]) -> usize {
    let longest = tail.len().min(3);
    let half = (1..=longest).find(|&length| tail[tail.len() - length] & 0xc0 == 0xc0);
    half.filter(|&length| {
        let cut = std::str::from_utf8(&tail[tail.len() - length..]);
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
