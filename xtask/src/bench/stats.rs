//! Summaries of samples.

use std::time::Duration;

/// Median and 99th percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LatencySummary {
    /// Half of the samples are at most this, in milliseconds.
    pub(super) p50: f64,
    /// All but one in a hundred are at most this, in milliseconds.
    pub(super) p99: f64,
}

impl LatencySummary {
    /// The summary of at least one sample.
    pub(super) fn from_samples(samples: &[Duration]) -> Self {
        let mut millis: Vec<f64> = samples
            .iter()
            .map(|sample| sample.as_secs_f64() * 1_000.0)
            .collect();
        millis.sort_unstable_by(f64::total_cmp);
        Self {
            p50: percentile(&millis, 50),
            p99: percentile(&millis, 99),
        }
    }
}

/// The median of a few values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    percentile(&values, 50)
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last * percent).div_ceil(100))
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_samples() {
        let samples: Vec<Duration> = (0..=100).map(Duration::from_millis).collect();
        assert_eq!(
            LatencySummary::from_samples(&samples),
            LatencySummary {
                p50: 50.0,
                p99: 99.0
            }
        );
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
