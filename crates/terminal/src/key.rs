//! Key names: `enter`, `ctrl-c`, `alt-left`, `shift-tab`, `f5`, and the names other programs use
//! for them.

use std::fmt;
use std::str::FromStr;

use ostler_model::suggestion;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A key with its modifiers, by its name: `enter`, `ctrl-c`, `alt-left`, `shift-tab`, `f5`.
///
/// Names are parsed in any case, with `-` or `+` between their parts, and in the notations of
/// Emacs and termcap: `C-c`, `M-x`, `^C`. A single character is the key that types it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key {
    pub(crate) code: KeyCode,
    pub(crate) modifiers: HeldModifiers,
}

/// The modifiers that are held down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HeldModifiers {
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
    pub(crate) shift: bool,
}

/// A key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyCode {
    Char(char),
    Enter,
    Tab,
    Escape,
    Backspace,
    Delete,
    Insert,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// A function key; F1 is 1.
    F(u8),
}

/// The highest function key.
const F_MAX: u8 = 20;

/// The longest name in bytes that is parsed.
const NAME_BYTES: usize = 64;

/// Key names; the first name of a key is its canonical one.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("escape", KeyCode::Escape),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("return", KeyCode::Enter),
    ("cr", KeyCode::Enter),
    ("ret", KeyCode::Enter),
    ("esc", KeyCode::Escape),
    ("spc", KeyCode::Char(' ')),
    ("bs", KeyCode::Backspace),
    ("bspace", KeyCode::Backspace),
    ("del", KeyCode::Delete),
    ("dc", KeyCode::Delete),
    ("ins", KeyCode::Insert),
    ("ic", KeyCode::Insert),
    ("arrowup", KeyCode::Up),
    ("arrowdown", KeyCode::Down),
    ("arrowleft", KeyCode::Left),
    ("arrowright", KeyCode::Right),
    ("pgup", KeyCode::PageUp),
    ("ppage", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("pgdown", KeyCode::PageDown),
    ("npage", KeyCode::PageDown),
];

/// How many of [`NAMES`] are canonical; the rest are aliases.
const OWN_NAMES: usize = 15;

/// Modifier names.
const MODIFIERS: &[(&str, Modifier)] = &[
    ("ctrl", Modifier::Ctrl),
    ("control", Modifier::Ctrl),
    ("ctl", Modifier::Ctrl),
    ("c", Modifier::Ctrl),
    ("alt", Modifier::Alt),
    ("meta", Modifier::Alt),
    ("option", Modifier::Alt),
    ("opt", Modifier::Alt),
    ("m", Modifier::Alt),
    ("a", Modifier::Alt),
    ("shift", Modifier::Shift),
    ("s", Modifier::Shift),
];

#[derive(Debug, Clone, Copy)]
enum Modifier {
    Ctrl,
    Alt,
    Shift,
}

/// The error for a name that is not a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// No key has this name.
    #[error("'{given}' is no key; {}allowed: {allowed}", meant(.suggestion.as_deref()))]
    Unknown {
        /// The name as given, shortened where it is long.
        given: String,
        /// The most similar key name, where one is similar.
        suggestion: Option<String>,
        /// The list of names and modifiers.
        allowed: String,
    },
    /// The key exists, but no terminal sends anything for it with Ctrl or Shift held.
    #[error("no terminal sends anything for '{given}'; {why}")]
    Unsendable {
        /// The name as given.
        given: String,
        /// What can be sent instead.
        why: &'static str,
    },
}

fn meant(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!("did you mean '{name}'? "))
}

impl Key {
    /// All names and modifiers, for help and errors.
    #[must_use]
    pub fn allowed() -> String {
        let names: Vec<&str> = NAMES[..OWN_NAMES].iter().map(|(name, _)| *name).collect();
        format!(
            "{}, f1-f{F_MAX}, any single character, each with ctrl-, alt-, shift- before it",
            names.join(", ")
        )
    }

