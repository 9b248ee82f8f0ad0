//! The state of an execution: a fold of its events. [`State::apply`] is the only mutator.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::autorun::AutorunReport;
use crate::capability::MissingCapability;
use crate::event::{DegradedCapability, Event, EventRecord, StopReason, TrimReason};
use crate::isolation::LimitKind;
use crate::ranges::Ranges;
use crate::service::{ReadinessSignal, ServicePort, ServiceStage};
use crate::snapshot::Usage;
use crate::term_size::TermSize;
use crate::termination::{LostReason, Termination};

/// The phase of an execution's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Accepted, with no process yet (or none between two attempts).
    #[default]
    Starting,
    /// A process is running.
    Running,
    /// It is being stopped.
    Stopping,
    /// It ended for good.
    Finished,
}

/// The state of one execution.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct State {
    /// The phase of its life.
    pub phase: Phase,
    /// The number of events folded so far; the next event must have this number.
    pub events: u64,
    /// When the request was accepted.
    pub created_at: Option<Timestamp>,
    /// When the first process was started.
    pub started_at: Option<Timestamp>,
    /// When the process of the newest attempt was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The newest attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The OS pid of the newest attempt, kept after its end for the record; none where its process
    /// could not be started.
    pub pid: Option<u32>,
    /// Why the newest attempt counts as ready, or as running with nothing to probe.
    pub ready_evidence: Option<String>,
    /// The stage of the newest attempt of a service; none before the first evidence and after its
    /// end.
    #[serde(default)]
    pub stage: Option<ServiceStage>,
    /// The evidence for the stage.
    #[serde(default)]
    pub signs: Vec<ReadinessSignal>,
    /// The listening ports.
    #[serde(default)]
    pub ports: Vec<ServicePort>,
    /// The service's URL, where it is known.
    #[serde(default)]
    pub url: Option<String>,
    /// The warnings reported with readiness.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether it is healthy, where a change was observed.
    pub healthy: Option<bool>,
    /// The result of the last health change, as text.
    #[serde(default)]
    pub health: Option<String>,
    /// When the next attempt starts, between two attempts.
    #[serde(default)]
    pub backoff_until: Option<Timestamp>,
    /// How the leader of the previous attempt ended, or why it could not be started, as text; empty
    /// before the first end.
    #[serde(default)]
    pub last_end: Option<String>,
    /// Why the newest attempt is being stopped so that the next one starts, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_reason: Option<String>,
    /// The attempt that the newest restart on request starts, as a number from 1; 0 before the first
    /// such restart.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requested_attempt: u32,
    /// Whether the leader ended and the processes it left continue the service.
    #[serde(default)]
    pub detached: bool,
    /// Whether the process tree is frozen.
    pub paused: bool,
    /// The prompt that waits for an answer.
    pub prompt: Option<String>,
    /// How many prompts were detected.
    #[serde(default)]
    pub prompts: u32,
    /// The terminal's size since it was last changed; none while it is still that of the spec.
    /// Later attempts keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TermSize>,
    /// Why it is being stopped; the first decision is kept.
    pub stopping: Option<StopReason>,
    /// How it ended.
    pub ending: Option<Termination>,
    /// The number of processes that leaders left and that were killed, over all attempts.
    pub leftovers: u32,
    /// How often a newly started daemon found it alive.
    pub adoptions: u32,
    /// The number of output bytes that were dropped.
    pub trimmed_bytes: u64,
    /// The offsets of those that were dropped on purpose: cleared on request, or by retention.
    #[serde(default)]
    pub dropped: Ranges,
    /// The capabilities that were requested and missing.
    pub missing: Vec<MissingCapability>,
    /// What happened to its output while it ran, as text: the disk refused it, or took it again.
    pub degraded: Vec<String>,
    /// The enforced capabilities that the newest attempt lost while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_capabilities: Vec<MissingCapability>,
    /// The limits that were reached, each once.
    pub limits_hit: Vec<LimitKind>,
    /// The outcome of the workspace's overlay; none without an overlay or a decision.
    pub workspace: Option<crate::overlay::OverlayOutcome>,
    /// The autorun files that it made or changed in its workspace.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
    /// The resource usage of the process tree.
    pub usage: Usage,
}

