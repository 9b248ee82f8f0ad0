//! Starts services for one caller.

use std::sync::Arc;

use ostler_model::{Caller, Text};

use super::book::without_execution;
use super::compose::{Decided, Given, Origin, compose};
use super::definition::Definition;
use super::definitions::API;
use super::manifest::Manifest;
use super::view::{View, told};
use super::workspace::{NameScope, ServiceScope, WorkspaceContext};
use super::{ServiceError, ServiceInfo, ServiceRequest, names, ports, reload};
use crate::admission::quota::Share;
use crate::begin::{self, Begun};
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;
use crate::quota_queue::StartAdmission;
use crate::request::StartRequest;

/// Services for one caller, as they are defined where the caller stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clerk<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) caller: &'a Caller,
    /// The workspace's own, where there are some.
    pub(crate) manifest: Option<&'a Manifest>,
    /// From where names are looked for.
    pub(crate) scope: NameScope<'a>,
}

/// A service that is to run.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// What was asked.
    pub(crate) request: ServiceRequest,
    /// Where it is defined; none of what was just asked for.
    pub(crate) origin: Option<Origin>,
    /// What the front brought, of what is defined: a later version of the definition is started
    /// with the same.
    pub(crate) front: Option<Arc<StartRequest>>,
}

impl Wanted {
    /// What was just asked for.
    pub(crate) const fn asked(request: ServiceRequest) -> Self {
        Self {
            request,
            origin: None,
            front: None,
        }
    }

    /// What is defined, for a front.
    pub(crate) fn defined(definition: &Definition, at: Text, base: &StartRequest) -> Self {
        Self {
            request: definition.request(base),
            origin: Some(Origin {
                defined_in: at,
                defined_as: definition.fingerprint(),
            }),
            front: Some(Arc::new(base.clone())),
        }
    }

    /// What it is called, as far as that is known.
    pub(crate) fn name(&self) -> &str {
        self.request.name.as_deref().unwrap_or("this service")
    }
}

impl<'a> Clerk<'a> {
    pub(crate) fn new(
        core: &'a Arc<Core>,
        caller: &'a Caller,
        context: &'a WorkspaceContext,
    ) -> Self {
        Self {
            core,
            caller,
            manifest: context.manifest.as_ref(),
            scope: context.names(),
        }
    }

