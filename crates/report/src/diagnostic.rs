//! Diagnostics: what compilers and linters report about a file.

use serde::Serialize;

use crate::output_line::OutputPosition;

/// A tool whose diagnostics are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// The Rust compiler.
    Rustc,
    /// Clippy.
    Clippy,
    /// Cargo itself.
    Cargo,
    /// A C or C++ compiler: gcc and clang print the same form.
    Cc,
    /// The TypeScript compiler.
    Tsc,
    /// `ESLint`, format `stylish`.
    Eslint,
    /// mypy.
    Mypy,
    /// ruff, format `concise`.
    Ruff,
    /// flake8, and other linters that print `file:line:column: CODE message`.
    Flake8,
    /// `go build` and `go vet`.
    Go,
    /// The Java compiler.
    Javac,
    /// A failed test of pytest.
    Pytest,
    /// `ShellCheck`, format `gcc`.
    Shellcheck,
}

impl Tool {
    /// Its name, as SARIF's `tool.driver.name`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rustc => "rustc",
            Self::Clippy => "clippy",
            Self::Cargo => "cargo",
            Self::Cc => "cc",
            Self::Tsc => "tsc",
            Self::Eslint => "eslint",
            Self::Mypy => "mypy",
            Self::Ruff => "ruff",
            Self::Flake8 => "flake8",
            Self::Go => "go",
            Self::Javac => "javac",
            Self::Pytest => "pytest",
            Self::Shellcheck => "shellcheck",
        }
    }
}

/// How severe a diagnostic is, as its tool says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticSeverity {
    /// Information.
    Note,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

impl DiagnosticSeverity {
    /// Its word, as SARIF's `level`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLocation {
    /// The file as the tool printed it: absolute, or relative to the directory it ran in.
    pub file: String,
    /// The line, from 1, where it was printed.
    pub line: Option<u32>,
    /// The column, from 1, where it was printed, in the unit of the tool.
    pub column: Option<u32>,
}

/// A diagnostic of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolDiagnostic {
    /// The tool.
    pub tool: Tool,
    /// Its severity.
    pub severity: DiagnosticSeverity,
    /// The code or the name of the rule, where one was printed: `E0308`, `unused_imports`.
    pub rule: Option<String>,
    /// The message in one line.
    pub message: String,
    /// Where in the source it is; none for what concerns no file.
    pub location: Option<SourceLocation>,
    /// Where in the output it was printed.
    pub position: OutputPosition,
}
