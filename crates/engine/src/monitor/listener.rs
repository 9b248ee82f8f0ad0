//! Who learns of samples.

use std::fmt;

use ostler_model::{ExecutionId, UsageSample};

/// Learns of every sample of every execution, in the order in which they are taken. Called from the
/// monitor's only task, between two batches of samples: an implementation never blocks and never
/// calls the monitor.
pub trait UsageListener: fmt::Debug + Send + Sync {
    /// A living execution was sampled.
    fn observed(&self, execution: ExecutionId, sample: &UsageSample);
}
