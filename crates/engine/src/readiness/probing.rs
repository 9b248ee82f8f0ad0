//! One probe after the other, until it passes.

use std::time::Duration;

use ostler_model::SignKind;

use super::heard::told;
use super::limits::{CONFIRM, RETRY, RETRY_MAX};
use super::seen::{Answered, ProbeOrder};

/// What is probed, and what counts as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aim {
    /// The probe.
    pub(super) order: ProbeOrder,
    /// The socket of the tree it goes to; none for one outside.
    pub(super) inode: Option<u64>,
    /// What counts.
    pub(super) pass: Pass,
}

/// What counts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Any status but 503, or a connection taken by something that speaks no HTTP.
    Answers,
    /// A status from 200 to 399.
    Succeeds,
    /// Any status, or a connection taken: it is to be found out what it speaks.
    Speaks,
    /// A connection taken.
    Connects,
    /// Exit code 0.
    Exits,
}

/// A probe that was passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passed {
    /// What showed it.
    pub(super) kind: SignKind,
    /// In words.
    pub(super) detail: String,
    /// Whether TLS was spoken, where HTTP was.
    pub(super) tls: Option<bool>,
    /// The status, where HTTP was spoken.
    pub(super) status: Option<u16>,
    /// Whether nothing came back: it may speak HTTP still.
    pub(super) silent: bool,
    /// When.
    pub(super) at: Duration,
    /// Whether a socket that still listens must confirm it: the kernel takes connections for a
    /// program that is about to die.
    pub(super) confirm: bool,
}

/// Judges an answer: passed, or why not.
pub(super) fn judge(aim: &Aim, answered: Answered, at: Duration) -> Result<Passed, String> {
    let passed = |kind, detail| Passed {
        kind,
        detail,
        tls: None,
        status: None,
        silent: false,
        at,
        confirm: false,
    };
    let taken = |detail: String| Passed {
        confirm: aim.inode.is_some(),
        ..passed(SignKind::Tcp, detail)
    };
    match (aim.pass, answered) {
        (_, Answered::Failed { detail }) => Err(told(&detail)),
        (Pass::Exits, Answered::Exec { code: 0, .. }) => Ok(passed(
            SignKind::Exec,
            format!("{} exited with 0", target(&aim.order)),
        )),
        (_, Answered::Exec { code, output }) => {
            let output = told(output.trim());
            let gap = if output.is_empty() { "" } else { ": " };
            Err(format!("exit code {code}{gap}{output}"))
        }
        (Pass::Answers, Answered::Http { status: 503, .. }) => Err("503".to_owned()),
        (Pass::Succeeds, Answered::Http { status, .. }) if !(200..400).contains(&status) => {
            Err(status.to_string())
        }
        (Pass::Answers | Pass::Succeeds | Pass::Speaks, Answered::Http { status, tls, ms }) => {
            Ok(Passed {
                tls: Some(tls),
                status: Some(status),
                ..passed(
                    SignKind::Http,
                    format!("{} answered {status} in {ms} ms", target(&aim.order)),
                )
            })
        }
        (Pass::Answers | Pass::Speaks, Answered::Accepted { detail }) => Ok(taken(format!(
            "{} takes connections ({})",
            place(&aim.order),
            told(&detail)
        ))),
        (Pass::Answers | Pass::Speaks, Answered::Silent { ms }) => Ok(Passed {
            silent: true,
            ..taken(format!(
                "{} takes connections (and says nothing for {ms} ms)",
                place(&aim.order)
            ))
        }),
        (Pass::Succeeds, Answered::Silent { ms }) => Err(format!("no answer within {ms} ms")),
        (
            Pass::Connects,
            Answered::Accepted { .. } | Answered::Http { .. } | Answered::Silent { .. },
        ) => Ok(taken(format!("{} takes connections", place(&aim.order)))),
        (Pass::Succeeds, Answered::Accepted { detail }) => Err(told(&detail)),
        (
            Pass::Exits,
            Answered::Http { .. } | Answered::Accepted { .. } | Answered::Silent { .. },
        ) => Err("answered something else".to_owned()),
    }
}

