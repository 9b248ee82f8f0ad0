//! The definition of a template.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use crate::argument::ArgumentTemplate;

/// A command with named parameters, as a definition file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTemplate {
    /// Its name in requests: lower-case letters, digits, `_` and `-`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The group it is listed in, a word as `id`.
    pub category: String,
    /// The program.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<ArgumentTemplate>,
    /// What a caller must be permitted to do.
    pub required_permissions: Vec<TemplatePermission>,
    /// How long it takes as a rule, in seconds.
    pub estimated_duration_s: Option<u64>,
    /// Whether a person must agree to each start.
    pub requires_confirmation: bool,
    /// Its parameters, in the order of their first placeholders.
    pub parameters: Vec<TemplateParameter>,
}

/// A parameter of a template. Each is in a placeholder at least, and has a value at every start: a
/// given one, where it is required, or else at least its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateParameter {
    /// Its name in placeholders and requests.
    pub name: String,
    /// The type of its values.
    pub kind: ParameterType,
    /// The value where none is given; none for a required one.
    pub default: Option<String>,
    /// The allowed values of a choice, else empty.
    pub options: Vec<String>,
    /// What it means.
    pub description: String,
}

impl TemplateParameter {
    /// Whether a value must be given.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.default.is_none()
    }
}

/// The type of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    /// Any text.
    String,
    /// A whole number of 64 bits with sign.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One of the parameter's options.
    Choice,
    /// The path of a file or directory, which does not look like an option.
    Path,
}

impl ParameterType {
    /// Its name in definitions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Choice => "choice",
            Self::Path => "path",
        }
    }
}

/// A permission that a template requires of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePermission {
    /// Reading the project: whoever may start commands has it.
    ProjectRead,
    /// Changing the project: whoever may start commands has it.
    ProjectWrite,
    /// Seeing every session of the principal.
    SessionsAll,
}

/// A word that names no permission.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("is no permission; allowed: {}", TemplatePermission::ALL.map(TemplatePermission::as_str).join(", "))]
pub struct UnknownPermission;

impl TemplatePermission {
    /// Every permission.
    pub const ALL: [Self; 3] = [Self::ProjectRead, Self::ProjectWrite, Self::SessionsAll];

    /// Its name in definitions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProjectRead => "project:read",
            Self::ProjectWrite => "project:write",
            Self::SessionsAll => "sessions:all",
        }
    }
}

impl FromStr for TemplatePermission {
    type Err = UnknownPermission;

    fn from_str(text: &str) -> Result<Self, UnknownPermission> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| it.as_str() == text).ok_or(UnknownPermission)
    }
}

impl fmt::Display for TemplatePermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
