//! The list of measurements, in order.

use super::super::context::Measure;
use super::{commits, egress_proxy, start_latency};

/// Every measurement with its name.
pub(in crate::bench) const ALL: &[(&str, Measure)] = &[
    ("starts", start_latency::by_the_sandbox),
    ("starts-mcp", start_latency::over_mcp),
    ("gate", egress_proxy::throughput),
    ("commit", commits::ten_thousand_files),
];
