//! The largest values that the samples of one execution showed.

use serde::{Deserialize, Serialize};

use crate::UsageSample;

/// The largest value of each resource over all samples of an execution; none where no sample
/// measured it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UsagePeaks {
    /// The most processor time of one interval between samples, in percent of one core.
    pub cpu_percent: Option<f32>,
    /// Resident memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Bytes by which the workspace grew.
    pub disk_bytes: Option<u64>,
    /// Bytes read from storage, up to the last sample.
    pub read_bytes: Option<u64>,
    /// Bytes written to storage, up to the last sample.
    pub written_bytes: Option<u64>,
    /// Bytes received through its own network namespace, up to the last sample.
    pub received_bytes: Option<u64>,
    /// Bytes sent through its own network namespace, up to the last sample.
    pub sent_bytes: Option<u64>,
    /// Living processes.
    pub processes: Option<u32>,
}

impl UsagePeaks {
    /// Includes one sample.
    pub fn observe(&mut self, sample: &UsageSample) {
        let cpu = sample.cpu_percent.into_iter().chain(self.cpu_percent);
        self.cpu_percent = cpu.reduce(f32::max);
        // None is less than every value.
        self.memory_bytes = self.memory_bytes.max(Some(sample.memory_bytes));
        self.disk_bytes = self.disk_bytes.max(sample.disk_bytes);
        self.read_bytes = self.read_bytes.max(sample.read_bytes);
        self.written_bytes = self.written_bytes.max(sample.written_bytes);
        self.received_bytes = self.received_bytes.max(sample.received_bytes);
        self.sent_bytes = self.sent_bytes.max(sample.sent_bytes);
        self.processes = self.processes.max(Some(sample.processes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_each_is_kept_and_what_was_never_measured_is_none() {
        let mut peaks = UsagePeaks::default();
        peaks.observe(&UsageSample {
            cpu_percent: Some(80.0),
            memory_bytes: 10,
            read_bytes: Some(0),
            processes: 3,
            ..UsageSample::default()
        });
        peaks.observe(&UsageSample {
            memory_bytes: 20,
            processes: 1,
            ..UsageSample::default()
        });
        let expected = UsagePeaks {
            cpu_percent: Some(80.0),
            memory_bytes: Some(20),
            read_bytes: Some(0),
            processes: Some(3),
            ..UsagePeaks::default()
        };
        assert_eq!(peaks, expected);
    }
}