    /// The caller's services, those of this workspace.
    pub(crate) fn view(self) -> View<'a> {
        View::new(self.core, self.caller).from(self.scope)
    }

    /// What is defined under this name, here or through the API; the workspace's own first.
    pub(crate) fn defined(self, name: &str, base: &StartRequest) -> Option<Wanted> {
        let here = self.manifest.and_then(|manifest| {
            let definition = manifest.services.get(name)?;
            let at = Text::from(manifest.path.as_path());
            let mut wanted = Wanted::defined(definition, at, base);
            // A file of the workspace tightens what holds without a word, never loosens it.
            let start = &mut wanted.request.start;
            if base.level.is_none() {
                let usual = self.core.settings.isolation.default;
                start.level = start.level.map(|level| level.max(usual));
            }
            Some(wanted)
        });
        here.or_else(|| {
            let definition = self.core.book.definitions.get(self.caller, name)?;
            Some(Wanted::defined(&definition, Text::from(API), base))
        })
    }

    /// Every definition the caller can start by name here, as rows of a list.
    pub(crate) fn definitions(self) -> Vec<ServiceInfo> {
        let own = self.manifest.into_iter().flat_map(|manifest| {
            let at = Text::from(manifest.path.as_path());
            manifest
                .services
                .values()
                .map(move |it| (it.clone(), at.clone()))
        });
        let kept = self.core.book.definitions.of(self.caller);
        let kept = kept.into_iter().map(|it| (it, Text::from(API)));
        let base = StartRequest::argv(["true"], "/");
        own.chain(kept)
            .map(|(definition, at)| self.row(&Wanted::defined(&definition, at, &base)))
            .collect()
    }

    /// The request it would be started with now, as far as nothing has to be looked at for it.
    pub(crate) fn sketch(self, wanted: &Wanted) -> StartRequest {
        self.composed(wanted, wanted.name().to_owned(), Given::None)
    }

    /// As it would run, were it started now.
    pub(crate) fn row(self, wanted: &Wanted) -> ServiceInfo {
        let start = self.sketch(wanted);
        let plan = start.lifetime.as_ref().and_then(|it| it.plan()).cloned();
        let command = start.command.display();
        let plan = plan.unwrap_or_default();
        let home = ServiceScope::new(&self.core.settings, plan.defined_in.as_ref(), &start.cwd);
        ServiceInfo {
            workspace: home.workspace(),
            ..without_execution(wanted.name(), command, plan)
        }
    }

    fn composed(self, wanted: &Wanted, name: String, port: Given) -> StartRequest {
        let Wanted {
            request, origin, ..
        } = wanted;
        let detected = self.core.book.detect(&self.core.settings, &request.start);
        let decided = Decided {
            name,
            detected: detected.as_ref(),
            port,
            origin: origin.as_ref(),
        };
        compose(request, decided)
    }

    /// Chooses its name and its port, admits it, and waits until its program runs.
    pub(crate) async fn begin(self, wanted: &Wanted) -> Result<Begun, Error> {
        let begun = self.admit(wanted).await?;
        begun.started().await?;
        Ok(begun)
    }

    async fn admit(self, wanted: &Wanted) -> Result<Begun, Error> {
        let Wanted {
            request, origin, ..
        } = wanted;
        let book = &self.core.book;
        // Outside the turn: others do not wait for this one's place.
        let share = Share::Other(self.caller.owner.principal.clone());
        let entered = begin::enter(self.core, self.caller, (&request.start, share)).await?;
        let permit = match entered {
            StartAdmission::Existing(begun) => return Ok(begun),
            StartAdmission::Granted(permit) => permit,
        };
        let _turn = book.admitting.lock().await;
        let name = self.name_for(request)?;
        let start = &request.start;
        let port = ports::give(self.core, self.caller, request.port, (start, &name)).await?;
        let start = self.composed(wanted, name, port);
        let begun = begin::begin_at(self.core, self.caller, (start, permit), true).await?;
        book.remember(self.core, begun.id(), wanted.clone());
        if let (Some(_), Some(manifest)) = (origin, self.manifest) {
            reload::watch(self.core, &manifest.path);
        }
        Ok(begun)
    }

    /// The name it gets.
    fn name_for(self, request: &ServiceRequest) -> Result<String, Error> {
        let view = self.view();
        let Some(name) = &request.name else {
            let detected = self.core.book.detect(&self.core.settings, &request.start);
            let detected = detected.as_ref().map(|it| it.name.as_str());
            let is_taken = |name: &str| view.rival(name).is_some();
            return Ok(names::choose(detected, &request.start.command, is_taken));
        };
        self.free(name)?;
        Ok(name.clone())
    }

    /// Whether a service can be called so now.
    ///
    /// # Errors
    /// When it cannot, or one that lives is.
    pub(crate) fn free(self, name: &str) -> Result<(), Error> {
        names::check(name).map_err(|problem| ServiceError::Value {
            what: "service name",
            given: name.to_owned(),
            problem,
        })?;
        match self.view().rival(name) {
            Some(living) => Err(ServiceError::Running {
                name: name.to_owned(),
                id: living.id.short(),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// What is told of an execution: with where its definition has gone.
    pub(crate) fn told(self, entry: &Entry) -> ServiceInfo {
        let mut info = told(entry, self.view().scope_of(entry));
        if let Some(at) = &info.plan.defined_in {
            let watches = &self.core.book.watches;
            let definition = info.plan.defined_as.as_deref();
            let lives = !entry.is_finished();
            info.notes = watches.notes(at.as_path(), (&info.name, definition), lives);
        }
        info
    }
}
