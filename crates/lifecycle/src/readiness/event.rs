//! What readiness reports, and what it wants to observe.

use std::time::Duration;

use ostler_model::{ReadinessSignal, ServicePort, ServiceStage};

use super::input::ProbeRequest;

/// A change of readiness. The supervisor turns it into events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessEvent {
    /// The listening ports changed (debounced; main port first).
    Ports {
        /// All ports.
        ports: Vec<ServicePort>,
        /// The URL of the main port.
        url: Option<String>,
    },
    /// It reached the next stage.
    Stage {
        /// `Listening` or `Responding`.
        stage: ServiceStage,
        /// The evidence.
        signal: ReadinessSignal,
    },
    /// It is ready, or runs without a readiness rule. A second one may follow an unprobed one.
    Ready {
        /// The evidence, as one sentence.
        evidence: String,
        /// Every signal during startup.
        signals: Vec<ReadinessSignal>,
        /// Whether there was nothing to probe.
        unprobed: bool,
        /// Warnings, for example another port than the requested one.
        warnings: Vec<String>,
    },
    /// It runs, and will not become ready in its present state; or was ready and is unhealthy.
    Unhealthy {
        /// The observation, as text.
        detail: String,
        /// Whether its health rule requires a restart.
        restart: bool,
    },
    /// It is healthy again.
    Healthy {
        /// The observation, as text.
        detail: String,
    },
}

/// What to observe next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchPlan {
    /// When to scan the sockets next, after the attempt's start; none for never. It stays unchanged
    /// until they were scanned.
    pub scan_at: Option<Duration>,
    /// The probe that should be in progress. It stays the same until its result arrives; where it
    /// changes, or becomes none, the probe in progress is dropped with its result.
    pub probe: Option<ProbeRequest>,
    /// The timeout of that probe.
    pub probe_timeout: Duration,
    /// Whether to pass on output.
    pub output: bool,
    /// Whether a scan includes unix sockets.
    pub unix: bool,
    /// Whether to listen on the notify socket.
    pub notify: bool,
    /// When [`ReadinessInput::Time`](super::ReadinessInput::Time) is due, after the attempt's start.
    pub wake_at: Option<Duration>,
}
