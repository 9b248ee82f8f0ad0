//! Input: what is typed, and the bytes that a terminal sends for it.

use crate::key::{HeldModifiers, Key, KeyCode, control_byte};
use crate::modes::Modes;

/// One piece of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPiece {
    /// Text as it is; a newline in it is sent as a carriage return, as a keyboard would.
    Text(String),
    /// One key.
    Key(Key),
    /// Pasted text: bracketed where the program requested it (mode 2004).
    Paste(String),
    /// Bytes as they are.
    Raw(Vec<u8>),
}

const ESC: u8 = 0x1b;
const DEL: u8 = 0x7f;

/// The bytes that a terminal in these modes sends for the input: those of xterm, which is what
/// `TERM=xterm-256color` promises, without `modifyOtherKeys`.
#[must_use]
pub fn encode(pieces: &[InputPiece], modes: Modes) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            InputPiece::Text(text) => push_text(&mut out, text),
            InputPiece::Key(key) => push_key(&mut out, *key, modes),
            InputPiece::Paste(text) => push_paste(&mut out, text, modes),
            InputPiece::Raw(bytes) => out.extend_from_slice(bytes),
        }
    }
    out
}

/// Appends text; a newline, in every spelling, is the Enter key.
fn push_text(out: &mut Vec<u8>, text: &str) {
    let mut before = 0;
    for &byte in text.as_bytes() {
        match (byte, before) {
            (b'\n', b'\r') => {}
            (b'\n', _) => out.push(b'\r'),
            _ => out.push(byte),
        }
        before = byte;
    }
}

/// Appends pasted text without control characters other than line ends and tabs: an ESC in it
/// could end the paste early and type what follows.
fn push_paste(out: &mut Vec<u8>, text: &str, modes: Modes) {
    let clean: String = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'))
        .collect();
    if modes.bracketed_paste {
        out.extend_from_slice(b"\x1b[200~");
    }
    push_text(out, &clean);
    if modes.bracketed_paste {
        out.extend_from_slice(b"\x1b[201~");
    }
}

fn push_key(out: &mut Vec<u8>, key: Key, modes: Modes) {
    let modifiers = key.modifiers;
    if let Some(letter) = cursor_letter(key.code) {
        return push_letter_sequence(out, letter, modifiers, modes.application_cursor);
    }
    match key.code {
        KeyCode::F(number) => push_function(out, number, modifiers),
        KeyCode::Insert => push_number_sequence(out, 2, modifiers),
        KeyCode::Delete => push_number_sequence(out, 3, modifiers),
        KeyCode::PageUp => push_number_sequence(out, 5, modifiers),
        KeyCode::PageDown => push_number_sequence(out, 6, modifiers),
        KeyCode::Enter => push_byte(out, b'\r', modifiers),
        KeyCode::Escape => push_byte(out, ESC, modifiers),
        KeyCode::Tab if modifiers.shift => {
            push_alt(out, modifiers);
            out.extend_from_slice(b"\x1b[Z");
        }
        KeyCode::Tab => push_byte(out, b'\t', modifiers),
        KeyCode::Backspace => push_byte(out, if modifiers.ctrl { 0x08 } else { DEL }, modifiers),
        KeyCode::Char(c) => push_char(out, c, modifiers),
        KeyCode::Up
        | KeyCode::Down
        | KeyCode::Left
        | KeyCode::Right
        | KeyCode::Home
        | KeyCode::End => {}
    }
}

fn push_char(out: &mut Vec<u8>, c: char, modifiers: HeldModifiers) {
    push_alt(out, modifiers);
    match control_byte(c) {
        Some(byte) if modifiers.ctrl => out.push(byte),
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn push_byte(out: &mut Vec<u8>, byte: u8, modifiers: HeldModifiers) {
    push_alt(out, modifiers);
    out.push(byte);
}

fn push_alt(out: &mut Vec<u8>, modifiers: HeldModifiers) {
    if modifiers.alt {
        out.push(ESC);
    }
}

/// The final letter of the keys that DECCKM applies to.
fn cursor_letter(base: KeyCode) -> Option<u8> {
    match base {
        KeyCode::Up => Some(b'A'),
        KeyCode::Down => Some(b'B'),
        KeyCode::Right => Some(b'C'),
        KeyCode::Left => Some(b'D'),
        KeyCode::Home => Some(b'H'),
        KeyCode::End => Some(b'F'),
        KeyCode::Char(_)
        | KeyCode::Enter
        | KeyCode::Tab
        | KeyCode::Escape
        | KeyCode::Backspace
        | KeyCode::Delete
        | KeyCode::Insert
        | KeyCode::PageUp
        | KeyCode::PageDown
        | KeyCode::F(_) => None,
    }
}

/// The modifier parameter of xterm: 1, plus 1 for Shift, 2 for Alt, 4 for Ctrl.
fn modifier_number(modifiers: HeldModifiers) -> u8 {
    1 + u8::from(modifiers.shift) + 2 * u8::from(modifiers.alt) + 4 * u8::from(modifiers.ctrl)
}

/// Appends `CSI A`, `SS3 A` (`ss3`), or `CSI 1 ; m A` with modifiers.
fn push_letter_sequence(out: &mut Vec<u8>, letter: u8, modifiers: HeldModifiers, ss3: bool) {
    match modifier_number(modifiers) {
        1 if ss3 => out.extend_from_slice(&[ESC, b'O', letter]),
        1 => out.extend_from_slice(&[ESC, b'[', letter]),
        number => {
            out.extend_from_slice(format!("\x1b[1;{number}").as_bytes());
            out.push(letter);
        }
    }
}

/// Appends `CSI n ~`, or `CSI n ; m ~` with modifiers.
fn push_number_sequence(out: &mut Vec<u8>, code: u8, modifiers: HeldModifiers) {
    let sequence = match modifier_number(modifiers) {
        1 => format!("\x1b[{code}~"),
        number => format!("\x1b[{code};{number}~"),
    };
    out.extend_from_slice(sequence.as_bytes());
}

/// F1 to F4 have letters, F5 to F12 numbers; F13 to F20 are F1 to F8 with Shift, as the
/// terminfo entry of xterm-256color has them (`kf13=\E[1;2P`).
fn push_function(out: &mut Vec<u8>, number: u8, modifiers: HeldModifiers) {
    const NUMBERS: [u8; 8] = [15, 17, 18, 19, 20, 21, 23, 24];
    let (number, modifiers) = if number > 12 {
        (
            number - 12,
            HeldModifiers {
                shift: true,
                ..modifiers
            },
        )
    } else {
        (number, modifiers)
    };
    if number <= 4 {
        return push_letter_sequence(out, b'P' + number - 1, modifiers, true);
    }
    push_number_sequence(out, NUMBERS[usize::from(number - 5)], modifiers);
}

#[cfg(test)]
mod tests;
