//! What was recognised in an output.

use crate::diagnostic::{DiagnosticSeverity, ToolDiagnostic};

/// The diagnostics of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Diagnostics in the order in which they were printed.
    pub diagnostics: Vec<ToolDiagnostic>,
    /// Diagnostics beyond the [limits](crate::limits).
    pub omitted_diagnostics: u64,
}

impl Report {
    /// The number of diagnostics of a severity.
    #[must_use]
    pub fn count(&self, severity: DiagnosticSeverity) -> u64 {
        let of_severity = |one: &&ToolDiagnostic| one.severity == severity;
        self.diagnostics.iter().filter(of_severity).count() as u64
    }
}
