//! Reuse what is well, replace what is not, start what is not there (E6).

use std::sync::Arc;

use ostler_model::state::Phase;
use ostler_model::{Stage, State, StopOrder, Timestamp};

use super::clerk::{Clerk, Wanted};
use super::compose::with_port;
use super::locks::Key;
use super::view::plan_of;
use super::{Ensured, ServiceRequest, stopping, words};
use crate::entry::Entry;
use crate::error::Error;
use crate::stop;

/// What is done with a service that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is reused: why, in words.
    Reuse(String),
    /// It is ended and started anew: why, in words.
    Replace(String),
}

/// Decides about one that lives; `changed` where its definition is another one now.
pub(crate) fn judge(
    state: &State,
    waits_for: Option<&str>,
    changed: bool,
    now: Timestamp,
) -> Verdict {
    if state.phase == Phase::Stopping {
        return Verdict::Replace("the one before was stopping".to_owned());
    }
    if changed {
        return Verdict::Replace("its definition changed".to_owned());
    }
    if state.healthy == Some(false) {
        let detail = state.health.as_deref().unwrap_or("no reason is known");
        return Verdict::Replace(format!("it lived and was not well: {detail}"));
    }
    let since = state.signs.last().map(|sign| sign.at).or(state.started_at);
    let time = since.map(|since| words::span(words::between(since, now)));
    let time = time.map(|it| format!(" for {it}")).unwrap_or_default();
    let place = state.url.as_ref().map(|url| format!(" at {url}"));
    let place = place.unwrap_or_default();
    let frozen = if state.paused { ", but paused" } else { "" };
    if let Some(until) = state.backoff_until {
        let wait = words::span(words::between(now, until));
        let end = state.last_end.as_deref().unwrap_or("its end");
        return Verdict::Reuse(format!("it starts anew in {wait}, after {end}"));
    }
    Verdict::Reuse(match state.stage {
        None => {
            let waits = waits_for.map(|it| format!(", and waits for {it}"));
            format!("still starting{time}{}{frozen}", waits.unwrap_or_default())
        }
        Some(Stage::Listening) => format!("listening{time}{place}, not ready yet{frozen}"),
        Some(Stage::Responding) => format!("responding{time}{place}, not ready yet{frozen}"),
        Some(Stage::Running) => format!("running{time}{frozen}"),
        Some(Stage::Ready) => format!("ready{time}{place}{frozen}"),
    })
}

impl Clerk<'_> {
    /// One service, what it depends on left aside. Those who ensure the same one at the same
    /// time are answered in turn: the first starts it, the others reuse it.
    pub(crate) async fn ensure_one(self, wanted: &Wanted) -> Result<Ensured, Error> {
        let _turn = self.core.book.locks.lock(self.key(wanted)).await;
        let Some(entry) = self.living(wanted) else {
            return self.begun(wanted, false, "started").await;
        };
        let verdict = {
            let live = entry.live.borrow();
            let changed = is_changed(wanted, &entry);
            judge(
                &live.state,
                live.waits_for.as_deref(),
                changed,
                Timestamp::now(),
            )
        };
        match verdict {
            Verdict::Reuse(why) => {
                let other = if wanted.origin.is_some() || self.is_this(&wanted.request, &entry) {
                    ""
                } else {
                    "; it runs another command than the one asked for"
                };
                entry.give_out();
                Ok(Ensured {
                    service: self.told(&entry),
                    reused: true,
                    completes: false,
                    note: format!("reused: {why}{other}"),
                })
            }
            Verdict::Replace(why) => {
                self.end(&entry, format!("replaced: {why}")).await?;
                self.begun(wanted, false, &format!("replaced: {why}")).await
            }
        }
    }

    async fn begun(self, wanted: &Wanted, reused: bool, note: &str) -> Result<Ensured, Error> {
        let begun = self.begin(wanted).await?;
        let id = begun.id();
        begun.release();
        let entry = self.core.registry.get(id).ok_or(Error::NotFound)?;
        Ok(Ensured {
            service: self.told(&entry),
            reused,
            completes: false,
            note: note.to_owned(),
        })
    }

    /// Ends one, so that its ports are free for the next.
    pub(crate) async fn end(self, entry: &Arc<Entry>, reason: String) -> Result<(), Error> {
        let ports = stopping::ports_of(entry);
        let order = StopOrder::Requested {
            by: self.caller.owner.principal.clone(),
            reason: Some(reason),
            force: false,
        };
        stop::carry_out(self.core, entry, order, self.core.settings.grace).await?;
        // Whoever holds a port still is told when the next one wants it.
        let _held = stopping::until_free(self.core, &ports, stopping::PORTS_MS).await;
        Ok(())
    }

    /// The one that lives and is meant: of this name; without a name, of this command in this
    /// directory.
    fn living(self, wanted: &Wanted) -> Option<Arc<Entry>> {
        let request = &wanted.request;
        if let Some(name) = &request.name {
            return self.view().rival(name);
        }
        self.view()
            .rivals()
            .find(|entry| self.is_this(request, entry))
    }

    /// Whether it runs this command in this directory; its own may carry the port it was given.
    fn is_this(self, request: &ServiceRequest, entry: &Entry) -> bool {
        let command = &request.start.command;
        let with_its_port = || {
            let detected = self.core.book.detect(&self.core.settings, &request.start);
            let port = plan_of(entry).ready.port;
            port.is_some_and(|port| {
                with_port(command, detected.as_ref(), port) == entry.spec.command
            })
        };
        is_there(request, entry) && (*command == entry.spec.command || with_its_port())
    }

    /// Whose turn it is to wait for.
    fn key(self, wanted: &Wanted) -> Key {
        let manifest = wanted.origin.as_ref().and(self.manifest);
        let manifest = manifest.map(|it| it.path.clone());
        let request = &wanted.request;
        match &request.name {
            Some(name) => Key::new(self.caller, manifest, name),
            None => {
                let start = &request.start;
                let command = format!("{} {}", start.cwd, start.command.display());
                Key::new(self.caller, manifest, &command)
            }
        }
    }
}

