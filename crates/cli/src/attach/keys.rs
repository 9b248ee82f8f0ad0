//! What is typed here: most of it is for the session, the detach key and what follows it is
//! for us.

use std::str::FromStr;

/// The detach key unless another is named.
pub(crate) const DETACH_KEY: &str = "ctrl-\\";
/// What the control key takes from a letter's code.
const CONTROL: u8 = 0x1f;

/// The key that begins a command to ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKey {
    name: String,
    /// Every way a terminal may send it; empty: there is none.
    forms: Vec<Vec<u8>>,
}

impl DetachKey {
    /// No key: everything is for the session.
    pub(crate) const fn none() -> Self {
        Self {
            name: String::new(),
            forms: Vec::new(),
        }
    }

    /// Its name, to be told.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it can do now, to follow a message; nothing where there is no such key.
    pub(crate) fn offer(&self, commands: &[&str]) -> String {
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
        let refused = || {
            format!(
                "'{name}' is no detach key; allowed: none, ctrl-a to ctrl-z, ctrl-\\, ctrl-], ctrl-^, ctrl-_ and ctrl-@"
            )
        };
        let letter = name.strip_prefix("ctrl-").ok_or_else(refused)?;
        let &[letter] = letter.as_bytes() else {
            return Err(refused());
        };
        let letter = letter.to_ascii_lowercase();
        // Tab, Enter and Escape are these; a key of ours must not take them away.
        let is_free = !matches!(letter, b'i' | b'j' | b'm' | b'[');
        if !is_free || !matches!(letter, b'a'..=b'z' | b'\\' | b']' | b'^' | b'_' | b'@') {
            return Err(refused());
        }
        Ok(Self {
            name: name.to_owned(),
            forms: vec![
                vec![letter & CONTROL],
                // As terminals send it whose program asked for unambiguous keys.
                format!("\x1b[{letter};5u").into_bytes(),
                format!("\x1b[27;5;{letter}~").into_bytes(),
            ],
        })
    }
}

/// What somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    /// These bytes are for the session.
    Type(Vec<u8>),
    /// To leave; the session goes on.
    Detach,
    /// To type instead of whoever types now.
    TakeOver,
    /// To let others type.
    HandBack,
    /// The screen painted anew.
    Repaint,
    /// To be stopped, as by a shell's ctrl-z.
    Suspend,
    /// To be told what there is.
    Help,
}

/// Takes what is typed apart.
#[derive(Debug)]
pub(crate) struct Keys {
    key: DetachKey,
    /// Whether the detach key was the last.
    asked: bool,
}

impl Keys {
    /// With this detach key.
    pub(crate) const fn new(key: DetachKey) -> Self {
        Self { key, asked: false }
    }

    /// Takes in bytes as our terminal sent them.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Vec<Want> {
        let (mut wants, mut typed) = (Vec::new(), Vec::new());
        while let Some((&byte, rest)) = bytes.split_first() {
            let form = self.key.forms.iter().find(|form| bytes.starts_with(form));
            match (form, std::mem::take(&mut self.asked)) {
                (Some(form), asked) => {
                    if asked {
                        typed.extend_from_slice(form);
                    }
                    self.asked = !asked;
                    bytes = &bytes[form.len()..];
                }
                (None, true) => {
                    flush(&mut wants, &mut typed);
                    wants.push(command(byte));
                    bytes = rest;
                }
                (None, false) => {
                    typed.push(byte);
                    bytes = rest;
                }
            }
        }
        flush(&mut wants, &mut typed);
        wants
    }
}

fn flush(wants: &mut Vec<Want>, typed: &mut Vec<u8>) {
    if !typed.is_empty() {
        wants.push(Want::Type(std::mem::take(typed)));
    }
}

fn command(byte: u8) -> Want {
    match byte {
        b'd' | b'D' => Want::Detach,
        b't' | b'T' => Want::TakeOver,
        b'h' | b'H' => Want::HandBack,
        b'r' | b'R' => Want::Repaint,
        b'z' | b'Z' => Want::Suspend,
        _ => Want::Help,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Want {
        Want::Type(text.as_bytes().to_vec())
    }

    #[test]
    fn the_detach_key_begins_a_command() {
        let mut keys = Keys::new(DETACH_KEY.parse().unwrap());
        assert_eq!(keys.take(b"ls\r"), [typed("ls\r")]);
        assert_eq!(
            keys.take(b"a\x1cdb"),
            [typed("a"), Want::Detach, typed("b")]
        );
        assert_eq!(keys.take(b"\x1c"), []);
        assert_eq!(keys.take(b"t"), [Want::TakeOver]);
        assert_eq!(keys.take(b"x\x1c\x1cy"), [typed("x\x1cy")]);
        assert_eq!(
            keys.take(b"\x1c?\x1ch\x1cq"),
            [Want::Help, Want::HandBack, Want::Help]
        );
        assert_eq!(keys.take(b"\x1b[92;5ud"), [Want::Detach]);
        assert_eq!(keys.take(b"\x1b[27;5;92~z"), [Want::Suspend]);
    }

    #[test]
    fn another_key_or_none_can_be_named() {
        let mut keys = Keys::new("ctrl-]".parse().unwrap());
        assert_eq!(keys.take(b"\x1c\x1dd"), [typed("\x1c"), Want::Detach]);
        let mut keys = Keys::new("none".parse().unwrap());
        assert_eq!(keys.take(b"\x1c\x1dd"), [typed("\x1c\x1dd")]);
        assert_eq!(DetachKey::none().offer(&["t takes over"]), "");
        let key: DetachKey = "ctrl-a".parse().unwrap();
        assert_eq!(
            key.offer(&["t does", "d leaves"]),
            "; ctrl-a t does, ctrl-a d leaves"
        );
        for bad in [
            "", "ctrl-", "ctrl-[", "ctrl-m", "ctrl-1", "alt-x", "x", "ctrl-ab",
        ] {
            let told = bad.parse::<DetachKey>().unwrap_err();
            assert!(told.contains("allowed"), "{told}");
        }
    }
}
