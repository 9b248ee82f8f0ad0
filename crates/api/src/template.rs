//! Command templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /api/v1/command-templates`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandTemplatesBody {
    /// The templates, by id.
    pub templates: Vec<CommandTemplateBody>,
    /// What is wrong with definition files, and with templates that are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// One command template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandTemplateBody {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The group it is listed in.
    pub category: String,
    /// The program.
    pub command: String,
    /// The program's arguments: `{name}` stands for a parameter, `{{` and `}}` for a brace.
    pub args_template: Vec<String>,
    /// The permissions that its caller must have.
    pub required_permissions: Vec<String>,
    /// How long it takes as a rule, in seconds; absent where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<u64>,
    /// Whether a person must agree to each start.
    pub requires_confirmation: bool,
    /// Its parameters by name.
    pub parameters: BTreeMap<String, CommandTemplateParameterBody>,
    /// Where it comes from: `shipped`, `user` or `project`.
    pub source: String,
    /// The file that defines it.
    pub file: String,
    /// Whether it replaces a shipped template.
    #[serde(default, skip_serializing_if = "ostler_model::is_default")]
    pub replaces_shipped: bool,
}

/// One parameter of a command template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandTemplateParameterBody {
    /// `string`, `integer`, `boolean`, `choice` or `path`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a value must be given.
    pub required: bool,
    /// The value where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The allowed values of a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What it means.
    pub description: String,
}