    fn unknown(given: &str) -> KeyError {
        KeyError::Unknown {
            given: given.chars().take(NAME_BYTES).collect(),
            suggestion: similar_key(given),
            allowed: Self::allowed(),
        }
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(given: &str) -> Result<Self, KeyError> {
        if given.len() > NAME_BYTES {
            return Err(Self::unknown(given));
        }
        let (mut modifiers, name) = split_modifiers(given);
        let base = parse_key_code(name).ok_or_else(|| Self::unknown(given))?;
        if let KeyCode::Char(c) = base {
            let base = normalize_char(given, c, &mut modifiers)?;
            return Ok(Self {
                code: base,
                modifiers,
            });
        }
        Ok(Self {
            code: base,
            modifiers,
        })
    }
}

/// Splits modifiers such as `ctrl-`, `M-` and `^` off the beginning of a name.
fn split_modifiers(given: &str) -> (HeldModifiers, &str) {
    let mut modifiers = HeldModifiers::default();
    let mut rest = given;
    loop {
        if let Some(after) = rest.strip_prefix('^')
            && after.chars().count() == 1
        {
            modifiers.ctrl = true;
            return (modifiers, after);
        }
        let Some(at) = rest.find(['-', '+']) else {
            return (modifiers, rest);
        };
        let (name, after) = (&rest[..at], &rest[at + 1..]);
        let modifier = MODIFIERS.iter().find(|(m, _)| m.eq_ignore_ascii_case(name));
        let (Some((_, modifier)), false) = (modifier, after.is_empty()) else {
            return (modifiers, rest);
        };
        match modifier {
            Modifier::Ctrl => modifiers.ctrl = true,
            Modifier::Alt => modifiers.alt = true,
            Modifier::Shift => modifiers.shift = true,
        }
        rest = after;
    }
}

fn parse_key_code(name: &str) -> Option<KeyCode> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return key_code_of_char(c);
    }
    let name: String = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    if let Some((_, base)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(*base);
    }
    let number: u8 = name.strip_prefix('f')?.parse().ok()?;
    (1..=F_MAX).contains(&number).then_some(KeyCode::F(number))
}

/// The named key of a character, where it has one.
fn key_code_of_char(c: char) -> Option<KeyCode> {
    match c {
        '\r' | '\n' => Some(KeyCode::Enter),
        '\t' => Some(KeyCode::Tab),
        '\u{1b}' => Some(KeyCode::Escape),
        '\u{7f}' => Some(KeyCode::Backspace),
        c if c.is_control() => None,
        c => Some(KeyCode::Char(c)),
    }
}

/// A character with modifiers, if it can be sent; Shift is applied to a letter.
fn normalize_char(
    given: &str,
    c: char,
    modifiers: &mut HeldModifiers,
) -> Result<KeyCode, KeyError> {
    let unsendable = |why| {
        Err(KeyError::Unsendable {
            given: given.to_owned(),
            why,
        })
    };
    if modifiers.ctrl {
        if control_byte(c).is_none() {
            return unsendable("ctrl- goes with a-z, space, @ [ \\ ] ^ _ / ? and 2-8");
        }
        modifiers.shift = false;
        return Ok(KeyCode::Char(c.to_ascii_lowercase()));
    }
    if modifiers.shift && c != ' ' {
        let mut upper = c.to_uppercase();
        return match (upper.next(), upper.next()) {
            (Some(upper), None) if c.is_alphabetic() => {
                modifiers.shift = false;
                Ok(KeyCode::Char(upper))
            }
            _ => unsendable("give the character that Shift makes of it"),
        };
    }
    modifiers.shift = false;
    Ok(KeyCode::Char(c))
}

/// The byte for a character with Ctrl held, as xterm sends it.
pub(crate) fn control_byte(c: char) -> Option<u8> {
    let byte = u8::try_from(c).ok()?;
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => Some(byte & 0x1f),
        b'@' | b' ' | b'2' => Some(0x00),
        b'[' | b'3' => Some(0x1b),
        b'\\' | b'4' => Some(0x1c),
        b']' | b'5' => Some(0x1d),
        b'^' | b'6' => Some(0x1e),
        b'_' | b'/' | b'7' => Some(0x1f),
        b'?' | b'8' => Some(0x7f),
        _ => None,
    }
}

/// A suggestion for an unknown name: the same modifiers with the most similar key.
fn similar_key(given: &str) -> Option<String> {
    if given.len() > NAME_BYTES {
        return None;
    }
    let lower = given.to_ascii_lowercase();
    let known = NAMES.iter().map(|(name, _)| (*name).to_owned());
    let functions = (1..=F_MAX).map(|n| format!("f{n}"));
    let (prefix, name) = lower
        .rsplit_once(['-', '+'])
        .map_or((None, lower.as_str()), |(front, name)| (Some(front), name));
    let nearest = suggestion::nearest(name, known.chain(functions))?;
    let near = parse_key_code(&nearest).map(|base| base.to_string())?;
    let Some(prefix) = prefix else {
        return Some(near);
    };
    let modifiers = MODIFIERS.iter().map(|(name, _)| *name);
    let prefix = suggestion::nearest(prefix, modifiers.filter(|name| name.len() > 1))?;
    Some(format!("{prefix}-{near}"))
}

impl fmt::Display for KeyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMES.iter().find(|(_, base)| base == self) {
            return f.write_str(name);
        }
        if let Self::Char(c) = self {
            return write!(f, "{c}");
        }
        if let Self::F(number) = self {
            return write!(f, "f{number}");
        }
        Ok(())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldModifiers { ctrl, alt, shift } = self.modifiers;
        for (held, name) in [(ctrl, "ctrl-"), (alt, "alt-"), (shift, "shift-")] {
            if held {
                f.write_str(name)?;
            }
        }
        write!(f, "{}", self.code)
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(name: String) -> Result<Self, KeyError> {
        name.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests;