impl State {
    /// Folds these events into a new state.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a EventRecord>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Whether the newest attempt runs and is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Some(ServiceStage::Ready)
    }

    /// When its newest attempt was started, or the first one, where the newest could not be.
    #[must_use]
    pub fn newest_start(&self) -> Option<Timestamp> {
        self.attempt_started_at.or(self.started_at)
    }

    /// The pid that people are told: that of the leader; where that ended and left the service to
    /// other processes, of the one that listens on the main port, if there is one.
    #[must_use]
    pub fn shown_pid(&self) -> Option<u32> {
        if !self.detached || self.is_finished() {
            return self.pid;
        }
        self.ports.iter().find(|it| it.main).map(|it| it.pid)
    }

    /// What was lost while it ran, as text.
    pub fn degradations(&self) -> impl Iterator<Item = &String> {
        let lost = self.lost_capabilities.iter().map(|it| &it.reason);
        self.degraded.iter().chain(lost)
    }

    /// Whether it ended for good.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Applies one event. Nothing after `Finished` changes how it ended.
    pub fn apply(&mut self, record: &EventRecord) {
        self.events = record.seq + 1;
        match &record.event {
            Event::Created { missing } => {
                self.created_at = Some(record.at);
                self.missing.clone_from(missing);
            }
            Event::Started { attempt, pid } => self.start(record.at, *attempt, *pid),
            Event::SpawnFailed {
                attempt, message, ..
            } => self.fail_to_start(*attempt, message),
            Event::Ports { ports, url, .. } => {
                self.ports.clone_from(ports);
                self.url.clone_from(url);
            }
            Event::Stage { stage, sign, .. } => {
                self.stage = Some(*stage);
                self.signs.push(sign.clone());
            }
            Event::Ready {
                evidence,
                signs,
                unprobed,
                warnings,
                ..
            } => {
                self.become_ready(evidence, *unprobed);
                self.signs.clone_from(signs);
                self.warnings.clone_from(warnings);
            }
            Event::Health { ok, detail } => self.set_health(*ok, detail),
            Event::Detached { .. } => self.detached = true,
            Event::PromptDetected { text, .. } => {
                self.prompt = Some(text.clone());
                self.prompts = self.prompts.saturating_add(1);
            }
            Event::PromptAnswered { .. } | Event::PromptGone {} | Event::Input { .. } => {
                self.prompt = None;
            }
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } => self.paused = false,
            Event::Sampled { usage } => self.usage = *usage,
            Event::LimitHit { limit } => self.record_limit(*limit),
            Event::Autorun { report } => self.autorun.merge(report),
            Event::Workspace { fate, .. } => self.workspace = Some(*fate),
            Event::Degraded { ability, detail } => self.degrade(*ability, detail),
            Event::Stopping { order } => self.stop(order),
            Event::Exited {
                leftovers,
                usage,
                status,
                ..
            } => {
                self.last_end = Some(self.describe_attempt_end(status.to_string()));
                self.exit(*leftovers, *usage);
            }
            Event::Adopted { attempt } => self.adopt(*attempt),
            Event::Trimmed { from, to, reason } => self.trim(*from, *to, *reason),
            Event::Finished { ending } => self.finish(record.at, ending),
            Event::Resized { size } => self.size = Some(*size),
            Event::Backoff { until, lost, .. } => self.back_off(*until, *lost),
            Event::Restarting {
                attempt,
                by,
                reason,
            } => self.begin_restart(*attempt, by.is_some(), reason),
            Event::Refused { .. }
            | Event::Interaction { .. }
            | Event::Context { .. }
            | Event::Requested { .. }
            | Event::Alert { .. }
            | Event::LeaseTaken { .. } => {}
        }
    }

    fn start(&mut self, at: Timestamp, attempt: u32, pid: u32) {
        self.attempt = attempt;
        self.pid = Some(pid);
        self.started_at.get_or_insert(at);
        self.attempt_started_at = Some(at);
        self.clear_readiness();
        self.lost_capabilities.clear();
        self.restart_reason = None;
        self.backoff_until = None;
        self.detached = false;
        if self.phase == Phase::Starting {
            self.phase = Phase::Running;
        }
    }

    /// Between two attempts, no process is stopped.
    fn begin_restart(&mut self, attempt: u32, is_requested: bool, reason: &str) {
        if self.phase == Phase::Running {
            self.restart_reason = Some(reason.to_owned());
        }
        if is_requested {
            self.requested_attempt = attempt.saturating_add(1);
        }
    }

    /// The observations and the process id are those of the attempt before.
    fn fail_to_start(&mut self, attempt: u32, message: &str) {
        self.attempt = attempt;
        self.pid = None;
        self.attempt_started_at = None;
        self.backoff_until = None;
        self.last_end = Some(format!("could not start: {message}"));
        self.clear_readiness();
    }

    fn become_ready(&mut self, evidence: &str, unprobed: bool) {
        self.ready_evidence = Some(evidence.to_owned());
        self.stage = Some(if unprobed {
            ServiceStage::Running
        } else {
            ServiceStage::Ready
        });
        self.healthy = None;
        self.health = None;
    }

    fn back_off(&mut self, until: Timestamp, lost: Option<LostReason>) {
        self.backoff_until = Some(until);
        if let Some(reason) = lost {
            self.last_end = Some(reason.describe().to_owned());
            self.exit(0, self.usage);
        }
        self.clear_readiness();
    }

    fn describe_attempt_end(&mut self, status: String) -> String {
        match self.restart_reason.take() {
            Some(reason) => format!("{status}, stopped for a restart: {reason}"),
            None => status,
        }
    }

    fn set_health(&mut self, ok: bool, detail: &str) {
        self.healthy = Some(ok);
        self.health = Some(detail.to_owned());
    }

    /// Resets the observations of an attempt: they do not apply to the next one.
    fn clear_readiness(&mut self) {
        self.ready_evidence = None;
        self.stage = None;
        self.signs.clear();
        self.ports.clear();
        self.url = None;
        self.warnings.clear();
        self.healthy = None;
        self.health = None;
    }

    fn degrade(&mut self, ability: DegradedCapability, detail: &str) {
        match ability {
            DegradedCapability::Journal => self.degraded.push(detail.to_owned()),
            DegradedCapability::Enforcement(ability) => {
                let reason = detail.to_owned();
                self.lost_capabilities
                    .push(MissingCapability { ability, reason });
            }
        }
    }

    fn trim(&mut self, from: u64, to: u64, reason: TrimReason) {
        self.trimmed_bytes += to.saturating_sub(from);
        match reason {
            TrimReason::Cleared | TrimReason::Retention => self.dropped.add(from, to),
            TrimReason::DiskFull => {}
        }
    }

    /// How many of the bytes `from..to`, which cannot be read, were lost, by a full disk or damaged
    /// files: those that no event reports as dropped on purpose.
    #[must_use]
    pub fn lost_bytes(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from) - self.dropped.count_within(from, to)
    }

    fn stop(&mut self, order: &StopReason) {
        if self.phase != Phase::Finished {
            self.phase = Phase::Stopping;
            self.stopping.get_or_insert_with(|| order.clone());
        }
    }

    fn exit(&mut self, leftovers: u32, usage: Usage) {
        self.leftovers += leftovers;
        self.usage = usage;
        self.paused = false;
        self.prompt = None;
        self.stage = None;
        if self.phase == Phase::Running {
            self.phase = Phase::Starting;
        }
    }

    fn adopt(&mut self, attempt: u32) {
        self.adoptions += 1;
        self.attempt = self.attempt.max(attempt);
    }

    fn record_limit(&mut self, limit: LimitKind) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
        }
    }

    fn finish(&mut self, at: Timestamp, ending: &Termination) {
        if self.ending.is_none() {
            self.phase = Phase::Finished;
            self.ended_at = Some(at);
            self.ending = Some(ending.clone());
            self.paused = false;
            self.prompt = None;
        }
    }
}

/// Whether the number is left out of the stored state.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
