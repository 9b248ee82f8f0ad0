//! The schedule of a probe: repeated until it passes.

use std::time::Duration;

use ostler_model::SignalKind;

use super::input::{ProbeOutcome, ProbeRequest};
use super::limits::{CONFIRM, RETRY, RETRY_MAX};
use super::output::excerpt;
use super::probe_target::HttpProbeOptions;

/// A probe and its success criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProbeSpec {
    pub(super) request: ProbeRequest,
    /// The inode of the tree's socket that it goes to; none for a target outside the tree.
    pub(super) inode: Option<u64>,
    pub(super) criterion: ProbeCriterion,
}

/// The criterion of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeCriterion {
    /// Any status but 503, or a connection accepted by a server that does not speak HTTP.
    Answers,
    /// A status from 200 to 399.
    Succeeds,
    /// Any status, or an accepted connection: detects the protocol.
    Speaks,
    /// An accepted connection.
    Connects,
    /// Exit code 0.
    Exits,
}

/// A probe that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProbeSuccess {
    /// The kind of evidence.
    pub(super) kind: SignalKind,
    pub(super) detail: String,
    /// Whether TLS was spoken, where HTTP was.
    pub(super) tls: Option<bool>,
    /// The status, where HTTP was spoken.
    pub(super) status: Option<u16>,
    /// Whether no reply arrived: it may still speak HTTP.
    pub(super) silent: bool,
    pub(super) at: Duration,
    /// Whether a socket that still listens must confirm it: the kernel accepts connections for a
    /// program that is about to die.
    pub(super) confirm: bool,
}

/// Evaluates a result: success, or the cause of the failure.
pub(super) fn evaluate(
    spec: &ProbeSpec,
    result: ProbeOutcome,
    at: Duration,
) -> Result<ProbeSuccess, String> {
    let success = |kind, detail| ProbeSuccess {
        kind,
        detail,
        tls: None,
        status: None,
        silent: false,
        at,
        confirm: false,
    };
    let connected = |detail: String| ProbeSuccess {
        confirm: spec.inode.is_some(),
        ..success(SignalKind::Tcp, detail)
    };
    match (spec.criterion, result) {
        (_, ProbeOutcome::Failed { detail }) => Err(excerpt(&detail)),
        (ProbeCriterion::Exits, ProbeOutcome::Exec { code: 0, .. }) => Ok(success(
            SignalKind::Exec,
            format!("{} exited with 0", describe_request(&spec.request)),
        )),
        (_, ProbeOutcome::Exec { code, output }) => {
            let output = excerpt(output.trim());
            let gap = if output.is_empty() { "" } else { ": " };
            Err(format!("exit code {code}{gap}{output}"))
        }
        (ProbeCriterion::Answers, ProbeOutcome::Http { status: 503, .. }) => Err("503".to_owned()),
        (ProbeCriterion::Succeeds, ProbeOutcome::Http { status, .. })
            if !(200..400).contains(&status) =>
        {
            Err(status.to_string())
        }
        (
            ProbeCriterion::Answers | ProbeCriterion::Succeeds | ProbeCriterion::Speaks,
            ProbeOutcome::Http { status, tls, ms },
        ) => Ok(ProbeSuccess {
            tls: Some(tls),
            status: Some(status),
            ..success(
                SignalKind::Http,
                format!(
                    "{} answered {status} in {ms} ms",
                    describe_request(&spec.request)
                ),
            )
        }),
        (ProbeCriterion::Answers | ProbeCriterion::Speaks, ProbeOutcome::Accepted { detail }) => {
            Ok(connected(format!(
                "{} takes connections ({})",
                describe_address(&spec.request),
                excerpt(&detail)
            )))
        }
        (ProbeCriterion::Answers | ProbeCriterion::Speaks, ProbeOutcome::Silent { ms }) => {
            Ok(ProbeSuccess {
                silent: true,
                ..connected(format!(
                    "{} takes connections (and says nothing for {ms} ms)",
                    describe_address(&spec.request)
                ))
            })
        }
        (ProbeCriterion::Succeeds, ProbeOutcome::Silent { ms }) => {
            Err(format!("no answer within {ms} ms"))
        }
        (
            ProbeCriterion::Connects,
            ProbeOutcome::Accepted { .. } | ProbeOutcome::Http { .. } | ProbeOutcome::Silent { .. },
        ) => Ok(connected(format!(
            "{} takes connections",
            describe_address(&spec.request)
        ))),
        (ProbeCriterion::Succeeds, ProbeOutcome::Accepted { detail }) => Err(excerpt(&detail)),
        (
            ProbeCriterion::Exits,
            ProbeOutcome::Http { .. } | ProbeOutcome::Accepted { .. } | ProbeOutcome::Silent { .. },
        ) => Err("answered something else".to_owned()),
    }
}

