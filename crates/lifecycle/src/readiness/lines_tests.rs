use proptest::prelude::*;

use super::*;

fn text(piece: LinePiece<'_>) -> String {
    match piece {
        LinePiece::Beginning(text) | LinePiece::Later(text) => text.to_owned(),
    }
}
use crate::readiness::scan_schedule::ms;

fn lines(pieces: &[&[u8]]) -> Vec<String> {
    let mut lines = LineSplitter::default();
    let mut seen = Vec::new();
    for piece in pieces {
        lines.push(piece, Duration::ZERO, |line| seen.push(text(line)));
    }
    lines.flush_partial(PARTIAL, |line| seen.push(format!("{}…", text(line))));
    seen
}

#[test]
fn what_a_person_sees() {
    for (raw, seen) in [
        ("one\ntwo\r\nthree", &["one", "two", "three…"][..]),
        ("\n\r\n  \n", &[]),
        (
            "\x1b[32m➜\x1b[39m  \x1b[1mLocal\x1b[22m:   http://localhost:\x1b[1m5173\x1b[22m/\n",
            &["➜  Local:   http://localhost:5173/"],
        ),
        ("\x1b]0;vite\x07ready\n", &["ready"]),
        ("\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\\n", &["link"]),
        ("\x1b]never ended\nready\n", &["ready"]),
        ("\x1bP+q544e\x1b\\ok\n", &["ok"]),
        ("\x1b(B\x1b[m\x1b=login\n", &["login"]),
        ("10%\r20%\rdone\n", &["10%", "20%", "done"]),
        ("- wait\x1b[2K\x1b[1Gready\n", &["- wait", "ready"]),
        ("\x1b[2J\x1b[3J\x1b[Hready\x1b[K\n", &["ready"]),
        ("Local:\x1b[20Ghttp://a:1\n", &["Local: http://a:1"]),
        ("a\tb\x08\x00c\x7f\n", &["a bc"]),
        ("\u{9b}x\u{85}y\n", &["xy"]),
        ("bad \u{fffd}\n", &["bad \u{fffd}"]),
    ] {
        assert_eq!(lines(&[raw.as_bytes()]), seen, "{raw:?}");
    }
}

#[test]
fn an_unfinished_line_is_reported_once_and_again_when_it_grows() {
    let mut lines = LineSplitter::default();
    let mut seen = Vec::new();
    lines.push(b"Local: http://x", ms(0), |line| seen.push(text(line)));
    assert_eq!(lines.due(), Some(PARTIAL));
    lines.flush_partial(ms(199), |line| seen.push(text(line)));
    assert!(seen.is_empty());
    lines.flush_partial(ms(200), |line| seen.push(text(line)));
    lines.flush_partial(ms(900), |line| seen.push(text(line)));
    assert_eq!(lines.due(), None);
    lines.push(b":3000\n", ms(1_000), |line| seen.push(text(line)));
    lines.push(b"prompt> ", ms(1_000), |line| seen.push(text(line)));
    lines.flush_partial(ms(1_200), |line| seen.push(text(line)));
    lines.push(b"\n", ms(1_300), |line| seen.push(text(line)));
    assert_eq!(seen, ["Local: http://x", "Local: http://x:3000", "prompt>"]);
}

#[test]
fn a_long_line_comes_in_pieces_that_overlap() {
    for extra in [0, 1, 9_000] {
        let mut raw = vec![b'x'; LINE_BYTES + extra];
        raw.extend_from_slice(b" ready\nnext\n");
        let seen = lines(&[&raw]);
        assert_eq!(seen[0].len(), LINE_BYTES);
        assert!(seen.iter().all(|it| it.len() <= LINE_BYTES));
        assert_eq!(seen[seen.len() - 1], "next");
        assert!(seen[seen.len() - 2].ends_with("xxx ready"));
        let mut by_byte = LineSplitter::default();
        let mut pieces = Vec::new();
        for byte in raw.chunks(1) {
            by_byte.push(byte, Duration::ZERO, |piece| pieces.push(text(piece)));
        }
        assert_eq!(pieces, seen);
    }
    let below = lines(&[&[b'x'; LINE_BYTES - 1], b"\n"]);
    assert_eq!((below.len(), below[0].len()), (1, LINE_BYTES - 1));
}

#[test]
fn pieces_end_between_characters() {
    let raw = format!("x{}\n", "é".repeat(LINE_BYTES * 2));
    for piece in lines(&[raw.as_bytes()]) {
        assert!(!piece.contains('\u{fffd}'), "{piece}");
    }
}

proptest! {
    #[test]
    fn pieces_may_end_anywhere(
        parts in prop::collection::vec(prop_oneof![
            Just("\x1b[1;32m"), Just("\x1b]0;t\x07"), Just("\x1b]8;;u\x1b\\"), Just("\x1b(B"),
            Just("é➜"), Just("text "), Just("\r"), Just("\n"), Just("\x1b[2K\x1b[1G"), Just("\x1b"),
        ], 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let whole = parts.concat().into_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
        at.push(0);
        at.push(whole.len());
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
        prop_assert_eq!(lines(&pieces), lines(&[&whole]));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        for line in lines(&[&bytes]) {
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}
