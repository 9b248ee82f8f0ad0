//! Which `ostler.toml` holds for a request, and who is meant by a name.

use std::path::{Path, PathBuf};

use ostler_model::Caller;
use ostler_policy::Decision;

use super::clerk::{Clerk, Wanted};
use super::manifest::Manifest;
use super::view::{View, file, plan_of};
use super::workspace::{ServiceScope, WorkspaceContext};
use super::{ServiceInfo, anew};
use crate::admission::{self, arguments, confinement, environment};
use crate::engine::Engine;
use crate::error::Error;
use crate::request::StartRequest;

impl Engine {
    /// The home directory of the front that asks.
    pub(super) fn home(&self, front: Option<&StartRequest>) -> Option<PathBuf> {
        let settings = &self.core.settings.base_env;
        let env = match front {
            Some(front) if !front.base_env.is_empty() => &front.base_env,
            Some(_) | None => settings,
        };
        environment::value(env, b"HOME").map(|home| home.as_path().to_owned())
    }

    /// Where a request's command would run.
    pub(super) fn context(&self, request: &StartRequest) -> WorkspaceContext {
        let home = self.home(Some(request));
        WorkspaceContext::at(
            request.cwd.as_path(),
            home.as_deref(),
            &self.core.book.watches,
        )
    }

    /// The same with what the file says that holds there.
    pub(super) fn context_of(&self, request: &StartRequest) -> Result<WorkspaceContext, Error> {
        let home = self.home(Some(request));
        let manifest = Manifest::find(request.cwd.as_path(), home.as_deref())?;
        Ok(self.context(request).with(manifest))
    }

    /// Where somebody stands who looks, or stops something: every workspace where `cwd` is none.
    pub(super) fn context_at(&self, cwd: Option<&Path>) -> WorkspaceContext {
        let home = self.home(None);
        cwd.map(|cwd| WorkspaceContext::at(cwd, home.as_deref(), &self.core.book.watches))
            .unwrap_or_default()
    }

    /// The same with what the file says that holds there; one that cannot be used is no error
    /// where services of it live, which say so.
    pub(super) fn context_for(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
    ) -> Result<WorkspaceContext, Error> {
        let context = self.context_at(cwd);
        let Some(cwd) = cwd else {
            return Ok(context);
        };
        match Manifest::find(cwd, self.home(None).as_deref()) {
            Ok(found) => Ok(context.with(found)),
            Err(error) => {
                let mut living = View::new(&self.core, caller).living();
                let is_told = living.any(|entry| {
                    let at = plan_of(&entry).defined_in.as_ref().and_then(file);
                    at.is_some() && at == context.file()
                });
                if is_told {
                    Ok(context)
                } else {
                    Err(error.into())
                }
            }
        }
    }

    /// What a name means that is to be started anew: what ran under it, else what the API
    /// defined.
    pub(super) fn known(&self, clerk: Clerk<'_>, name: &str) -> Result<Wanted, Error> {
        if let Some(started) = clerk.started(name)? {
            return Ok(started);
        }
        let base = StartRequest::argv(["true"], "/");
        clerk.defined(name, &base).ok_or_else(|| {
            let defined = clerk.definitions().into_iter().map(|it| it.name);
            clerk.view().unknown(name, defined)
        })
    }
}

impl Clerk<'_> {
    /// What lives here under this name, or was started here without a definition, to be started
    /// anew. What has ended and whose definition is gone does not come back.
    pub(super) fn started(self, name: &str) -> Result<Option<Wanted>, Error> {
        let found = self.view().find(name);
        let entry = found.filter(|it| !it.is_finished() || plan_of(it).defined_in.is_none());
        entry.map(|it| anew::wanted(self.core, &it)).transpose()
    }

    /// Refuses what can be refused without looking at the machine.
    pub(super) fn check(self, wanted: &Wanted) -> Result<(), Error> {
        let start = self.sketch(wanted);
        let settings = &self.core.settings;
        arguments::check(&start)?;
        let level = confinement::level(&settings.isolation, &start)?;
        admission::service::check(start.lifetime.as_ref(), level, &settings.state_dir)
    }
}

impl Clerk<'_> {
    /// Refuses what would be refused at its start without anybody being asked, and what
    /// somebody would have to be asked about: nobody is there to answer.
    pub(super) fn may_run(self, wanted: &Wanted) -> Result<(), Error> {
        self.check(wanted)?;
        let start = self.sketch(wanted);
        admission::directory::check(&start.cwd)?;
        let _given = admission::secrets::resolve(&self.core.settings, &self.caller.owner, &start)?;
        match admission::policy::judge(&self.core.settings, &start)? {
            Some(verdict) if verdict.decision != Decision::Allow => Err(Error::Denied {
                rule: verdict.rule,
                reason: format!(
                    "{}; a person has to agree: bring it up again",
                    verdict.reason
                ),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether two rows are about the same service.
pub(super) fn is_same(one: &ServiceInfo, other: &ServiceInfo) -> bool {
    one.name == other.name && ServiceScope::of(one).shares_names(&ServiceScope::of(other))
}
