//! Where definitions come from.

use std::fmt;

/// The origin of a definition file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateTier {
    /// Shipped with the program.
    Shipped,
    /// The user's own: may replace shipped templates.
    User,
    /// Found in the project: adds templates, and replaces none.
    Project,
}

impl TemplateTier {
    /// Its name, for example `user`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

impl fmt::Display for TemplateTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One definition file, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSource {
    /// Its origin.
    pub tier: TemplateTier,
    /// Its name in errors: a path.
    pub name: String,
    /// Its text, TOML.
    pub text: String,
}

impl TemplateSource {
    /// The shipped templates.
    #[must_use]
    pub fn shipped() -> Self {
        Self {
            tier: TemplateTier::Shipped,
            name: "claude.toml".to_owned(),
            text: include_str!("../data/claude.toml").to_owned(),
        }
    }
}
