use proptest::prelude::*;

use super::*;

/// What a parser reports, with text put together.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>, Range<u64>),
    Control(u8),
    Csi(Vec<u16>, Vec<u8>, char, Range<u64>),
    Escape(Vec<u8>, char),
    Osc(Vec<u8>, bool, Range<u64>),
}

/// The parts of a stream that comes in these pieces, with the state stored between them.
fn parts(pieces: &[&[u8]]) -> Vec<Part> {
    let mut parser = EscapeParser::new(0);
    let mut parts = Vec::new();
    for piece in pieces {
        parser.advance(piece, |event, range| push(&mut parts, event, range));
        parser = parser.clone();
    }
    parts
}

fn push(parts: &mut Vec<Part>, event: EscapeEvent<'_>, range: Range<u64>) {
    let part = match event {
        EscapeEvent::Text(text) => {
            if let Some(Part::Text(before, place)) = parts.last_mut()
                && place.end == range.start
            {
                before.extend_from_slice(text);
                place.end = range.end;
                return;
            }
            Part::Text(text.to_vec(), range)
        }
        EscapeEvent::Control(byte) => Part::Control(byte),
        EscapeEvent::ControlSequence(sequence) => Part::Csi(
            sequence.params().collect(),
            sequence.intermediates().to_vec(),
            char::from(sequence.last()),
            range,
        ),
        EscapeEvent::Escape {
            intermediates,
            last,
        } => Part::Escape(intermediates.to_vec(), char::from(last)),
        EscapeEvent::Osc { content, is_cut } => Part::Osc(content.to_vec(), is_cut, range),
    };
    parts.push(part);
}

fn text(text: &str, from: u64) -> Part {
    let to = from + text.len() as u64;
    Part::Text(text.as_bytes().to_vec(), from..to)
}

fn csi(params: &[u16], intermediates: &str, last: char, range: Range<u64>) -> Part {
    Part::Csi(
        params.to_vec(),
        intermediates.as_bytes().to_vec(),
        last,
        range,
    )
}

fn osc(content: &[u8], range: Range<u64>) -> Part {
    Part::Osc(content.to_vec(), false, range)
}

#[test]
fn text_and_sequences_have_their_offsets() {
    let stream = b"a\xffb\n\x1b[1;31Hred\x1b[?25l\x1b(B\x1b=\x1b[2 q\x1b[K";
    assert_eq!(
        parts(&[stream]),
        [
            Part::Text(b"a\xffb\n".to_vec(), 0..4),
            csi(&[1, 31], "", 'H', 4..11),
            text("red", 11),
            csi(&[25], "?", 'l', 14..20),
            Part::Escape(b"(".to_vec(), 'B'),
            Part::Escape(Vec::new(), '='),
            csi(&[2], " ", 'q', 25..30),
            csi(&[0], "", 'K', 30..33),
        ]
    );
}

#[test]
fn commands_end_with_bel_or_st() {
    assert_eq!(
        parts(&[b"\x1b]2;a;b\x07\x1b]7;x\xc3\x9c\x1b\\."]),
        [
            osc(b"2;a;b", 0..8),
            osc(b"7;x\xc3\x9c", 8..17),
            text(".", 17)
        ]
    );
}

#[test]
fn commands_that_are_broken_off_are_none() {
    for (stream, rest) in [
        (
            &b"\x1b]2;x\x18off"[..],
            vec![Part::Control(0x18), text("off", 6)],
        ),
        (
            b"\x1b]2;x\x1aoff",
            vec![Part::Control(0x1a), text("off", 6)],
        ),
        (
            b"\x1b]2;x\x1b[1Aoff",
            vec![csi(&[1], "", 'A', 5..9), text("off", 9)],
        ),
        (b"\x1b]2;x\x1b\x1b]2;y\x07", vec![osc(b"2;y", 6..12)]),
        (
            b"\x1b]2;x\x1b\x18off",
            vec![Part::Control(0x18), text("off", 7)],
        ),
    ] {
        assert_eq!(parts(&[stream]), rest, "{stream:?}");
    }
}

#[test]
fn other_strings_are_skipped() {
    for string in [
        &b"\x1bP1$r0m\x1b\\"[..],
        b"\x1bPtmux;\x07]133;A\x1b\\",
        "\x1bPA\u{dc}\u{9c}\x1b\\".as_bytes(),
        b"\x1bX[31m\x1b\\",
        b"\x1b^x\x1b\\",
        b"\x1b_x\x07\x1b\\",
    ] {
        assert_eq!(parts(&[string]), [Part::Escape(Vec::new(), '\\')]);
    }
}

#[test]
fn controls_are_executed_within_a_sequence() {
    assert_eq!(
        parts(&[b"\x1b[3\n1Cred\x1b\x08[A"]),
        [
            Part::Control(b'\n'),
            csi(&[31], "", 'C', 0..6),
            text("red", 6),
            Part::Control(0x08),
            csi(&[0], "", 'A', 9..13),
        ]
    );
    assert_eq!(
        parts(&[b"\x1b[3\x18m"]),
        [Part::Control(0x18), text("m", 4)]
    );
}

