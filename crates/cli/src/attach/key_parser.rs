//! Parses typed keys: most are for the session, the detach key and the key after it are commands to
//! the client.

use std::str::FromStr;

/// The default detach key.
pub(crate) const DETACH_KEY: &str = "ctrl-\\";
/// The mask that turns a letter's code into that of its control character.
const CONTROL: u8 = 0x1f;

/// The key that begins a command to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKey {
    name: String,
    /// All encodings that a terminal may send for it; empty if there is no detach key.
    forms: Vec<Vec<u8>>,
}

impl DetachKey {
    /// No detach key: every key is for the session.
    pub(crate) const fn none() -> Self {
        Self {
            name: String::new(),
            forms: Vec::new(),
        }
    }

    /// The name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it can do now, as the end of a message; empty where there is no detach key.
    pub(crate) fn command_hint(&self, commands: &[&str]) -> String {
        if self.name.is_empty() {
            return String::new();
        }
        let offers = commands
            .iter()
            .map(|command| format!("{} {command}", self.name));
        format!("; {}", offers.collect::<Vec<_>>().join(", "))
    }
}

impl FromStr for DetachKey {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "none" {
            return Ok(Self::none());
        }
        let invalid = || {
            format!(
                "'{name}' is no detach key; allowed: none, ctrl-a to ctrl-z, ctrl-\\, ctrl-], ctrl-^, ctrl-_ and ctrl-@"
            )
        };
        let letter = name.strip_prefix("ctrl-").ok_or_else(invalid)?;
        let &[letter] = letter.as_bytes() else {
            return Err(invalid());
        };
        let letter = letter.to_ascii_lowercase();
        // Tab, Enter and Escape have the codes of these letters; the detach key must not replace
        // them.
        let is_free = !matches!(letter, b'i' | b'j' | b'm' | b'[');
        if !is_free || !matches!(letter, b'a'..=b'z' | b'\\' | b']' | b'^' | b'_' | b'@') {
            return Err(invalid());
        }
        Ok(Self {
            name: name.to_owned(),
            forms: vec![
                vec![letter & CONTROL],
                // As terminals encode it in the kitty keyboard protocol.
                format!("\x1b[{letter};5u").into_bytes(),
                format!("\x1b[27;5;{letter}~").into_bytes(),
            ],
        })
    }
}

/// The meaning of typed keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyAction {
    /// Bytes for the session.
    Type(Vec<u8>),
    /// Detach; the session continues.
    Detach,
    /// Take over the writer lease.
    TakeOver,
    /// Release the writer lease.
    HandBack,
    /// Repaint the screen.
    Repaint,
    /// Suspend the client, as ctrl-z does in a shell.
    Suspend,
    /// Show the commands.
    Help,
}

/// Splits typed bytes into actions.
#[derive(Debug)]
pub(crate) struct KeyParser {
    key: DetachKey,
    /// Whether the last key was the detach key.
    is_pending: bool,
}

impl KeyParser {
    /// A parser for this detach key.
    pub(crate) const fn new(key: DetachKey) -> Self {
        Self {
            key,
            is_pending: false,
        }
    }

    /// Parses bytes as the terminal sent them.
    pub(crate) fn parse(&mut self, mut bytes: &[u8]) -> Vec<KeyAction> {
        let (mut actions, mut typed) = (Vec::new(), Vec::new());
        while let Some((&byte, rest)) = bytes.split_first() {
            let form = self.key.forms.iter().find(|form| bytes.starts_with(form));
            match (form, std::mem::take(&mut self.is_pending)) {
                (Some(form), was_pending) => {
                    if was_pending {
                        typed.extend_from_slice(form);
                    }
                    self.is_pending = !was_pending;
                    bytes = &bytes[form.len()..];
                }
                (None, true) => {
                    flush(&mut actions, &mut typed);
                    actions.push(action(byte));
                    bytes = rest;
                }
                (None, false) => {
                    typed.push(byte);
                    bytes = rest;
                }
            }
        }
        flush(&mut actions, &mut typed);
        actions
    }
}

fn flush(actions: &mut Vec<KeyAction>, typed: &mut Vec<u8>) {
    if !typed.is_empty() {
        actions.push(KeyAction::Type(std::mem::take(typed)));
    }
}

fn action(byte: u8) -> KeyAction {
    match byte {
        b'd' | b'D' => KeyAction::Detach,
        b't' | b'T' => KeyAction::TakeOver,
        b'h' | b'H' => KeyAction::HandBack,
        b'r' | b'R' => KeyAction::Repaint,
        b'z' | b'Z' => KeyAction::Suspend,
        _ => KeyAction::Help,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> KeyAction {
        KeyAction::Type(text.as_bytes().to_vec())
    }

    #[test]
    fn the_detach_key_begins_a_command() {
        let mut keys = KeyParser::new(DETACH_KEY.parse().unwrap());
        assert_eq!(keys.parse(b"ls\r"), [typed("ls\r")]);
        assert_eq!(
            keys.parse(b"a\x1cdb"),
            [typed("a"), KeyAction::Detach, typed("b")]
        );
        assert_eq!(keys.parse(b"\x1c"), []);
        assert_eq!(keys.parse(b"t"), [KeyAction::TakeOver]);
        assert_eq!(keys.parse(b"x\x1c\x1cy"), [typed("x\x1cy")]);
        assert_eq!(
            keys.parse(b"\x1c?\x1ch\x1cq"),
            [KeyAction::Help, KeyAction::HandBack, KeyAction::Help]
        );
        assert_eq!(keys.parse(b"\x1b[92;5ud"), [KeyAction::Detach]);
        assert_eq!(keys.parse(b"\x1b[27;5;92~z"), [KeyAction::Suspend]);
    }

    #[test]
    fn another_key_or_none_can_be_named() {
        let mut keys = KeyParser::new("ctrl-]".parse().unwrap());
        assert_eq!(keys.parse(b"\x1c\x1dd"), [typed("\x1c"), KeyAction::Detach]);
        let mut keys = KeyParser::new("none".parse().unwrap());
        assert_eq!(keys.parse(b"\x1c\x1dd"), [typed("\x1c\x1dd")]);
        assert_eq!(DetachKey::none().command_hint(&["t takes over"]), "");
        let key: DetachKey = "ctrl-a".parse().unwrap();
        assert_eq!(
            key.command_hint(&["t does", "d leaves"]),
            "; ctrl-a t does, ctrl-a d leaves"
        );
        for bad in [
            "", "ctrl-", "ctrl-[", "ctrl-m", "ctrl-1", "alt-x", "x", "ctrl-ab",
        ] {
            let message = bad.parse::<DetachKey>().unwrap_err();
            assert!(message.contains("allowed"), "{message}");
        }
    }
}
