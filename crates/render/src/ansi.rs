//! Splits text into what a terminal would do: characters to draw, and cursor movements.

use std::borrow::Cow;

use ostler_escape::{ControlSequence, EscapeEvent, EscapeParser};

/// The most cells of one movement; a redraw stays within a screen.
pub(super) const CELLS: usize = 4_096;

/// The 8-bit controls that begin or end a sequence: DCS, SOS, CSI, ST, OSC, PM, APC. Text that was
/// decoded from another encoding than UTF-8 may hold them.
const SEQUENCE_CONTROLS: [char; 7] = [
    '\u{90}', '\u{98}', '\u{9b}', '\u{9c}', '\u{9d}', '\u{9e}', '\u{9f}',
];
/// From an 8-bit control to the character that follows ESC in its 7-bit form.
const SEVEN_BIT: u8 = 0x40;

/// One action of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnsiToken {
    /// Draw a character.
    Put(char),
    /// Move to the first column.
    Return,
    /// Move one column back.
    Back,
    /// A control sequence: its final character and its first parameter, 0 where there is none.
    Control(char, usize),
}

/// Passes on the tokens of a text; colours, titles and whatever else draws nothing are skipped.
pub(super) fn for_each_token(text: &str, mut emit: impl FnMut(AnsiToken)) {
    let text = to_seven_bit(text);
    EscapeParser::default().advance(text.as_bytes(), |event, _| match event {
        EscapeEvent::Text(text) => {
            // Sequences begin and end with ASCII: they cut no character in two.
            let text = str::from_utf8(text).unwrap_or_default();
            text.chars().filter_map(char_token).for_each(&mut emit);
        }
        EscapeEvent::Control(byte) => {
            char_token(char::from(byte)).into_iter().for_each(&mut emit);
        }
        EscapeEvent::ControlSequence(sequence) => {
            sequence_token(&sequence).into_iter().for_each(&mut emit);
        }
        EscapeEvent::Escape {
            intermediates: [],
            last,
        } => match last {
            b'M' => emit(AnsiToken::Control('A', 0)),
            b'E' => emit(AnsiToken::Control('E', 0)),
            _ => {}
        },
        EscapeEvent::Escape { .. } | EscapeEvent::Osc { .. } => {}
    });
}

/// What a character outside of sequences does.
fn char_token(c: char) -> Option<AnsiToken> {
    match c {
        '\r' => Some(AnsiToken::Return),
        '\x08' => Some(AnsiToken::Back),
        '\t' => Some(AnsiToken::Put('\t')),
        c if c.is_control() => None,
        c => Some(AnsiToken::Put(c)),
    }
}

fn sequence_token(sequence: &ControlSequence<'_>) -> Option<AnsiToken> {
    let number = usize::from(sequence.first_param()).min(CELLS);
    let is_private = !sequence.intermediates().is_empty();
    (!is_private).then(|| AnsiToken::Control(char::from(sequence.last()), number))
}

/// The text with 8-bit controls that belong to sequences as their 7-bit forms.
fn to_seven_bit(text: &str) -> Cow<'_, str> {
    if !text.contains(SEQUENCE_CONTROLS) {
        return Cow::Borrowed(text);
    }
    let mut seven_bit = String::with_capacity(text.len());
    for c in text.chars() {
        let control = SEQUENCE_CONTROLS.contains(&c).then(|| u8::try_from(c).ok());
        match control.flatten() {
            Some(control) => seven_bit.extend(['\x1b', char::from(control - SEVEN_BIT)]),
            None => seven_bit.push(c),
        }
    }
    Cow::Owned(seven_bit)
}

/// Whether a terminal would show the text unchanged.
pub(super) fn is_plain(text: &str) -> bool {
    /// First byte of the characters U+0080 to U+00BF, control characters among them.
    const C1_LEAD: u8 = 0xc2;
    text.bytes()
        .all(|byte| (byte >= b' ' && byte != 0x7f && byte != C1_LEAD) || byte == b'\t')
        || (!text.contains(|c: char| c.is_control() && c != '\t'))
}
