//! Alerts: what an execution may use before somebody is told.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::duration;
use crate::isolation::Limits;
use crate::millis::optional_millis;
use crate::quantity::parse_bytes;

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// Processor time, in percent of one core.
    Cpu,
    /// Resident memory, in bytes.
    Memory,
    /// Bytes by which the workspace has grown.
    Disk,
    /// Time since the start, in milliseconds.
    RunTime,
    /// Time without output and with next to no processor time, in milliseconds.
    Idle,
}

/// What happened to an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// The threshold was crossed.
    Raised,
    /// It is well below the threshold again.
    Resolved,
}

/// From which values on somebody is told; none of a field tells of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertThresholds {
    /// Processor time in percent of one core, over an interval between samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// Resident memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes by which the workspace has grown; measured where that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Time since the start, in milliseconds.
    #[serde(
        default,
        rename = "run_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub run_time: Option<Duration>,
    /// Time without output and with less than one percent of a core, in milliseconds.
    #[serde(
        default,
        rename = "idle_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub idle: Option<Duration>,
}

/// The error for a text that is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("alert '{given}'; allowed: {allowed}")]
pub struct AlertTextError {
    /// The text as given.
    pub given: String,
    /// The allowed texts.
    pub allowed: &'static str,
}

/// The share of a limit from which on an alert is raised by default, in tenths: before the limit
/// is enforced.
const LIMIT_TENTHS: u128 = 9;

impl AlertKind {
    /// The kind in one word, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::RunTime => "run_time",
            Self::Idle => "idle",
        }
    }
}

impl AlertState {
    /// The state in one word, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Resolved => "resolved",
        }
    }
}

impl fmt::Display for AlertKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for AlertState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl AlertThresholds {
    /// The highest threshold of processor time, in percent of one core: 1,024 cores.
    pub const CPU_PERCENT_MAX: u32 = 102_400;

    /// Nine tenths of these limits.
    #[must_use]
    pub fn of_limits(limits: &Limits) -> Self {
        let share = |limit: u64| {
            let share = u128::from(limit) * LIMIT_TENTHS / 10;
            u64::try_from(share).unwrap_or(u64::MAX).max(1)
        };
        // Thousandths of a core are tenths of a percent.
        let percent = |millis: u32| {
            let percent = share(u64::from(millis)).div_ceil(10);
            u32::try_from(percent).unwrap_or(u32::MAX)
        };
        Self {
            cpu_percent: limits.cpu_millis.map(percent),
            memory_bytes: limits.memory_bytes.map(share),
            disk_bytes: limits.disk_bytes.map(share),
            run_time: None,
            idle: None,
        }
    }

    /// These, and those of `base` where there are none.
    #[must_use]
    pub fn or(self, base: Self) -> Self {
        Self {
            cpu_percent: self.cpu_percent.or(base.cpu_percent),
            memory_bytes: self.memory_bytes.or(base.memory_bytes),
            disk_bytes: self.disk_bytes.or(base.disk_bytes),
            run_time: self.run_time.or(base.run_time),
            idle: self.idle.or(base.idle),
        }
    }

    /// The threshold of a kind, in its unit.
    #[must_use]
    pub fn of(&self, kind: AlertKind) -> Option<u64> {
        match kind {
            AlertKind::Cpu => self.cpu_percent.map(u64::from),
            AlertKind::Memory => self.memory_bytes,
            AlertKind::Disk => self.disk_bytes,
            AlertKind::RunTime => self.run_time.map(duration::as_millis),
            AlertKind::Idle => self.idle.map(duration::as_millis),
        }
    }

    /// Sets one threshold by a text such as `cpu=80%`, `memory=400M`, `disk=1G`, `run=10m` or
    /// `idle=5m`.
    ///
    /// # Errors
    /// When it is none.
    pub fn set(&mut self, text: &str) -> Result<(), AlertTextError> {
        let error = |allowed| AlertTextError {
            given: text.to_owned(),
            allowed,
        };
        const FORMS: &str = "cpu=PERCENT, memory=SIZE, disk=SIZE, run=TIME, idle=TIME";
        const PERCENT: &str = "a percentage of one core such as cpu=80 or cpu=150%";
        const SIZE: &str = "bytes such as memory=400M or disk=1.5G";
        const TIME: &str = "a time such as run=10m or idle=90s";
        let (name, given) = text.split_once('=').ok_or_else(|| error(FORMS))?;
        let span = || {
            duration::parse(given)
                .filter(|time| !time.is_zero())
                .ok_or_else(|| error(TIME))
        };
        match name {
            "cpu" => {
                let percent = given.strip_suffix('%').unwrap_or(given).parse();
                let percent = percent
                    .ok()
                    .filter(|it| (1..=Self::CPU_PERCENT_MAX).contains(it));
                self.cpu_percent = Some(percent.ok_or_else(|| error(PERCENT))?);
            }
            "memory" => self.memory_bytes = Some(parse_bytes(given).ok_or_else(|| error(SIZE))?),
            "disk" => self.disk_bytes = Some(parse_bytes(given).ok_or_else(|| error(SIZE))?),
            "run" => self.run_time = Some(span()?),
            "idle" => self.idle = Some(span()?),
            _ => return Err(error(FORMS)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_limits_are_nine_tenths() {
        let limits = Limits {
            memory_bytes: Some(u64::MAX),
            cpu_millis: Some(150),
            disk_bytes: Some(1),
            ..Limits::default()
        };
        let thresholds = AlertThresholds::of_limits(&limits);
        assert_eq!(thresholds.cpu_percent, Some(14));
        assert_eq!(thresholds.disk_bytes, Some(1));
        assert!(thresholds.memory_bytes > Some(u64::MAX / 10 * 8));
        let none = AlertThresholds::of_limits(&Limits::default());
        assert_eq!(none, AlertThresholds::default());
    }

    #[test]
    fn texts() {
        let mut thresholds = AlertThresholds::default();
        for text in ["cpu=80%", "memory=400M", "disk=1G", "run=10m", "idle=90"] {
            thresholds.set(text).unwrap();
        }
        let want = AlertThresholds {
            cpu_percent: Some(80),
            memory_bytes: Some(400 << 20),
            disk_bytes: Some(1 << 30),
            run_time: Some(Duration::from_secs(600)),
            idle: Some(Duration::from_secs(90)),
        };
        assert_eq!(thresholds, want);
        for text in [
            "",
            "cpu",
            "cpu=0",
            "cpu=-1",
            "memory=0",
            "run=0s",
            "idle=soon",
            "heat=1",
        ] {
            assert!(thresholds.set(text).is_err(), "{text}");
        }
    }
}
