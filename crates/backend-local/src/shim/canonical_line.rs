//! How much of an input fits into a terminal's unfinished line.
//!
//! In canonical mode (`ICANON`, termios(3)) the kernel keeps an unfinished line in a buffer of
//! 4,096 bytes and silently drops what exceeds it: no more may be written there. Where more follows,
//! the end-of-file character (`VEOF`) hands the line to the program as far as it goes. A terminal in
//! raw mode blocks the writer instead, and so do complete lines that were not read.

use rustix::termios::{InputModes, LocalModes, SpecialCodeIndex, Termios};

/// Bytes of an unfinished line that the kernel keeps (`N_TTY_BUF_SIZE` less the line terminator).
pub(crate) const LINE_BYTES: usize = 4_095;

/// The unfinished line of a terminal, as far as it was written by this shim. Never shorter than the
/// kernel's: where erasing a character removes several bytes, one is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CanonicalLine {
    bytes: usize,
    /// The next character is literal (`VLNEXT`).
    literal_next: bool,
}

/// What can be written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinePart {
    /// How many bytes of the input.
    pub(crate) len: usize,
    /// The character to write after them, which makes room for the rest.
    pub(crate) submit: Option<u8>,
}

/// What one byte does to an unfinished line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteEffect {
    /// It is appended and takes this many bytes.
    Grows(usize),
    /// It ends or discards the line.
    Ends,
    /// It erases the last character.
    Erases,
    /// It makes the next character literal.
    Quotes,
    /// It leaves the line unchanged.
    Nothing,
}

impl CanonicalLine {
    /// How many of `bytes` may be written now; all of them in raw mode. A byte that ends the line
    /// may always be written.
    fn capacity(self, modes: &Termios, bytes: &[u8]) -> usize {
        if !is_canonical(modes) {
            return bytes.len();
        }
        let mut line = self;
        bytes
            .iter()
            .position(|&byte| !line.push(modes, byte))
            .unwrap_or(bytes.len())
    }

    /// What of `bytes` to write next. Nothing can be written to a full line that cannot be submitted:
    /// the terminal has no such character, or would take it literally.
    pub(crate) fn next_part(self, modes: &Termios, bytes: &[u8]) -> LinePart {
        let len = self.capacity(modes, bytes);
        let mut line = self;
        line.record_written(modes, &bytes[..len]);
        let code = modes.special_codes[SpecialCodeIndex::VEOF];
        let is_submitted = len < bytes.len()
            && line.is_unfinished()
            && !line.literal_next
            && byte_effect(modes, code) == ByteEffect::Ends;
        LinePart {
            len,
            submit: is_submitted.then_some(code),
        }
    }

    /// Records that these bytes were written.
    pub(crate) fn record_written(&mut self, modes: &Termios, bytes: &[u8]) {
        if !is_canonical(modes) {
            *self = Self::default();
            return;
        }
        for &byte in bytes {
            self.push(modes, byte);
        }
    }

    /// Whether the line has begun.
    pub(crate) const fn is_unfinished(self) -> bool {
        self.bytes > 0
    }

    /// Whether the byte fits.
    fn push(&mut self, modes: &Termios, byte: u8) -> bool {
        let effect = if std::mem::take(&mut self.literal_next) {
            ByteEffect::Grows(1)
        } else {
            byte_effect(modes, byte)
        };
        match effect {
            ByteEffect::Grows(by) if self.bytes + by > LINE_BYTES => return false,
            ByteEffect::Grows(by) => self.bytes += by,
            ByteEffect::Ends => self.bytes = 0,
            ByteEffect::Erases => self.bytes = self.bytes.saturating_sub(1),
            ByteEffect::Quotes => self.literal_next = true,
            ByteEffect::Nothing => {}
        }
        true
    }
}

const fn is_canonical(modes: &Termios) -> bool {
    modes.local_modes.contains(LocalModes::ICANON)
}