/// A probe request, as text.
fn describe_request(request: &ProbeRequest) -> String {
    match request {
        ProbeRequest::Http { path, .. } => {
            format!("GET {} at {}", excerpt(path), describe_address(request))
        }
        ProbeRequest::Tcp { .. } => describe_address(request),
        ProbeRequest::Exec { argv } => {
            let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
            format!("`{}`", excerpt(&words.join(" ")))
        }
    }
}

fn describe_address(request: &ProbeRequest) -> String {
    match request {
        ProbeRequest::Http { address, .. } | ProbeRequest::Tcp { address } => address.to_string(),
        ProbeRequest::Exec { .. } => describe_request(request),
    }
}

/// Repeats one probe until it succeeds.
#[derive(Debug, Clone, Default)]
pub(super) struct ProbeState {
    spec: Option<ProbeSpec>,
    due: Duration,
    tries: u32,
    last_failure: Option<String>,
    success: Option<ProbeSuccess>,
}

impl ProbeState {
    /// Sets the probe; another one starts over.
    pub(super) fn set_spec(&mut self, aim: Option<ProbeSpec>, at: Duration) {
        if self.spec != aim {
            *self = Self {
                spec: aim,
                due: at,
                ..Self::default()
            };
        }
    }

    /// The probe that should be in progress; the same until its result arrives.
    pub(super) fn due_probe(&self, at: Duration) -> Option<&ProbeRequest> {
        let spec = self
            .spec
            .as_ref()
            .filter(|_| self.success.is_none() && self.due <= at)?;
        Some(&spec.request)
    }

    /// Handles a result; one that is not awaited is dropped.
    pub(super) fn handle_result(&mut self, answered: ProbeOutcome, at: Duration) {
        let Some(spec) = self
            .spec
            .as_ref()
            .filter(|_| self.success.is_none() && self.due <= at)
        else {
            return;
        };
        match evaluate(spec, answered, at) {
            Ok(success) => self.success = Some(success),
            Err(detail) => self.schedule_retry(detail, at),
        }
    }

    /// The success, confirmed where necessary: whether the last scan, at `scanned_at`, shows the
    /// socket with an empty accept queue.
    pub(super) fn confirmed_success(
        &mut self,
        scanned_at: Option<Duration>,
        is_listening: impl Fn(u64) -> bool,
        at: Duration,
    ) -> Option<ProbeSuccess> {
        let success = self.success.as_ref()?;
        if !success.confirm {
            return Some(success.clone());
        }
        if scanned_at.is_none_or(|scanned| scanned <= success.at) {
            return None;
        }
        let inode = self.spec.as_ref().and_then(|it| it.inode);
        if inode.is_some_and(is_listening) {
            return self.success.clone();
        }
        let detail = success.detail.clone();
        self.success = None;
        self.schedule_retry(detail, at);
        None
    }

    /// Whether the target is outside the tree.
    pub(super) fn is_outside(&self) -> bool {
        self.spec.as_ref().is_some_and(|it| it.inode.is_none())
    }

    /// How the current request to this socket is tried: a probe must not change by what was
    /// detected meanwhile.
    pub(super) fn http_options(&self, inode: u64) -> Option<HttpProbeOptions> {
        let spec = self.spec.as_ref().filter(|it| it.inode == Some(inode))?;
        match &spec.request {
            ProbeRequest::Http { tls, unsure, .. } => Some(HttpProbeOptions {
                tls: *tls,
                unsure: *unsure,
            }),
            ProbeRequest::Tcp { .. } | ProbeRequest::Exec { .. } => None,
        }
    }

    /// When the next try is due.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.spec.is_some() && self.success.is_none()).then_some(self.due)
    }

    /// When a scan is needed to confirm a success.
    pub(super) fn confirm_at(&self, scanned_at: Option<Duration>) -> Option<Duration> {
        let success = self.success.as_ref().filter(|it| it.confirm)?;
        let is_pending = scanned_at.is_none_or(|scanned| scanned <= success.at);
        is_pending.then_some(success.at + CONFIRM)
    }

    /// Why the last try failed.
    pub(super) fn last_failure(&self) -> Option<&str> {
        self.last_failure.as_deref()
    }

    fn schedule_retry(&mut self, detail: String, at: Duration) {
        self.due = at + RETRY.saturating_mul(1 << self.tries.min(8)).min(RETRY_MAX);
        self.tries += 1;
        self.last_failure = Some(detail);
    }
}

#[cfg(test)]
#[path = "probing_tests.rs"]
mod tests;
