//! What a driver listens to: control first, output last.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::Journal;
use ostler_model::event::TrimReason;
use ostler_model::{Ability, EventRecord, Limit, Principal, StopOrder, Timestamp};
use ostler_process::{Birth, Control, ControlError, Found, LaunchIo, LaunchPlan, Order, Report};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::admission::Draft;
use crate::core::Core;
use crate::entry::{Entry, Wishes};
use crate::supervisor::{Input, Supervisor, Timer};
use crate::terminal::answers;

use super::freeze::Freeze;
use super::input::Writes;
use super::lookout::{Looked, Lookout};
use super::readers::Retaining;
use super::record::Recorder;
use super::trim::Trimming;

/// What a driver can be asked.
#[derive(Debug)]
pub(crate) enum Ask {
    /// End it.
    Stop {
        /// Who and why.
        order: StopOrder,
        /// Between the polite request and the kill.
        grace: Duration,
    },
    /// Hand an order over that needs no decision.
    Pass {
        /// A signal or a size.
        order: Order,
        /// Whether it arrived.
        answer: oneshot::Sender<Result<(), ControlError>>,
    },
    /// Write to its input.
    Write(super::input::Write),
    /// Have it stand still or go on.
    Freeze(Freeze),
    /// Have a service's attempt end and the next one begin.
    Restart {
        /// Who.
        by: Principal,
        /// Why, in words.
        reason: String,
    },
    /// It was seen waiting for an answer.
    Prompt {
        /// With what.
        asked: Asked,
        /// When it is on record.
        answer: oneshot::Sender<()>,
    },
    /// A limit that is kept by accounting was passed.
    LimitHit(Limit),
    /// Output was cleared.
    Trimmed {
        /// First byte dropped.
        from: u64,
        /// First byte kept.
        to: u64,
        /// On whose behalf.
        by: Principal,
        /// When it is on record; a driver that is done drops it.
        answer: oneshot::Sender<()>,
    },
}

/// A command's question, for the record.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Its text.
    pub(crate) text: String,
    /// Whether the answer must not be shown.
    pub(crate) secret: bool,
    /// The journal's end then.
    pub(crate) end: u64,
}

/// What a driver is made for.
#[derive(Debug)]
pub(crate) struct Errand {
    /// The execution.
    pub(crate) entry: Arc<Entry>,
    /// Who asks.
    pub(crate) asks: mpsc::Receiver<Ask>,
    /// How to launch it; none where an earlier engine did.
    pub(crate) draft: Option<Draft>,
    /// Whether somebody wants to hear of the start.
    pub(crate) report_start: bool,
    /// Whether a reader that may miss nothing is expected from the first byte on.
    pub(crate) lossless_reader: bool,
}

/// The driver of one execution.
pub(crate) struct Driver {
    pub(super) core: Arc<Core>,
    pub(super) entry: Arc<Entry>,
    pub(super) supervisor: Supervisor,
    pub(super) recorder: Recorder,
    pub(super) draft: Option<Draft>,
    pub(super) report_start: bool,
    pub(super) control: Option<Arc<dyn Control>>,
    pub(super) reports: Option<mpsc::Receiver<Report>>,
    pub(super) writes: Writes,
    pub(super) timer: Option<(Instant, Timer)>,
    /// Inputs that follow from effects, handled before anything else.
    pub(super) inbox: VecDeque<Input>,
    pub(super) watching: bool,
    pub(super) retaining: Retaining,
    /// When it is looked again whether output is to be told: after the last one who wanted to
    /// hear has gone, and when the shim was too busy for the order.
    pub(super) watch_at: Option<Instant>,
    pub(super) journal: Option<Journal>,
    pub(super) mirror: Option<ostler_journal::Mirror>,
    pub(super) trimming: Trimming,
    /// What a service is looked at with.
    pub(super) lookout: Lookout,
    /// Who waits for the answer to a freeze or a thaw.
    pub(super) freezes: Vec<Freeze>,
    /// It was found running: whether it stands still is said once unasked.
    pub(super) greeted: bool,
    asks: mpsc::Receiver<Ask>,
    pub(super) wishes: watch::Receiver<Wishes>,
    heard_cancel: bool,
    heard_closing: bool,
    detached: bool,
}