/// Whether a definition is another one than the one it was started from.
fn is_changed(wanted: &Wanted, entry: &Entry) -> bool {
    let plan = plan_of(entry);
    match (&wanted.origin, &plan.defined_as) {
        (Some(origin), Some(was)) => {
            plan.defined_in.as_ref() == Some(&origin.defined_in) && *was != origin.defined_as
        }
        (Some(_), None) | (None, _) => false,
    }
}

/// Whether it runs in the same directory, links resolved.
fn is_there(request: &ServiceRequest, entry: &Entry) -> bool {
    let (one, other) = (&request.start.cwd, &entry.spec.cwd);
    let real = |path: &ostler_model::Text| std::fs::canonicalize(path.as_path()).ok();
    one == other || (real(one).is_some() && real(one) == real(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::{Sign, SignKind};
    use std::time::Duration;

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000).expect("a time")
    }

    fn ready(seconds_ago: u64) -> State {
        State {
            phase: Phase::Running,
            attempt: 1,
            stage: Some(Stage::Ready),
            url: Some("http://localhost:3000".to_owned()),
            signs: vec![Sign {
                kind: SignKind::Http,
                detail: String::new(),
                at: now() - Duration::from_secs(seconds_ago),
            }],
            ..State::default()
        }
    }

    #[test]
    fn what_is_well_is_reused_and_what_is_not_is_replaced() {
        let told = |state: &State| judge(state, Some("a port to listen"), false, now());
        let reuse = |why: &str| Verdict::Reuse(why.to_owned());
        assert_eq!(
            told(&ready(720)),
            reuse("ready for 12 min at http://localhost:3000")
        );
        let mut starting = ready(0);
        (starting.stage, starting.signs) = (None, Vec::new());
        starting.started_at = Some(now() - Duration::from_secs(3));
        assert_eq!(
            told(&starting),
            reuse("still starting for 3 s, and waits for a port to listen")
        );
        starting.backoff_until = Some(now() + Duration::from_secs(4));
        starting.last_end = Some("exit code 1".to_owned());
        assert_eq!(
            told(&starting),
            reuse("it starts anew in 4 s, after exit code 1")
        );
        let mut ill = ready(5);
        (ill.healthy, ill.health) = (Some(false), Some("port 3000 is gone".to_owned()));
        let why = "it lived and was not well: port 3000 is gone".to_owned();
        assert_eq!(told(&ill), Verdict::Replace(why));
        let mut stopping = ready(5);
        stopping.phase = Phase::Stopping;
        assert!(matches!(told(&stopping), Verdict::Replace(_)));
        let changed = judge(&ready(5), None, true, now());
        assert_eq!(
            changed,
            Verdict::Replace("its definition changed".to_owned())
        );
    }
}