/// What a probe asks, in words.
fn target(order: &ProbeOrder) -> String {
    match order {
        ProbeOrder::Http { path, .. } => format!("GET {} at {}", told(path), place(order)),
        ProbeOrder::Tcp { .. } => place(order),
        ProbeOrder::Exec { argv } => {
            let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
            format!("`{}`", told(&words.join(" ")))
        }
    }
}

fn place(order: &ProbeOrder) -> String {
    match order {
        ProbeOrder::Http { address, .. } | ProbeOrder::Tcp { address } => address.to_string(),
        ProbeOrder::Exec { .. } => target(order),
    }
}

/// Probes one aim until it passes.
#[derive(Debug, Clone, Default)]
pub(super) struct Probing {
    aim: Option<Aim>,
    due: Duration,
    tries: u32,
    failed: Option<String>,
    passed: Option<Passed>,
}

impl Probing {
    /// Sets what is to be probed; a new aim begins anew.
    pub(super) fn aim(&mut self, aim: Option<Aim>, at: Duration) {
        if self.aim != aim {
            *self = Self {
                aim,
                due: at,
                ..Self::default()
            };
        }
    }

    /// The probe that is to be under way; the same until it was answered.
    pub(super) fn order(&self, at: Duration) -> Option<&ProbeOrder> {
        let aim = self
            .aim
            .as_ref()
            .filter(|_| self.passed.is_none() && self.due <= at)?;
        Some(&aim.order)
    }

    /// Takes in an answer; one nobody waits for is dropped.
    pub(super) fn answered(&mut self, answered: Answered, at: Duration) {
        let Some(aim) = self
            .aim
            .as_ref()
            .filter(|_| self.passed.is_none() && self.due <= at)
        else {
            return;
        };
        match judge(aim, answered, at) {
            Ok(passed) => self.passed = Some(passed),
            Err(detail) => self.fail(detail, at),
        }
    }

    /// What was passed, confirmed where that is needed: the last scan was at `scanned` and shows
    /// the socket, with nobody waiting at it, or not.
    pub(super) fn passed(
        &mut self,
        scanned: Option<Duration>,
        shows: impl Fn(u64) -> bool,
        at: Duration,
    ) -> Option<Passed> {
        let passed = self.passed.as_ref()?;
        if !passed.confirm {
            return Some(passed.clone());
        }
        if scanned.is_none_or(|scanned| scanned <= passed.at) {
            return None;
        }
        let inode = self.aim.as_ref().and_then(|it| it.inode);
        if inode.is_some_and(shows) {
            return self.passed.clone();
        }
        let detail = passed.detail.clone();
        self.passed = None;
        self.fail(detail, at);
        None
    }

    /// Whether the aim is no socket of the tree.
    pub(super) fn is_outside(&self) -> bool {
        self.aim.as_ref().is_some_and(|it| it.inode.is_none())
    }

    /// Whether TLS is tried first at this socket, and whether it may speak something else: a
    /// probe is not to change by what was found out meanwhile.
    pub(super) fn manner(&self, inode: u64) -> Option<(bool, bool)> {
        let aim = self.aim.as_ref().filter(|it| it.inode == Some(inode))?;
        match &aim.order {
            ProbeOrder::Http { tls, unsure, .. } => Some((*tls, *unsure)),
            ProbeOrder::Tcp { .. } | ProbeOrder::Exec { .. } => None,
        }
    }

    /// When the next try is due.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.aim.is_some() && self.passed.is_none()).then_some(self.due)
    }

    /// When a scan is needed to confirm what was passed.
    pub(super) fn unconfirmed(&self, scanned: Option<Duration>) -> Option<Duration> {
        let passed = self.passed.as_ref().filter(|it| it.confirm)?;
        let open = scanned.is_none_or(|scanned| scanned <= passed.at);
        open.then_some(passed.at + CONFIRM)
    }

    /// Why the last try failed.
    pub(super) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn fail(&mut self, detail: String, at: Duration) {
        self.due = at + RETRY.saturating_mul(1 << self.tries.min(8)).min(RETRY_MAX);
        self.tries += 1;
        self.failed = Some(detail);
    }
}

#[cfg(test)]
#[path = "probing_tests.rs"]
mod tests;