#[test]
fn invalid_sequences_end_where_a_terminal_ends_them() {
    let many = format!("\x1b[{}Hx", "1;".repeat(40));
    let long = format!("\x1b[{}Ax", "1".repeat(SEQUENCE_BYTES + 1));
    for stream in ["\x1b[1?25hx", "\x1b[ 5Ax", "\x1b[1!!!px", &many, &long] {
        let at = stream.len() as u64 - 1;
        assert_eq!(parts(&[stream.as_bytes()]), [text("x", at)], "{stream:?}");
    }
}

#[test]
fn colours_are_skipped_and_nothing_else_that_ends_like_them() {
    assert_eq!(
        parts(&[b"\x1b[m\x1b[1;38:5:208ma\x1b[>4;2m\x1b[?4m\x1b[1%m"]),
        [
            text("a", 16),
            csi(&[4, 2], ">", 'm', 17..24),
            csi(&[4], "?", 'm', 24..29),
            csi(&[1], "%", 'm', 29..34),
        ]
    );
}

#[test]
fn long_numbers_are_bounded() {
    let stream = b"\x1b[99999999999999999999;38:2:1H";
    let end = stream.len() as u64;
    assert_eq!(parts(&[stream]), [csi(&[u16::MAX, 0], "", 'H', 0..end)]);
}

#[test]
fn long_commands_are_cut_in_bounded_memory() {
    for (length, is_cut) in [
        (SEQUENCE_BYTES, false),
        (SEQUENCE_BYTES + 1, true),
        (1 << 20, true),
    ] {
        let stream = [b"\x1b]", vec![b'x'; length].as_slice(), b"\x1b\\"].concat();
        let mut parser = EscapeParser::new(0);
        let mut found = Vec::new();
        for piece in stream.chunks(1000) {
            parser.advance(piece, |event, range| push(&mut found, event, range));
            assert!(parser.sequence.len() <= INTRODUCER_BYTES + SEQUENCE_BYTES + 1);
        }
        let content = vec![b'x'; length.min(SEQUENCE_BYTES)];
        assert_eq!(found, [Part::Osc(content, is_cut, 0..stream.len() as u64)]);
    }
    let mut parser = EscapeParser::new(0);
    parser.advance(b"\x1b[", |_, _| {});
    parser.advance(&[0x07; 100_000], |_, _| {});
    assert!(parser.sequence.len() <= INTRODUCER_BYTES + SEQUENCE_BYTES);
}

#[test]
fn a_reset_forgets_the_sequence() {
    let mut parser = EscapeParser::new(7);
    parser.advance(b"\x1b]0;never ended", |_, _| {});
    assert!(!parser.is_in_text());
    parser.reset();
    let mut found = Vec::new();
    parser.advance(b"31m", |event, range| push(&mut found, event, range));
    assert_eq!(found, [text("31m", 22)]);
}

#[test]
fn what_is_kept_is_not_shown() {
    let mut parser = EscapeParser::new(0);
    parser.advance(b"\x1b]133;A;ostler=s3cret", |_, _| {});
    assert!(!format!("{parser:?}").contains("s3cret"));
}

/// Streams rich in sequences and in their parts.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[ -~]{0,6}".prop_map(String::into_bytes),
        Just(vec![ESC]),
        Just(b"\x1b[".to_vec()),
        Just(b"\x1b]2;".to_vec()),
        Just(b"\x1b\\".to_vec()),
        Just(b"\x1bP".to_vec()),
        Just(b"\x1b_".to_vec()),
        Just(b"\x1b(".to_vec()),
        "[0-9;:?> !]{0,5}[@-~]".prop_map(String::into_bytes),
        "[\x07\x08\n\r\x18\x1a\x7f]".prop_map(String::into_bytes),
        "[\u{80}-\u{9f}\u{c0}-\u{ff}\u{4f60}]".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn pieces_may_end_anywhere(
        stream in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        at.push(0);
        at.push(stream.len());
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let whole = parts(&[&stream]);
        prop_assert_eq!(parts(&pieces), whole.clone());
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(parts(&bytes), whole);
    }

    /// The grammar stands in text whenever the parser does: it then prints what it is given.
    #[test]
    fn the_grammar_and_the_parser_agree_on_text(stream in streams()) {
        let mut parser = EscapeParser::new(0);
        for byte in &stream {
            parser.advance(&[*byte], |_, _| {});
            let mut printed = PrintCount(0);
            let mut grammar = parser.clone().grammar;
            grammar.advance(&mut printed, b"\x7f");
            prop_assert_eq!(printed.0 == 1, parser.is_in_text());
        }
    }
}

/// Counts printed characters.
struct PrintCount(usize);

impl vte::Perform for PrintCount {
    fn print(&mut self, _c: char) {
        self.0 += 1;
    }
}
