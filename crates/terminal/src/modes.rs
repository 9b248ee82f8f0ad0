//! The terminal modes that a program has set and that decide how input is encoded.

use serde::{Deserialize, Serialize};

/// Modes set by DECSET, DECRST and related sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Modes {
    /// Bracketed paste (mode 2004).
    #[serde(default)]
    pub bracketed_paste: bool,
    /// Application cursor keys: arrows are sent as `ESC O A` (DECCKM).
    #[serde(default)]
    pub application_cursor: bool,
    /// Application keypad (DECKPAM).
    #[serde(default)]
    pub application_keypad: bool,
    /// Mouse reporting (modes 9, 1000, 1002, 1003).
    #[serde(default)]
    pub mouse: bool,
}

const CURSOR_KEYS: u16 = 1;
/// DECNKM; `ESC =` and `ESC >` set and reset it too.
pub(crate) const KEYPAD: u16 = 66;
const BRACKETED_PASTE: u16 = 2004;
/// The mouse reporting modes: setting one resets the others, and resetting any turns the mouse
/// off, as in xterm.
const MOUSE: [u16; 4] = [9, 1000, 1002, 1003];

/// The private modes that are tracked: those above, focus events, and the mouse encodings. At
/// most 32, one bit each in [`PrivateModes`].
const TRACKED_MODES: [u16; 13] = [
    CURSOR_KEYS,
    9,
    KEYPAD,
    1000,
    1002,
    1003,
    1004,
    1005,
    1006,
    1007,
    1015,
    1016,
    BRACKETED_PASTE,
];

/// The set of private modes that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<u16>", into = "Vec<u16>")]
pub(crate) struct PrivateModes(u32);

impl PrivateModes {
    pub(crate) fn set(&mut self, mode: u16, on: bool) {
        if MOUSE.contains(&mode) {
            self.0 &= !MOUSE.iter().map(|mode| bit(*mode)).sum::<u32>();
        }
        if on {
            self.0 |= bit(mode);
        } else {
            self.0 &= !bit(mode);
        }
    }

    /// Full reset (RIS).
    pub(crate) fn clear(&mut self) {
        self.0 = 0;
    }

    /// Soft reset (DECSTR).
    pub(crate) fn soft_reset(&mut self) {
        self.set(CURSOR_KEYS, false);
        self.set(KEYPAD, false);
    }

    fn has(self, mode: u16) -> bool {
        self.0 & bit(mode) != 0
    }

    pub(crate) fn modes(self) -> Modes {
        Modes {
            bracketed_paste: self.has(BRACKETED_PASTE),
            application_cursor: self.has(CURSOR_KEYS),
            application_keypad: self.has(KEYPAD),
            mouse: MOUSE.iter().any(|mode| self.has(*mode)),
        }
    }

    /// Sequences that set these modes on a real terminal and reset the others.
    pub(crate) fn repaint(self) -> String {
        let mut text = String::new();
        for on in [false, true] {
            let modes = TRACKED_MODES.iter().filter(|mode| **mode != KEYPAD);
            for mode in modes.filter(|mode| self.has(**mode) == on) {
                let end = if on { 'h' } else { 'l' };
                text.push_str(&format!("\u{1b}[?{mode}{end}"));
            }
        }
        let keypad = self.has(KEYPAD);
        text.push_str(if keypad { "\u{1b}=" } else { "\u{1b}>" });
        text
    }
}

/// The bit of a mode; none for a mode that is not tracked.
fn bit(mode: u16) -> u32 {
    let bit_index = TRACKED_MODES.iter().position(|kept| *kept == mode);
    bit_index.map_or(0, |place| 1 << place)
}

impl From<Vec<u16>> for PrivateModes {
    fn from(modes: Vec<u16>) -> Self {
        Self(modes.into_iter().fold(0, |bits, mode| bits | bit(mode)))
    }
}

impl From<PrivateModes> for Vec<u16> {
    fn from(private: PrivateModes) -> Self {
        TRACKED_MODES
            .into_iter()
            .filter(|mode| private.has(*mode))
            .collect()
    }
}