/// One thing a driver woke up for.
enum Happened {
    Closing,
    Wishes,
    Ask(Ask),
    Timer(Timer),
    TimeToTrim,
    TimeForReaders,
    TimeToWrite,
    Report(Option<Report>),
    Looked(Looked),
}

impl Driver {
    /// For a new execution.
    pub(crate) fn new(core: Arc<Core>, errand: Errand) -> Self {
        let grace = core.settings.grace;
        let supervisor = Supervisor::new(errand.entry.spec.lifetime.clone(), grace);
        Self::with(core, errand, supervisor)
    }

    /// For one that an earlier engine recorded this much of.
    pub(crate) fn resume(core: Arc<Core>, errand: Errand, records: &[EventRecord]) -> Self {
        let grace = core.settings.grace;
        let lifetime = errand.entry.spec.lifetime.clone();
        let supervisor = Supervisor::resume(lifetime, grace, records);
        let mut driver = Self::with(core, errand, supervisor);
        driver.lookout = Lookout::resume(records);
        driver
    }

    fn with(core: Arc<Core>, errand: Errand, supervisor: Supervisor) -> Self {
        Self {
            core,
            recorder: Recorder::new(errand.entry.dir.clone()),
            wishes: errand.entry.wishes.subscribe(),
            entry: errand.entry,
            supervisor,
            draft: errand.draft,
            report_start: errand.report_start,
            control: None,
            reports: None,
            writes: Writes::default(),
            timer: None,
            inbox: VecDeque::new(),
            watching: false,
            retaining: Retaining::new(errand.lossless_reader),
            watch_at: None,
            journal: None,
            mirror: None,
            trimming: Trimming::new(),
            lookout: Lookout::default(),
            freezes: Vec::new(),
            greeted: false,
            asks: errand.asks,
            heard_cancel: false,
            heard_closing: false,
            detached: false,
        }
    }

    /// Starts the execution and stays with it to its end.
    pub(crate) async fn run(mut self, now: Timestamp) {
        let missing = self.entry.spec.policy.missing.clone();
        self.feed_at(now, Input::Admitted { missing }).await;
        self.stay().await;
    }

    /// Takes in what recovery found; true when there is somebody to stay with.
    pub(crate) async fn recover(&mut self, found: Found) -> bool {
        let input = match found {
            Found::Running {
                attempt,
                pid,
                started_at,
                birth,
            } => {
                self.take_birth(birth);
                self.greeted = true;
                Input::Adopted {
                    attempt,
                    pid,
                    started_at,
                }
            }
            Found::Exited(record) => {
                self.note_end(&record);
                Input::Exited(Box::new(record))
            }
            // Told by recovery, which does not go on.
            Found::NotReached(_) => return false,
            Found::Lost {
                reason, attempt, ..
            } => Input::Lost { reason, attempt },
        };
        self.begin_looking();
        self.feed(input).await;
        if self.supervisor.is_over() {
            self.settle().await;
        }
        !self.supervisor.is_over()
    }

    pub(super) fn take_birth(&mut self, birth: Birth) {
        self.control = Some(birth.control);
        self.reports = Some(birth.reports);
        self.watching = false;
        self.retaining.reset();
    }

    /// Stays with it to its end, or to the engine's.
    pub(crate) async fn stay(mut self) {
        if let Some(limit) = self.entry.spec.policy.limits.disk_bytes {
            let (core, entry) = (Arc::clone(&self.core), Arc::clone(&self.entry));
            let looks = super::disk::keep_within(core, entry, limit);
            self.core.tracker.spawn(looks);
        }
        self.see_to_looking().await;
        self.see_to_retaining().await;
        self.see_to_watching().await;
        while !self.supervisor.is_over() && !self.detached {
            let happened = self.next().await;
            self.take(happened).await;
            self.see_to_looking().await;
            self.see_to_retaining().await;
            self.see_to_watching().await;
        }
        self.settle().await;
    }

