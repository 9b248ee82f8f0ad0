//! The command template that a command was made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;
use crate::default_value::is_default;

/// The command template that a command was made from, as part of a request and of its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateRecord {
    /// The template's id.
    pub id: String,
    /// The values of its parameters, defaults included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, ByteString>,
    /// Whether a person must agree to each start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirm: bool,
}

impl TemplateRecord {
    /// The longest id, in bytes.
    pub const ID_BYTES: usize = 64;
    /// The most parameters.
    pub const PARAMETERS: usize = 32;

    /// The label of executions that were made from this template, for example
    /// `template:analyze_code`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("template:{}", self.id)
    }

    /// The record with each value changed.
    #[must_use]
    pub fn map_values(mut self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        for value in self.parameters.values_mut() {
            *value = change(value);
        }
        self
    }
}