/// Decides as the kernel's line discipline (`N_TTY`) does, in its order.
fn byte_effect(modes: &Termios, byte: u8) -> ByteEffect {
    let (local, input) = (modes.local_modes, modes.input_modes);
    let extended = local.contains(LocalModes::IEXTEN);
    let byte = if input.contains(InputModes::ISTRIP) {
        byte & 0x7f
    } else {
        byte
    };
    // A code of zero is disabled.
    let is = |code: SpecialCodeIndex| byte != 0 && modes.special_codes[code] == byte;
    let flow = is(SpecialCodeIndex::VSTART) || is(SpecialCodeIndex::VSTOP);
    let signals = [
        SpecialCodeIndex::VINTR,
        SpecialCodeIndex::VQUIT,
        SpecialCodeIndex::VSUSP,
    ];
    if input.contains(InputModes::IXON) && flow {
        return ByteEffect::Nothing;
    }
    if local.contains(LocalModes::ISIG) && signals.into_iter().any(is) {
        return if local.contains(LocalModes::NOFLSH) {
            ByteEffect::Nothing
        } else {
            ByteEffect::Ends
        };
    }
    let byte = match byte {
        b'\r' if input.contains(InputModes::IGNCR) => return ByteEffect::Nothing,
        b'\r' if input.contains(InputModes::ICRNL) => b'\n',
        b'\n' if input.contains(InputModes::INLCR) => b'\r',
        other => other,
    };
    let is = |code: SpecialCodeIndex| byte != 0 && modes.special_codes[code] == byte;
    if is(SpecialCodeIndex::VERASE) {
        return ByteEffect::Erases;
    }
    if extended && is(SpecialCodeIndex::VWERASE) {
        return ByteEffect::Erases;
    }
    if extended && is(SpecialCodeIndex::VLNEXT) {
        return ByteEffect::Quotes;
    }
    if extended && local.contains(LocalModes::ECHO) && is(SpecialCodeIndex::VREPRINT) {
        return ByteEffect::Nothing;
    }
    let ends = byte == b'\n'
        || is(SpecialCodeIndex::VKILL)
        || is(SpecialCodeIndex::VEOF)
        || is(SpecialCodeIndex::VEOL)
        || (extended && is(SpecialCodeIndex::VEOL2));
    if ends {
        return ByteEffect::Ends;
    }
    // With PARMRK a byte may become three.
    if input.contains(InputModes::PARMRK) {
        return ByteEffect::Grows(3);
    }
    ByteEffect::Grows(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::pty::{OpenptFlags, openpt};
    use rustix::termios::tcgetattr;

    use super::*;

    /// The modes of a fresh terminal.
    fn fresh() -> Termios {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        tcgetattr(&master).expect("modes")
    }

    #[test]
    fn a_line_and_its_end_fit() {
        let modes = fresh();
        let mut line = CanonicalLine::default();
        let whole = [vec![b'x'; LINE_BYTES], b"\nnext".to_vec()].concat();
        assert_eq!(line.capacity(&modes, &whole), whole.len());
        line.record_written(&modes, &whole);
        assert_eq!(line.bytes, 4);
        let long = vec![b'y'; 100_000];
        assert_eq!(line.capacity(&modes, &long), LINE_BYTES - 4);
        line.record_written(&modes, &long[..LINE_BYTES - 4]);
        assert_eq!(line.capacity(&modes, &long), 0);
        for ends in [b"\nabc", b"\rabc", b"\x03abc", b"\x15abc", b"\x04abc"] {
            assert_eq!(line.capacity(&modes, ends), 4, "{ends:?}");
        }
        assert_eq!(
            line.capacity(&modes, b"\x7fabc"),
            2,
            "one byte is free again"
        );
        assert_eq!(
            line.capacity(&modes, b"\x16\nabc"),
            1,
            "a quoted newline is text"
        );
    }

    #[test]
    fn a_longer_line_is_submitted_in_parts() {
        let mut modes = fresh();
        let mut line = CanonicalLine::default();
        let part = |len, submit| LinePart { len, submit };
        let long = vec![b'x'; LINE_BYTES + 1];
        assert_eq!(line.next_part(&modes, b"short"), part(5, None));
        assert_eq!(line.next_part(&modes, &long), part(LINE_BYTES, Some(4)));
        line.record_written(&modes, &long[..LINE_BYTES]);
        assert_eq!(line.next_part(&modes, b"x"), part(0, Some(4)));
        assert_eq!(line.next_part(&modes, b"\n"), part(1, None));
        // After a quoting character, it would be text.
        let mut quoted = CanonicalLine::default();
        let long = [vec![b'x'; LINE_BYTES], b"\x16a".to_vec()].concat();
        assert_eq!(quoted.next_part(&modes, &long), part(LINE_BYTES + 1, None));
        quoted.record_written(&modes, &long[..=LINE_BYTES]);
        assert_eq!(quoted.next_part(&modes, b"a"), part(0, None));
        modes.special_codes[SpecialCodeIndex::VEOF] = 0;
        assert_eq!(line.next_part(&modes, b"x"), part(0, None));
        modes.local_modes.remove(LocalModes::ICANON);
        assert_eq!(line.next_part(&modes, b"x"), part(1, None));
    }

    #[test]
    fn without_lines_there_is_no_limit() {
        let mut modes = fresh();
        let mut line = CanonicalLine::default();
        line.record_written(&modes, b"abc");
        modes.local_modes.remove(LocalModes::ICANON);
        assert_eq!(line.capacity(&modes, &[b'x'; 100_000]), 100_000);
        line.record_written(&modes, b"x");
        assert_eq!(line, CanonicalLine::default());
    }

    #[test]
    fn translations_and_switched_off_codes() {
        let mut modes = fresh();
        assert_eq!(
            byte_effect(&modes, 0),
            ByteEffect::Grows(1),
            "a switched off code"
        );
        modes.input_modes.remove(InputModes::ICRNL);
        assert_eq!(byte_effect(&modes, b'\r'), ByteEffect::Grows(1));
        modes.input_modes.insert(InputModes::IGNCR);
        assert_eq!(byte_effect(&modes, b'\r'), ByteEffect::Nothing);
        modes.local_modes.remove(LocalModes::ISIG);
        assert_eq!(byte_effect(&modes, 3), ByteEffect::Grows(1));
        assert_eq!(byte_effect(&modes, 0x13), ByteEffect::Nothing, "ctrl-s");
        modes.input_modes.insert(InputModes::ISTRIP);
        assert_eq!(byte_effect(&modes, b'\n' | 0x80), ByteEffect::Ends);
    }

    proptest! {
        #[test]
        fn no_line_outgrows_the_kernels(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..3_000), any::<bool>()), 1..8)
        ) {
            let modes = fresh();
            let mut line = CanonicalLine::default();
            for (bytes, twice) in pieces {
                for _ in 0..=usize::from(twice) {
                    let room = line.capacity(&modes, &bytes);
                    prop_assert!(room <= bytes.len());
                    line.record_written(&modes, &bytes[..room]);
                    prop_assert!(line.bytes <= LINE_BYTES);
                    prop_assert!(line.literal_next || line.capacity(&modes, b"\n") == 1);
                }
            }
        }
    }
}
