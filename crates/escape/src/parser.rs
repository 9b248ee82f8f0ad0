//! Splits a stream into text and escape sequences.

use std::fmt;
use std::ops::Range;

use crate::control_sequence::ControlSequence;

/// The bytes of a sequence that are kept, without its introducer: of a longer operating system
/// command the beginning is reported, a longer control sequence is skipped.
pub const SEQUENCE_BYTES: usize = 8 * 1024;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// CAN and SUB cancel any sequence.
const CANCEL: [u8; 2] = [0x18, 0x1a];
/// `ESC [` and the like.
const INTRODUCER_BYTES: usize = 2;

/// A part of a stream.
#[derive(Debug, Clone, Copy)]
pub enum EscapeEvent<'a> {
    /// Bytes outside of sequences, as they were written: controls, 8-bit controls and bytes that
    /// are no text included. A run of text may come in several pieces.
    Text(&'a [u8]),
    /// A control that a terminal executes in the middle of a sequence, or CAN or SUB, which
    /// cancel one.
    Control(u8),
    /// A control sequence other than those of colours.
    ControlSequence(ControlSequence<'a>),
    /// Another sequence: the bytes between ESC and its final byte, and that.
    Escape {
        /// Of `ESC ( B`: `(`.
        intermediates: &'a [u8],
        /// Of `ESC ( B`: `B`.
        last: u8,
    },
    /// An operating system command (OSC) that was ended by BEL or ST.
    Osc {
        /// The bytes of the command, controls among them included.
        content: &'a [u8],
        /// Whether it was longer than [`SEQUENCE_BYTES`] and this is its beginning.
        is_cut: bool,
    },
}

/// Parses a stream that may be split at any byte. Keeps an incomplete sequence, at most
/// [`SEQUENCE_BYTES`].
///
/// Device control strings (DCS) and SOS, PM and APC strings are skipped up to their end, and so
/// are sequences that are no valid ones. So are those that only set colours and other attributes
/// of text (SGR), the most frequent ones by far, which no reader evaluates. Bytes from 0x80 on
/// begin and end nothing: they are parts of characters.
pub struct EscapeParser {
    grammar: vte::Parser<0>,
    /// The incomplete sequence, from its ESC on; empty in text. Strings that are skipped are
    /// not kept.
    sequence: Vec<u8>,
    is_cut: bool,
    /// The end of an operating system command's content, after an ESC that may belong to its ST.
    osc_end: Option<usize>,
    /// The offset of the incomplete sequence.
    from: u64,
    /// The offset after the last byte parsed.
    offset: u64,
}

impl EscapeParser {
    /// A parser in text, at an offset of a stream.
    #[must_use]
    pub fn new(offset: u64) -> Self {
        Self {
            grammar: vte::Parser::default(),
            sequence: Vec::new(),
            is_cut: false,
            osc_end: None,
            from: offset,
            offset,
        }
    }

    /// A parser that has parsed `sequence`, the incomplete sequence that began at offset `from`,
    /// and stands at `offset`. `is_cut` as [`Self::is_cut`] said.
    #[must_use]
    pub fn resume(sequence: &[u8], is_cut: bool, Range { start, end }: Range<u64>) -> Self {
        let mut parser = Self::new(start);
        parser.advance(sequence, |_, _| {});
        parser.is_cut |= is_cut && !parser.is_in_text();
        parser.offset = end;
        parser
    }

    /// Whether no sequence is incomplete.
    #[must_use]
    pub const fn is_in_text(&self) -> bool {
        self.sequence.is_empty()
    }

    /// The incomplete sequence from its ESC on, as far as it is kept.
    #[must_use]
    pub fn incomplete_sequence(&self) -> &[u8] {
        &self.sequence
    }

    /// Whether the incomplete sequence is longer than what is kept of it.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The offset of the incomplete sequence, or of the one before.
    #[must_use]
    pub const fn sequence_offset(&self) -> u64 {
        self.from
    }

    /// The offset after the last byte parsed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Drops an incomplete sequence: what follows is text.
    pub fn reset(&mut self) {
        if !self.is_in_text() {
            *self = Self::new(self.offset);
        }
    }

    /// Parses the next bytes. `emit` gets what ends in them, with its offsets in the stream; text
    /// as soon as it arrives.
    #[inline]
    pub fn advance(&mut self, mut bytes: &[u8], mut emit: impl FnMut(EscapeEvent<'_>, Range<u64>)) {
        while !bytes.is_empty() {
            if self.is_in_text() {
                let length = memchr::memchr(ESC, bytes).unwrap_or(bytes.len());
                let (text, rest) = bytes.split_at(length);
                if !text.is_empty() {
                    let from = self.offset;
                    self.offset += text.len() as u64;
                    emit(EscapeEvent::Text(text), from..self.offset);
                }
                bytes = rest;
                if let Some(length) = whole_control_sequence(bytes) {
                    let (sequence, rest) = bytes.split_at(length);
                    self.whole_sequence(sequence, &mut emit);
                    bytes = rest;
                    continue;
                }
            }
            if let Some((byte, rest)) = bytes.split_first() {
                self.step(*byte, &mut emit);
                bytes = rest;
            }
        }
    }

    /// Parses a control sequence from its ESC to its final byte.
    fn whole_sequence(
        &mut self,
        sequence: &[u8],
        emit: &mut impl FnMut(EscapeEvent<'_>, Range<u64>),
    ) {
        self.from = self.offset;
        self.offset += sequence.len() as u64;
        if is_style(sequence) {
            return;
        }
        let mut dispatch = Dispatch {
            emit,
            range: self.from..self.offset,
            sequence,
            is_cut: false,
            osc_end: &mut self.osc_end,
            is_complete: false,
        };
        self.grammar.advance(&mut dispatch, sequence);
    }

    /// Parses a byte of a sequence.
    fn step(&mut self, byte: u8, emit: &mut impl FnMut(EscapeEvent<'_>, Range<u64>)) {
        if self.osc_end.is_some() && byte != b'\\' {
            // The ESC before broke the command off and begins another sequence.
            self.begin(self.offset.saturating_sub(1));
            self.sequence.push(ESC);
        }
        if byte == ESC && !self.is_in_osc() {
            self.begin(self.offset);
        }
        self.keep(byte);
        self.offset += 1;
        let mut dispatch = Dispatch {
            emit,
            range: self.from..self.offset,
            sequence: &self.sequence,
            is_cut: self.is_cut,
            osc_end: &mut self.osc_end,
            is_complete: false,
        };
        if byte.is_ascii() {
            self.grammar.advance(&mut dispatch, &[byte]);
        }
        if dispatch.is_complete || self.ends_control_sequence(byte) {
            self.begin(self.from);
        }
    }

    /// Whether a control sequence ends with this byte. The grammar does not report the end of
    /// those that are no valid ones.
    fn ends_control_sequence(&self, byte: u8) -> bool {
        matches!(byte, b'@'..=b'~')
            && self.sequence.len() > INTRODUCER_BYTES
            && self.sequence.starts_with(b"\x1b[")
    }

    fn is_in_osc(&self) -> bool {
        self.sequence.starts_with(b"\x1b]")
    }

    fn begin(&mut self, from: u64) {
        self.sequence.clear();
        self.is_cut = false;
        self.osc_end = None;
        self.from = from;
    }

    fn keep(&mut self, byte: u8) {
        let is_skipped = matches!(self.sequence.get(1), Some(b'P' | b'X' | b'^' | b'_'));
        // Elsewhere than in a command, controls are executed and are no part of the sequence.
        let is_part = matches!(byte, ESC | b' '..=b'~') || self.is_in_osc();
        if is_skipped || !is_part {
            return;
        }
        let has_room = self.sequence.len() < INTRODUCER_BYTES + SEQUENCE_BYTES;
        let ends_osc = matches!(byte, BEL | ESC) && self.is_in_osc();
        if has_room || ends_osc {
            self.sequence.push(byte);
        } else {
            self.is_cut |= self.osc_end.is_none();
        }
    }
}

/// The length of the control sequence that the bytes begin with, where all of it is there and
/// holds nothing else: most sequences are such ones.
fn whole_control_sequence(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let mut rest = rest.iter().take(SEQUENCE_BYTES);
    let length = rest.position(|byte| !matches!(byte, b' '..=b'?'))?;
    let end = INTRODUCER_BYTES + length;
    matches!(bytes[end], b'@'..=b'~').then_some(end + 1)
}

/// Whether a control sequence sets colours and other attributes of text (SGR).
fn is_style(sequence: &[u8]) -> bool {
    match sequence {
        [_, _, b'<'..=b'?', .., b'm'] | [.., b' '..=b'/', b'm'] => false,
        [.., last] => *last == b'm',
        [] => false,
    }
}

impl Default for EscapeParser {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Clone for EscapeParser {
    fn clone(&self) -> Self {
        Self::resume(&self.sequence, self.is_cut, self.from..self.offset)
    }
}

impl fmt::Debug for EscapeParser {
    // A sequence may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EscapeParser")
            .field("sequence_bytes", &self.sequence.len())
            .field("is_cut", &self.is_cut)
            .field("from", &self.from)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

/// Passes on what the grammar finds at one byte.
struct Dispatch<'a, F> {
    emit: &'a mut F,
    range: Range<u64>,
    sequence: &'a [u8],
    is_cut: bool,
    osc_end: &'a mut Option<usize>,
    is_complete: bool,
}

impl<F: FnMut(EscapeEvent<'_>, Range<u64>)> Dispatch<'_, F> {
    fn emit(&mut self, event: EscapeEvent<'_>) {
        (self.emit)(event, self.range.clone());
    }

    /// Reports an operating system command whose content ends there.
    fn complete_osc(&mut self, end: usize) {
        let content = self.sequence.get(INTRODUCER_BYTES..end).unwrap_or_default();
        self.is_complete = true;
        self.emit(EscapeEvent::Osc {
            content,
            is_cut: self.is_cut,
        });
    }
}

impl<F: FnMut(EscapeEvent<'_>, Range<u64>)> vte::Perform for Dispatch<'_, F> {
    fn execute(&mut self, byte: u8) {
        self.is_complete |= CANCEL.contains(&byte);
        self.emit(EscapeEvent::Control(byte));
    }

    fn csi_dispatch(
        &mut self,
        params: &vte::Params,
        intermediates: &[u8],
        ignore: bool,
        last: char,
    ) {
        self.is_complete = true;
        let is_skipped = ignore || self.is_cut || is_style(self.sequence);
        if let (Ok(last), false) = (u8::try_from(last), is_skipped) {
            let sequence = ControlSequence::new(params, intermediates, last);
            self.emit(EscapeEvent::ControlSequence(sequence));
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], ignore: bool, last: u8) {
        self.is_complete = true;
        match *self.osc_end {
            Some(end) => self.complete_osc(end),
            None if !ignore => self.emit(EscapeEvent::Escape {
                intermediates,
                last,
            }),
            None => {}
        }
    }

    fn osc_dispatch(&mut self, _params: &[&[u8]], bell_terminated: bool) {
        // The last byte is the BEL or the ESC.
        let end = self.sequence.len() - 1;
        if bell_terminated {
            self.complete_osc(end);
        } else {
            *self.osc_end = Some(end);
        }
    }
}

#[cfg(test)]
mod tests;
