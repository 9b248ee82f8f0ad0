//! A cursor on one value of the file, with its path and line.

use std::collections::BTreeSet;

use ostler_model::{line_number, suggestion};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ManifestError;

/// The most characters of a value in a message.
const EXCERPT_CHARS: usize = 60;

#[derive(Debug, Clone)]
pub(super) struct TomlValue<'a> {
    pub(super) text: &'a str,
    /// Its path: `services.web.port`.
    pub(super) path: String,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> TomlValue<'a> {
    /// The error for a value of a wrong type or form.
    pub(super) fn invalid(&self, allowed: &str) -> ManifestError {
        self.error(format!("is {}; allowed: {allowed}", self.excerpt()))
    }

    /// The error for a value that something is wrong with.
    pub(super) fn refuse(&self, problem: &str) -> ManifestError {
        self.error(format!("is {}: {problem}", self.excerpt()))
    }

    /// The value as written, or its beginning.
    fn excerpt(&self) -> String {
        let written = &self.text[self.value.span()];
        let line = written.lines().next().unwrap_or_default();
        let mut excerpt: String = line.chars().take(EXCERPT_CHARS).collect();
        if excerpt.len() < written.trim_end().len() {
            excerpt.push('…');
        }
        excerpt
    }

    /// An error at this value.
    pub(super) fn error(&self, what: impl std::fmt::Display) -> ManifestError {
        ManifestError {
            line: line_number(self.text, self.value.span().start),
            problem: format!("{} {what}", self.path),
        }
    }

    pub(super) fn str(&self) -> Option<&'a str> {
        self.value.get_ref().as_str()
    }

    pub(super) fn string(&self, allowed: &str) -> Result<String, ManifestError> {
        let text = self.str().ok_or_else(|| self.invalid(allowed))?;
        Ok(text.to_owned())
    }

    pub(super) fn flag(&self) -> Result<bool, ManifestError> {
        let flag = self.value.get_ref().as_bool();
        flag.ok_or_else(|| self.invalid("true or false"))
    }

    pub(super) fn number(&self) -> Option<u64> {
        let DeValue::Integer(digits) = self.value.get_ref() else {
            return None;
        };
        u64::from_str_radix(digits.as_str(), digits.radix()).ok()
    }

    /// A list of strings.
    pub(super) fn strings(&self, allowed: &str) -> Result<Vec<String>, ManifestError> {
        let DeValue::Array(items) = self.value.get_ref() else {
            return Err(self.invalid(allowed));
        };
        let texts = items.iter().map(|item| {
            let text = item.get_ref().as_str();
            text.map(str::to_owned).ok_or_else(|| self.invalid(allowed))
        });
        texts.collect()
    }

    pub(super) fn table(&self) -> Option<TomlTable<'a>> {
        let DeValue::Table(table) = self.value.get_ref() else {
            return None;
        };
        Some(TomlTable {
            text: self.text,
            path: self.path.clone(),
            line: line_number(self.text, self.value.span().start),
            table,
        })
    }
}

/// A table of the file.
#[derive(Debug, Clone)]
pub(super) struct TomlTable<'a> {
    pub(super) text: &'a str,
    /// The path; empty for the root table.
    pub(super) path: String,
    /// The line of its first key.
    pub(super) line: usize,
    pub(super) table: &'a DeTable<'a>,
}

impl<'a> TomlTable<'a> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<TomlValue<'a>> {
        let found = self.table.iter().find(|(known, _)| known.get_ref() == key);
        found.map(|(_, value)| self.item(key, value))
    }

    /// The value of a key, converted by `read`.
    pub(super) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&TomlValue<'a>) -> Result<T, ManifestError>,
    ) -> Result<Option<T>, ManifestError> {
        self.get(key).map(|item| read(&item)).transpose()
    }

    /// All entries, in the order of the file.
    pub(super) fn items(&self) -> Vec<(String, TomlValue<'a>)> {
        let mut all: Vec<_> = self.table.iter().collect();
        all.sort_by_key(|(key, _)| key.span().start);
        let named = all.into_iter();
        named
            .map(|(key, value)| (key.get_ref().to_string(), self.item(key.get_ref(), value)))
            .collect()
    }

    /// Fails for a key that is not allowed here.
    pub(super) fn reject_unknown_keys(&self, allowed: &[&str]) -> Result<(), ManifestError> {
        let known: BTreeSet<&str> = allowed.iter().copied().collect();
        let mut unknown = self
            .table
            .keys()
            .filter(|it| !known.contains(it.get_ref().as_ref()));
        match unknown.next() {
            None => Ok(()),
            Some(key) => Err(ManifestError {
                line: line_number(self.text, key.span().start),
                problem: unknown_key(key.get_ref(), &self.path, allowed),
            }),
        }
    }

    fn item(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> TomlValue<'a> {
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        TomlValue {
            text: self.text,
            path,
            value,
        }
    }
}

fn unknown_key(key: &str, path: &str, allowed: &[&str]) -> String {
    let location = if path.is_empty() {
        String::new()
    } else {
        format!(" in {path}")
    };
    match suggestion::nearest(key, allowed) {
        Some(known) => format!("unknown key '{key}'{location}; did you mean '{known}'?"),
        None => format!(
            "unknown key '{key}'{location}; allowed: {}",
            allowed.join(", ")
        ),
    }
}
