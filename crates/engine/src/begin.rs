//! From a request to a running driver.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ostler_model::{Caller, Event, ExecutionId, State, Text, Timestamp};
use ostler_policy::{Decision, Verdict};

use crate::admission::named_files::NamedFiles;
use crate::admission::quota::Share;
use crate::admission::secrets::{self, Secret};
use crate::admission::{self, Admitted, Prepared, Rules, confinement, policy};
use crate::core::{Core, Detail};
use crate::driver::{Driver, Errand, wait};
use crate::entry::{Entry, Live, StartOrigin};
use crate::error::Error;
use crate::info::{Info, Waited};
use crate::interaction::Spend;
use crate::quota_queue::{self, QueueWait, QuotaPermit, StartAdmission};
use crate::request::{StartRequest, WaitFor};
use crate::settings::Settings;
use crate::start_id::{self, Claim};

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

    /// How long it waited for its place; none where one was free.
    #[must_use]
    pub fn queued(&self) -> Option<QueueWait> {
        self.entry.origin.queued
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
        tokio::select! {
            biased;
            () = wait::started(&self.entry) => self.entry.info().born(),
            // Its driver may have let go of it already: nothing more is told.
            () = self.core.closing.cancelled() => Err(Error::Closing),
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // An engine that shuts down decides by itself what goes on.
        if !self.entry.is_given_out() && !self.core.closing.is_cancelled() {
            self.entry.cancel();
        }
    }
}

/// Admits a request and sets its driver to work, in its turn. A refusal goes into the ledger.
pub(crate) async fn begin(
    core: &Arc<Core>,
    caller: &Caller,
    request: StartRequest,
    report_start: bool,
) -> Result<Begun, Error> {
    let share = Share::asked(&request, &caller.owner);
    match enter(core, caller, (&request, share)).await? {
        StartAdmission::Existing(begun) => Ok(begun),
        StartAdmission::Granted(permit) => {
            begin_at(core, caller, (request, permit), report_start).await
        }
    }
}

/// As [`quota_queue::enter`]; a refusal goes into the ledger.
pub(crate) async fn enter(
    core: &Arc<Core>,
    caller: &Caller,
    (request, share): (&StartRequest, Share),
) -> Result<StartAdmission, Error> {
    if core.closing.is_cancelled() {
        return Err(Error::Closing);
    }
    let entered = quota_queue::enter(core, caller, (request, share)).await;
    entered.inspect_err(|error| {
        let secrets = secrets::resolve(&core.settings, &caller.owner, request);
        let detail = detail(&core.settings, request, &secrets.unwrap_or_default());
        core.refuse(&caller.owner, detail, error);
    })
}

/// Whether a person is asked where the policy wants that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Asked; a yes is not spent.
    Obtain,
    /// Not asked: it counts as given.
    Assume,
}

/// Whether the request would be carried out now, were there a place.
///
/// # Errors
/// As admission refuses it; with [`Consent::Obtain`] [`Error::ApprovalRequired`] among them.
pub(crate) async fn check(
    core: &Core,
    caller: &Caller,
    request: StartRequest,
    consent: Consent,
) -> Result<(), Error> {
    let secrets = secrets::resolve(&core.settings, &caller.owner, &request)?;
    let known = secrets.clone();
    let admitted = match policy::judge(&core.settings, &request) {
        Ok(Some(verdict)) if consent == Consent::Obtain => {
            consented(core, caller, (request, secrets), (verdict, Spend::Later)).await
        }
        Ok(_) => admit(core, caller, request, secrets).await,
        Err(error) => Err(error),
    };
    admitted.map(drop).map_err(|error| error.concealing(&known))
}