    /// Events made up from the spec, to be written like new ones.
    pub(crate) fn rebuilt(&mut self, records: Vec<EventRecord>) {
        self.recorder.push(records);
    }

    async fn next(&mut self) -> Happened {
        let timer = self.timer;
        let unwatched = self.control.is_some() && !self.watching;
        let trim_at = self.trimming.due();
        let write_at = self.writes.due();
        let watch_at = soonest(self.watch_at, self.retaining.due());
        tokio::select! {
            biased;
            () = self.core.closing.cancelled(), if !self.heard_closing => Happened::Closing,
            Ok(()) = self.wishes.changed() => Happened::Wishes,
            Some(ask) = self.asks.recv() => Happened::Ask(ask),
            timer = ring(timer) => Happened::Timer(timer),
            report = next_report(&mut self.reports) => Happened::Report(report),
            () = at(write_at) => Happened::TimeToWrite,
            looked = self.lookout.next() => Happened::Looked(looked),
            () = at(watch_at) => Happened::TimeForReaders,
            () = tokio::time::sleep_until(trim_at), if unwatched => Happened::TimeToTrim,
        }
    }

    async fn take(&mut self, happened: Happened) {
        match happened {
            Happened::Closing => self.close().await,
            Happened::Wishes => self.grant().await,
            Happened::Ask(ask) => self.answer(ask).await,
            Happened::Timer(timer) => {
                self.timer = None;
                self.feed(Input::Timer(timer)).await;
            }
            Happened::TimeToWrite => self.try_again().await,
            // Seen to after everything that happened.
            Happened::Looked(looked) => self.looked(looked).await,
            Happened::TimeForReaders => {}
            Happened::TimeToTrim => self.look_for_trimming().await,
            Happened::Report(Some(report)) => self.report(report).await,
            Happened::Report(None) => {
                self.reports = None;
                self.feed(Input::Gone).await;
            }
        }
    }

    /// The engine ends: what is durable and known to somebody goes on without it.
    async fn close(&mut self) {
        self.heard_closing = true;
        if self.core.abilities.has(Ability::Durable) && self.entry.is_id_known() {
            self.detached = true;
            return;
        }
        let grace = self.core.settings.grace;
        let order = StopOrder::Shutdown;
        self.feed(Input::Stop { order, grace }).await;
    }

