//! From a request to a running driver.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Caller, Event, ExecutionId, State, Timestamp};

use crate::admission::quota::Share;
use crate::admission::{self, Admitted, Rules};
use crate::core::{Core, Detail};
use crate::driver::{Driver, Errand, wait};
use crate::entry::{Entry, Live};
use crate::error::Error;
use crate::info::{Info, Waited};
use crate::request::{StartRequest, WaitFor};

/// Characters of a command line in the ledger.
const COMMAND_CHARS: usize = 4_096;

/// An execution whose id nobody has been told yet (F7): dropped, it is cancelled, unless
/// [`Begun::keep`] said that the id was given out.
#[derive(Debug)]
#[must_use = "dropping it cancels the execution"]
pub struct Begun {
    core: Arc<Core>,
    entry: Arc<Entry>,
}

impl Begun {
    /// Its id; not yet given out.
    #[must_use]
    pub fn id(&self) -> ExecutionId {
        self.entry.id
    }

    /// What is known of it now.
    #[must_use]
    pub fn info(&self) -> Info {
        self.entry.fresh_info()
    }

    /// Waits as [`Engine::wait`](crate::Engine::wait) does.
    ///
    /// # Errors
    /// As [`Engine::wait`](crate::Engine::wait).
    pub async fn wait(&self, until: &WaitFor, at_most: Option<Duration>) -> Result<Waited, Error> {
        wait::wait(&self.core, &self.entry, until, at_most).await
    }

    /// The id is given out: the execution goes on without this.
    #[must_use]
    pub fn keep(self) -> Info {
        self.entry.give_out();
        self.entry.fresh_info()
    }

    /// As [`Begun::keep`], for those who have seen enough of it.
    pub fn release(self) {
        self.entry.give_out();
    }

    /// Until the program runs.
    pub(crate) async fn started(&self) -> Result<(), Error> {
        wait::started(&self.entry).await;
        self.entry.info().born()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.entry.is_given_out() {
            self.entry.cancel();
        }
    }
}

/// Admits a request and sets its driver to work. A refusal goes into the ledger.
pub(crate) fn begin(
    core: &Arc<Core>,
    caller: &Caller,
    request: StartRequest,
    report_start: bool,
) -> Result<Begun, Error> {
    if core.closing.is_cancelled() {
        return Err(Error::Closing);
    }
    let detail = detail(&request);
    let admitted = admission::admit(
        Rules {
            settings: &core.settings,
            abilities: &core.abilities,
            place: &core.place_name,
        },
        caller,
        request,
    );
    let begun = admitted.and_then(|admitted| {
        let id = core
            .registry
            .reserve(Share::of(&admitted.spec, &caller.owner))?;
        set_out(core, (id, admitted), detail.clone(), report_start)
            .inspect_err(|_| core.registry.forget(id))
    });
    begun.inspect_err(|error| core.refuse(&caller.owner, detail, error))
}

fn set_out(
    core: &Arc<Core>,
    (id, admitted): (ExecutionId, Admitted),
    detail: Detail,
    report_start: bool,
) -> Result<Begun, Error> {
    let now = Timestamp::now();
    let owner = Arc::new(admitted.spec.owner.clone());
    let missing = admitted.spec.policy.missing.clone();
    core.record(&ostler_journal::LedgerEntry {
        at: now,
        execution: Some(id),
        by: admitted.spec.owner.clone(),
        event: Event::Created { missing },
        detail,
    })?;
    let live = Live {
        state: State {
            created_at: Some(now),
            ..State::default()
        },
        ..Live::default()
    };
    let whose = (id, Arc::new(admitted.spec), owner);
    let (entry, asks) = Entry::driven(whose, core.dir(id), live);
    core.registry.insert(Arc::clone(&entry), None);
    let errand = Errand {
        entry: Arc::clone(&entry),
        asks,
        draft: Some(admitted.plan),
        report_start,
    };
    let driver = Driver::new(Arc::clone(core), errand);
    core.tracker.spawn(driver.run(now));
    Ok(Begun {
        core: Arc::clone(core),
        entry,
    })
}

fn detail(request: &StartRequest) -> Detail {
    let command: String = request
        .command
        .display()
        .chars()
        .take(COMMAND_CHARS)
        .collect();
    Detail::from([
        ("command".to_owned(), command.into()),
        ("cwd".to_owned(), request.cwd.to_string().into()),
        ("face".to_owned(), request.face.as_str().into()),
        ("level".to_owned(), request.level.to_string().into()),
    ])
}