/// Admits a request that has a place, and sets its driver to work.
pub(crate) async fn begin_at(
    core: &Arc<Core>,
    caller: &Caller,
    (request, permit): (StartRequest, QuotaPermit),
    report_start: bool,
) -> Result<Begun, Error> {
    let chosen = request.id;
    let lossless_reader = request.lossless_reader;
    let secrets = secrets::resolve(&core.settings, &caller.owner, &request);
    let mut detail = detail(&core.settings, &request, secrets.as_deref().unwrap_or(&[]));
    if let Some(queued) = &permit.queued {
        let waited = u64::try_from(queued.waited.as_millis()).unwrap_or(u64::MAX);
        detail.insert("waited_ms".to_owned(), waited.into());
    }
    let judged = policy::judge(&core.settings, &request);
    if let Ok(Some(verdict)) = &judged {
        detail.insert("policy".to_owned(), verdict.to_string().into());
    }
    let known = secrets.as_ref().cloned().unwrap_or_default();
    let admitted = match (secrets, judged) {
        (Ok(secrets), Ok(None)) => admit(core, caller, request, secrets).await,
        (Ok(secrets), Ok(Some(verdict))) => {
            consented(core, caller, (request, secrets), (verdict, Spend::Once)).await
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    let admitted = admitted.map_err(|error| error.concealing(&known));
    let begun = admitted.and_then(|admitted| {
        let id = core.registry.reserve(permit.claim(), chosen)?;
        let how = How {
            report_start,
            origin: StartOrigin {
                id_chosen: chosen.is_some(),
                queued: permit.queued,
                warns_of_host: admitted.spec.policy.lacks_of_host()
                    && !core.host_told.swap(true, Ordering::Relaxed),
            },
            lossless_reader,
        };
        set_out(core, (id, admitted), detail.clone(), how).inspect_err(|_| core.registry.forget(id))
    });
    begun
        .map_err(|error| error.with_space(&core.settings.state_dir))
        .inspect_err(|error| core.refuse(&caller.owner, detail, error))
}

/// The execution that an earlier start with this id began, also under an earlier engine; none
/// where nothing has the id. Its id counts as given out: two wait for it.
///
/// # Errors
/// When no execution can get this id.
pub(crate) fn existing(
    core: &Arc<Core>,
    caller: &Caller,
    id: Option<ExecutionId>,
) -> Result<Option<Begun>, Error> {
    let Some(id) = id else {
        return Ok(None);
    };
    let (holder, entry) = core.registry.holder(caller, id);
    match (start_id::decide(id, holder, Timestamp::now())?, entry) {
        (Claim::Answer, Some(entry)) => {
            entry.give_out();
            let core = Arc::clone(core);
            Ok(Some(Begun { core, entry }))
        }
        (Claim::Answer | Claim::Begin, _) => Ok(None),
    }
}

/// As [`existing`], once no start with this id is under way: one that has taken its id and has
/// no entry yet would be mistaken for somebody else's.
pub(crate) async fn existing_after_starts(
    core: &Arc<Core>,
    caller: &Caller,
    id: Option<ExecutionId>,
) -> Result<Option<Begun>, Error> {
    let _turn = match id {
        Some(id) => Some(core.starts.lock(id).await),
        None => None,
    };
    existing(core, caller, id)
}

/// As [`admit`], and with a person's consent where the policy asks for it: asked last, for
/// what can run at all.
async fn consented(
    core: &Core,
    caller: &Caller,
    (request, secrets): (StartRequest, Vec<Secret>),
    (verdict, spend): (Verdict, Spend),
) -> Result<Admitted, Error> {
    if verdict.decision == Decision::Allow {
        return admit(core, caller, request, secrets).await;
    }
    let named = request.approval.clone();
    let shown = policy::shown(&request, &secrets);
    let mut admitted = admit(core, caller, request.clone(), secrets).await?;
    // Last of all: what is read now is what runs.
    let program = admitted.plan.program().clone();
    let path = policy::search_path(&core.settings, &request);
    let (command, cwd) = (request.command.clone(), request.cwd.clone());
    let looked = move || NamedFiles::look(&command, &cwd, (&program, &path));
    let looked = tokio::task::spawn_blocking(looked).await;
    let files = looked.map_err(|_| Error::Closing)?;
    admitted.plan.pin(files.pins());
    let asked = policy::asked(request, files);
    let what = (asked, named.as_deref(), shown);
    policy::consent(core, caller, (verdict, spend), what)?;
    Ok(admitted)
}

/// Looks at what the request's file systems can do, where that matters, and decides.
async fn admit(
    core: &Core,
    caller: &Caller,
    request: StartRequest,
    secrets: Vec<Secret>,
) -> Result<Admitted, Error> {
    let confinement = confinement::draft(&core.settings, &request)?;
    let surveyed = match &confinement {
        Some(confinement) => {
            let missing = core.place.survey(confinement).await;
            Some(core.abilities.clone().lacking(missing))
        }
        None => None,
    };
    let rules = Rules {
        settings: &core.settings,
        abilities: surveyed.as_ref().unwrap_or(&core.abilities),
        place: &core.place_name,
    };
    let prepared = Prepared {
        confinement,
        secrets,
    };
    admission::admit(rules, caller, request, prepared)
}

/// How an execution sets out.
#[derive(Debug, Clone, Copy)]
struct How {
    /// Whether somebody wants to hear of the start.
    report_start: bool,
    origin: StartOrigin,
    /// As [`StartRequest::lossless_reader`].
    lossless_reader: bool,
}

fn set_out(
    core: &Arc<Core>,
    (id, admitted): (ExecutionId, Admitted),
    detail: Detail,
    how: How,
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
    let (entry, asks) = Entry::driven(whose, core.dir(id), live, how.origin);
    core.registry.insert(Arc::clone(&entry), None);
    let errand = Errand {
        entry: Arc::clone(&entry),
        asks,
        draft: Some(admitted.plan),
        report_start: how.report_start,
        lossless_reader: how.lossless_reader,
    };
    let driver = Driver::new(Arc::clone(core), errand);
    // On the heap at once: tokio moves what it spawns several times.
    core.tracker.spawn(Box::pin(driver.run(now)));
    Ok(Begun {
        core: Arc::clone(core),
        entry,
    })
}

fn detail(settings: &Settings, request: &StartRequest, secrets: &[Secret]) -> Detail {
    let conceal = |text: &Text| secrets::conceal(text, secrets);
    let command: String = secrets::in_command(&request.command, conceal)
        .display()
        .chars()
        .take(COMMAND_CHARS)
        .collect();
    let level = request.level.unwrap_or(settings.isolation.default);
    Detail::from([
        ("command".to_owned(), command.into()),
        ("cwd".to_owned(), conceal(&request.cwd).to_string().into()),
        ("face".to_owned(), request.face.as_str().into()),
        ("level".to_owned(), level.to_string().into()),
    ])
}