    async fn grant(&mut self) {
        let wishes = *self.wishes.borrow_and_update();
        if wishes.cancelled && !self.heard_cancel && !self.entry.is_given_out() {
            self.heard_cancel = true;
            let order = StopOrder::Cancelled;
            let grace = self.core.settings.grace;
            self.feed(Input::Stop { order, grace }).await;
        }
        while let Some(by) = self.entry.leases.next_change() {
            self.feed(Input::LeaseTaken { by }).await;
        }
        self.see_to_watching().await;
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Stop { order, grace } => {
                self.look_at_journal().await;
                self.feed(Input::Stop { order, grace }).await;
            }
            Ask::Pass { order, answer } => {
                let sent = if let Order::Resize(size) = order {
                    self.resize(size).await
                } else {
                    self.pass(order).await
                };
                // Whoever asked may have gone; the order was carried out all the same.
                let _gone = answer.send(sent).is_err();
            }
            Ask::Write(write) => self.write(write).await,
            Ask::Freeze(freeze) => self.freeze(freeze).await,
            Ask::Restart { by, reason } => {
                self.look_at_journal().await;
                self.feed(Input::Restart { by, reason }).await;
            }
            Ask::LimitHit(limit) => self.feed(Input::LimitHit { limit }).await,
            Ask::Prompt { asked, answer } => {
                let Asked { text, secret, end } = asked;
                self.feed(Input::PromptSeen { text, secret, end }).await;
                // Whoever looked may have gone; it is on record all the same.
                let _gone = answer.send(()).is_err();
            }
            Ask::Trimmed {
                from,
                to,
                by,
                answer,
            } => {
                tracing::debug!(id = %self.entry.id, %by, from, to, "output cleared");
                let reason = TrimReason::Cleared;
                self.feed(Input::Trimmed { from, to, reason }).await;
                // Whoever asked may have gone; it is on record all the same.
                let _gone = answer.send(()).is_err();
            }
        }
    }

    async fn report(&mut self, report: Report) {
        match report {
            Report::Started { pid, at } => {
                self.begin_looking();
                self.feed(Input::Started { at, pid }).await;
            }
            Report::Output { end } => self.output(end).await,
            Report::InputTaken { len } => self.taken(len).await,
            Report::InputProgress(input) => self.input_progress(input),
            Report::Asked { question, end } => {
                let (core, entry) = (Arc::clone(&self.core), Arc::clone(&self.entry));
                self.core
                    .tracker
                    .spawn(answers::answer(core, entry, (question, end)));
            }
            Report::Frozen { frozen } => self.frozen(frozen).await,
            Report::LimitHit { limit } => self.feed(Input::LimitHit { limit }).await,
            Report::Detached { status } => self.feed(Input::Detached { status }).await,
            Report::ClockRanOut { clock } => {
                self.look_at_journal().await;
                self.feed(Input::ClockRanOut { clock }).await;
            }
            Report::JournalFailed { detail, memory } => {
                if let Some((_, memory)) = memory {
                    self.entry.keep_memory(memory);
                    self.output_is_in_memory();
                    self.entry.close_reader();
                }
                self.feed(Input::JournalFailed { detail }).await;
            }
            Report::JournalReturned { missing } => {
                self.output_is_on_disk();
                self.feed(Input::JournalReturned { missing }).await;
            }
            Report::Exited(record) => {
                self.note_end(&record);
                let record = self.explained(record);
                self.feed(Input::Exited(Box::new(record))).await;
            }
            Report::Gone => {
                self.drop_birth();
                self.feed(Input::Gone).await;
            }
        }
    }

    pub(super) fn drop_birth(&mut self) {
        self.control = None;
        self.reports = None;
        self.watching = false;
        self.retaining.reset();
        self.freezes.clear();
    }
}

fn soonest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn ring(timer: Option<(Instant, Timer)>) -> Timer {
    match timer {
        Some((due, timer)) => {
            at(Some(due)).await;
            timer
        }
        None => std::future::pending().await,
    }
}

async fn next_report(reports: &mut Option<mpsc::Receiver<Report>>) -> Option<Report> {
    match reports {
        Some(reports) => reports.recv().await,
        None => std::future::pending().await,
    }
}

/// The plan of one attempt.
pub(super) fn plan(driver: &mut Driver, attempt: u32) -> Option<LaunchPlan> {
    let service = matches!(
        driver.entry.spec.lifetime,
        ostler_model::Lifetime::Service { .. }
    );
    let draft = if service {
        driver.draft.clone()?
    } else {
        driver.draft.take()?
    };
    let mut plan = draft.plan(driver.entry.id, attempt);
    if let (LaunchIo::Pty(size), Some(newer)) = (&mut plan.io, driver.supervisor.state().size) {
        *size = newer;
    }
    plan.report_start = driver.report_start || service;
    plan.lossless_reader = driver.retaining.is_reader_expected();
    if attempt > 1 {
        let known = driver.entry.fresh_info().output_end;
        plan.output_from = known.max(driver.supervisor.offset());
    }
    driver.prepare_lookout(&mut plan);
    // A spec is plain data: strings, numbers and lists always spell as JSON.
    plan.spec = serde_json::to_vec(&*driver.entry.spec).ok()?;
    Some(plan)
}
