//! The table of all settings.

use ostler_model::suggestion;

use super::command_keys::COMMAND_KEYS;
use super::container_keys::CONTAINER_KEYS;
use super::daemon_keys::DAEMON_KEYS;
use super::value::ValueKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettingKey {
    /// Its name in files and after `--set`: `table.key`.
    pub(crate) name: &'static str,
    /// Its environment variables, in order of precedence.
    pub(crate) variables: &'static [&'static str],
    /// The kind of value.
    pub(crate) kind: ValueKind,
    /// The default as text; none where it depends on the system.
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
}

pub(super) const fn key(
    name: &'static str,
    variables: &'static [&'static str],
    kind: ValueKind,
    default: Option<&'static str>,
    help: &'static str,
) -> SettingKey {
    SettingKey {
        name,
        variables,
        kind,
        default,
        help,
    }
}

/// The tables of settings, in the order in which they are listed.
const TABLES: [&[SettingKey]; 3] = [&COMMAND_KEYS, &DAEMON_KEYS, &CONTAINER_KEYS];

/// All settings.
pub(crate) const KEYS: [SettingKey; COMMAND_KEYS.len() + DAEMON_KEYS.len() + CONTAINER_KEYS.len()] = {
    let mut all = [COMMAND_KEYS[0]; COMMAND_KEYS.len() + DAEMON_KEYS.len() + CONTAINER_KEYS.len()];
    let (mut table, mut row, mut index) = (0, 0, 0);
    while index < all.len() {
        if row == TABLES[table].len() {
            (table, row) = (table + 1, 0);
            continue;
        }
        all[index] = TABLES[table][row];
        (row, index) = (row + 1, index + 1);
    }
    all
};

impl SettingKey {
    /// Finds the setting with this name.
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The name of a setting most similar to `name`.
    pub(crate) fn suggest(name: &str) -> Option<&'static str> {
        suggestion::nearest(name, KEYS.iter().map(|key| key.name))
    }
}
