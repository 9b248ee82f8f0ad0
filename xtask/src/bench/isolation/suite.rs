//! Which measurements there are, in order.

use super::super::run::Measure;
use super::{commits, gate, starts};

/// Every measurement by its name.
pub(in crate::bench) const ALL: &[(&str, Measure)] = &[
    ("starts", starts::by_the_sandbox),
    ("starts-mcp", starts::over_mcp),
    ("gate", gate::throughput),
    ("commit", commits::ten_thousand_files),
];
