//! The methods for services.

use std::path::Path;

use ostler_engine::detection::DetectedService;
use ostler_engine::{
    Diagnosis, EnsureResult, Error, ServiceInfo, ServiceRequest, ServiceReuse, ServiceStart,
    ServiceStopped, StartGuard, StartLimits, StartRequest, StopRequest, UpResult,
};
use ostler_model::{ByteString, Caller};

use super::Engine;

impl Engine {
    /// The service that the table recognises in a request's command; none where it recognises none.
    #[must_use]
    pub fn detect(&self, request: &StartRequest) -> Option<DetectedService> {
        self.0.detect(request)
    }

    /// Admits and starts a service; returns when its program runs and before it is ready:
    /// [`WaitFor::Ready`](crate::WaitFor) waits for that. Its dependencies are started before it
    /// and awaited.
    ///
    /// # Errors
    /// As [`Engine::start_unawaited`], and [`Error::Service`]; nothing was started where a name is
    /// unknown or taken, or the dependencies form a cycle.
    pub async fn start_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<StartGuard, Error> {
        self.0.start_service(caller, request).await
    }

    /// Ensures that a service runs: a running one of this name (or of this command in this
    /// directory) is reused when it is healthy and replaced when it is not; a port held by a
    /// foreign process is explained. A request that names a defined service, and has an empty
    /// command, refers to that one.
    ///
    /// # Errors
    /// As [`Engine::start_service`].
    pub async fn ensure_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<EnsureResult, Error> {
        self.0.ensure_service(caller, request).await
    }

    /// As [`Engine::start_service`], or as [`Engine::ensure_service`] where reuse is allowed, but waits
    /// no longer than the limits: then the start goes on as that of [`Engine::service_up_within`]
    /// does. A service that runs stays, also where this request is dropped.
    ///
    /// # Errors
    /// As [`Engine::start_service`].
    pub async fn start_service_within(
        &self,
        caller: &Caller,
        request: ServiceRequest,
        reuse: ServiceReuse,
        limits: StartLimits,
    ) -> Result<ServiceStart, Error> {
        self.0
            .start_service_within(caller, request, reuse, limits)
            .await
    }

    /// As [`Engine::ensure_service`], for services that are defined or were started here, with all
    /// their dependencies; without names, for all that the `ostler.toml` defines. `cwd` is where the
    /// upward search for it begins; `base` holds the client's environment and options (its command
    /// is ignored).
    ///
    /// # Errors
    /// As [`Engine::ensure_service`], where none of them can be started.
    pub async fn service_up(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
    ) -> Result<UpResult, Error> {
        self.0.service_up(caller, cwd, names, base).await
    }

    /// Ends its attempt and begins the next one at once, under the same id; a service that has
    /// ended, or is only defined through the API, is started again, with its client's environment.
    ///
    /// # Errors
    /// As [`Engine::stop_service`].
    pub async fn restart_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        self.0.restart_service(caller, name, cwd).await
    }

    /// As [`Engine::service_up`], but waits no longer than the limits: then the start goes on as a
    /// task of the engine, and the result names the services that are pending. The same request
    /// again waits on. The task ends with the engine and with the caller's session; dropped before
    /// the limits, the request ends it. At most 64 go on so: further requests wait as
    /// [`Engine::service_up`] does.
    ///
    /// # Errors
    /// As [`Engine::service_up`], as far as it is known within the limits.
    pub async fn service_up_within(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
        limits: StartLimits,
    ) -> Result<UpResult, Error> {
        self.0
            .service_up_within(caller, cwd, names, base, limits)
            .await
    }

    /// Stops a service by name or id, its dependents first; succeeds when its tree is empty and
    /// reports which of its ports are free. Stopping an ended service changes nothing; one that is
    /// pending is not started any more.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name; as [`Engine::stop`].
    pub async fn stop_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
        request: StopRequest,
    ) -> Result<ServiceStopped, Error> {
        self.0.stop_service(caller, name, cwd, request).await
    }

    /// Every service the caller sees of the workspace of `cwd`, or of all workspaces: defined,
    /// running, and ended but not dismissed.
    ///
    /// # Errors
    /// [`Error::Service`] for an invalid `ostler.toml`, unless services of it run: then their notes
    /// say so.
    pub fn services(&self, caller: &Caller, cwd: Option<&Path>) -> Result<Vec<ServiceInfo>, Error> {
        self.0.services(caller, cwd)
    }

    /// As [`Engine::services`], including dismissed ones.
    ///
    /// # Errors
    /// As [`Engine::services`].
    pub fn services_and_dismissed(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
    ) -> Result<Vec<ServiceInfo>, Error> {
        self.0.services_and_dismissed(caller, cwd)
    }

    /// One service by name or id.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name.
    pub fn service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        self.0.service(caller, name, cwd)
    }

    /// Explains why a service is in its state.
    ///
    /// # Errors
    /// As [`Engine::service`].
    pub async fn diagnose_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<Diagnosis, Error> {
        self.0.diagnose_service(caller, name, cwd).await
    }

    /// Stores a definition under its name, for its principal and project; it starts on request
    /// only.
    ///
    /// # Errors
    /// [`Error::Service`], [`Error::Storage`]; everything that can be refused without inspecting
    /// the machine is refused here.
    pub fn define_service(&self, caller: &Caller, request: &ServiceRequest) -> Result<(), Error> {
        self.0.define_service(caller, request)
    }

    /// Deletes a definition made through the API; what runs continues.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name, [`Error::Storage`].
    pub fn forget_service(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        self.0.forget_service(caller, name)
    }

    /// Leaves an ended service out of lists from now on, also under later engines; it is still
    /// found by name and id. Dismissing it again changes nothing.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name and for a running service, [`Error::Storage`].
    pub fn dismiss_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        self.0.dismiss_service(caller, name, cwd)
    }

    /// The request that runs a command again, as it was requested, as far as that is recorded. The
    /// source of its input and the client's environment are not.
    ///
    /// # Errors
    /// [`Error::NotFound`]; for services and shell sessions; a secret that is gone.
    pub fn rerun_request(
        &self,
        caller: &Caller,
        id: &str,
        client_env: Vec<(ByteString, ByteString)>,
    ) -> Result<StartRequest, Error> {
        self.0.rerun_request(caller, id, client_env)
    }

    /// The caller as it starts an execution again: in the project of that execution.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn rerun_caller(&self, caller: &Caller, id: &str) -> Result<Caller, Error> {
        self.0.rerun_caller(caller, id)
    }
}
