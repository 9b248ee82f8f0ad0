//! The loop behind one subscription.

use std::time::Duration;

use ostler_engine::{Engine, Error, WaitEnd, WaitFor, Watch};
use ostler_model::Caller;
use tokio::time::Instant;

use super::outlet::{Gone, Outlet};
use crate::error::Failure;
use crate::mcp::desk::Desk;
use crate::mcp::news::Signal;
use crate::mcp::resources::{BadUri, Target};

/// Between two updates of one resource to one client, at least, in milliseconds.
const UPDATE_INTERVAL_MS: u64 = 1_000;

/// One resource that is followed for one caller.
#[derive(Debug)]
pub(super) struct Followed {
    uri: String,
    caller: Caller,
    source: Source,
    /// For the execution as a whole: its prompts are changes too.
    prompts: Option<Prompts>,
}

/// Where change shows.
#[derive(Debug)]
enum Source {
    /// The list of executions, or the news.
    Board(Signal),
    /// One execution, its output too.
    Execution(Watch),
    /// One execution's events.
    Events(Watch),
}

impl Followed {
    /// Begins to follow: what happens from now on will be told.
    ///
    /// # Errors
    /// As reading the resource.
    pub(super) fn new(desk: &Desk, caller: &Caller, uri: &str) -> Result<Self, BadUri> {
        let watch = |id: &str| {
            let watch = desk.engine().watch(caller, id);
            watch.map_err(|error| BadUri::of(uri, Failure::from(error)))
        };
        let mut prompts = None;
        let source = match Target::parse(uri)? {
            Target::List => Source::Board(desk.news().list_changes(caller)),
            Target::News => Source::Board(desk.news().changes(caller)),
            Target::Detail(id) => {
                prompts = Some(Prompts {
                    engine: desk.engine().clone(),
                    caller: caller.clone(),
                    seen: watch(&id)?,
                    id: id.clone(),
                });
                Source::Execution(watch(&id)?)
            }
            Target::Log(id, _) => Source::Execution(watch(&id)?),
            Target::Screen(id) => Source::Execution(screened(desk, (caller, uri), &id)?),
            Target::Events(id) => Source::Events(watch(&id)?),
        };
        Ok(Self {
            uri: uri.to_owned(),
            caller: caller.clone(),
            source,
            prompts,
        })
    }

    /// Tells of every change, at most once a second, the last one always; until the client is
    /// gone, the resource is somebody else's, or nothing can change any more.
    pub(super) async fn run(mut self, outlet: Outlet) {
        match self.prompts.take() {
            Some(prompts) => tokio::select! {
                () = self.tell(outlet) => {}
                () = prompts.look_out() => {}
            },
            None => self.tell(outlet).await,
        }
    }

    async fn tell(&mut self, outlet: Outlet) {
        let mut pace = Pace::default();
        while self.source.changed().await {
            pace.ready().await;
            let Some(more) = self.source.look(&self.caller) else {
                return;
            };
            if outlet.updated(&self.uri).await == Err(Gone) || !more {
                return;
            }
        }
    }
}

/// The watch of an execution that has a screen.
fn screened(desk: &Desk, (caller, uri): (&Caller, &str), id: &str) -> Result<Watch, BadUri> {
    let told = |error| BadUri::of(uri, Failure::from(error));
    let mut watch = desk.engine().watch(caller, id).map_err(told)?;
    let info = watch.look();
    match info.size() {
        Some(_) => Ok(watch),
        None => Err(told(Error::NoTerminal { id: info.id })),
    }
}

impl Source {
    async fn changed(&mut self) -> bool {
        match self {
            Self::Board(signal) => signal.changed().await,
            Self::Execution(watch) => {
                watch.changed().await;
                true
            }
            Self::Events(watch) => {
                watch.state_changed().await;
                true
            }
        }
    }

    /// Takes note of how it is now; whether it can change again, none when the caller may not
    /// see it any more.
    fn look(&mut self, caller: &Caller) -> Option<bool> {
        match self {
            Self::Board(signal) => {
                signal.look();
                Some(true)
            }
            Self::Execution(watch) | Self::Events(watch) => {
                let info = watch.look();
                caller.sees(&info.owner).then(|| !info.state.is_finished())
            }
        }
    }
}

/// Looks out for the prompts of one execution: the engine looks only while somebody waits, and
/// then tells by an event.
#[derive(Debug)]
struct Prompts {
    engine: Engine,
    caller: Caller,
    id: String,
    seen: Watch,
}

impl Prompts {
    /// As long as it is polled.
    async fn look_out(mut self) {
        loop {
            let waiting = self
                .engine
                .wait(&self.caller, &self.id, &WaitFor::Prompt, None);
            let why = waiting.await.map(|waited| waited.why);
            if !matches!(why, Ok(WaitEnd::Prompt(_))) {
                // Nobody will ask any more; the end is told by itself.
                return std::future::pending().await;
            }
            // The same prompt stands until something happens.
            self.seen.look();
            self.seen.changed().await;
        }
    }
}

/// Tells that there are other resources, at most once a second.
pub(super) async fn list(mut changes: Signal, outlet: Outlet) {
    let mut pace = Pace::default();
    while changes.changed().await {
        pace.ready().await;
        changes.look();
        if outlet.list_changed().await == Err(Gone) {
            return;
        }
    }
}

/// Keeps what is sent apart.
#[derive(Debug, Default)]
struct Pace {
    sent: Option<Instant>,
}

impl Pace {
    /// Until the next one may be sent, which is then taken as sent.
    async fn ready(&mut self) {
        if let Some(sent) = self.sent {
            let interval = Duration::from_millis(UPDATE_INTERVAL_MS);
            tokio::time::sleep_until(sent + interval).await;
        }
        self.sent = Some(Instant::now());
    }
}
