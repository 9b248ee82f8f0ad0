//! Fields of a start whose forms serde would describe in its own words: errors state what is allowed.

use std::fmt;
use std::marker::PhantomData;

use ostler_model::{ByteString, Command};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The most characters of a value in a message.
const EXCERPT_CHARS: usize = 60;
const COMMAND: &str =
    "{\"argv\": {\"program\": …, \"args\": […]}} or {\"shell\": {\"shell\": …, \"script\": …}}";

/// Parses `command`. The model's command is also stored, where unknown fields of a newer version are
/// ignored; in a request that would silently drop an option.
pub(crate) fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Command, D::Error> {
    from.deserialize_map(CommandVisitor)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgvFields {
    program: ByteString,
    args: Vec<ByteString>,
}

impl ArgvFields {
    const FORM: &str = "{\"program\": …, \"args\": […]}";
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellFields {
    shell: ByteString,
    script: ByteString,
}

impl ShellFields {
    const FORM: &str = "{\"shell\": …, \"script\": …}";
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = Command;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(COMMAND)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Command, A::Error> {
        let key: Option<String> = map.next_key()?;
        let command = match key.as_deref() {
            Some("argv") => {
                let ArgvFields { program, args } =
                    map.next_value_seed(Fields::of(ArgvFields::FORM))?;
                Command::Argv { program, args }
            }
            Some("shell") => {
                let ShellFields { shell, script } =
                    map.next_value_seed(Fields::of(ShellFields::FORM))?;
                Command::Shell { shell, script }
            }
            Some(other) => return Err(unknown_key(other, COMMAND)),
            None => return Err(A::Error::custom(format!("it is empty; allowed: {COMMAND}"))),
        };
        end(map, COMMAND)?;
        Ok(command)
    }
}

/// The fields of an object. serde would take an array for their values in order.
struct Fields<T> {
    form: &'static str,
    fields: PhantomData<T>,
}

impl<T> Fields<T> {
    const fn of(form: &'static str) -> Self {
        let fields = PhantomData;
        Self { form, fields }
    }
}

impl<'de, T: Deserialize<'de>> serde::de::DeserializeSeed<'de> for Fields<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Refuses a second key.
pub(crate) fn end<'de, A: MapAccess<'de>>(mut map: A, allowed: &str) -> Result<(), A::Error> {
    match map.next_key::<String>()? {
        None => Ok(()),
        Some(key) => {
            let key = excerpt(&key);
            let message = format!("'{key}' is one key too many; allowed: {allowed}");
            Err(A::Error::custom(message))
        }
    }
}

/// Refuses a key.
pub(crate) fn unknown_key<E: Error>(key: &str, allowed: &str) -> E {
    let key = excerpt(key);
    E::custom(format!("unknown key '{key}'; allowed: {allowed}"))
}

/// The beginning of a value.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
