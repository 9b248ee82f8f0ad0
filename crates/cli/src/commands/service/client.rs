//! Requests about services; an unknown name is answered with similar ones.

use std::collections::HashSet;
use std::future::Future;
use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use ostler_api::{ServiceBody, ServicesBody};
use ostler_model::suggestion::nearest;
use ostler_model::{ByteString, ErrorCode};

use crate::client::{DaemonClient, RequestBody};
use crate::commands::approve;
use crate::commands::start::resolve_directory;
use crate::config;
use crate::context::CliContext;
use crate::error::CommandError;

/// What `definition` of a service is where the API defines it.
pub(super) const API_DEFINITION: &str = "api";
/// The most names that are listed as alternatives.
const MAX_NAMES: usize = 12;

/// The requested working directory, or that of this process, and the client.
///
/// # Errors
/// When the working directory was removed, or the detection table is invalid.
pub(super) fn service_client(
    context: &CliContext,
    cwd: Option<PathBuf>,
) -> Result<ServiceClient, CommandError> {
    // Reported here rather than by a daemon that cannot start.
    drop(config::services::load_table(&context.config)?);
    Ok(ServiceClient {
        daemon: context.client(),
        cwd: resolve_directory(cwd)?,
        all_workspaces: false,
        include_dismissed: false,
    })
}

/// The client, and the directory whose `ostler.toml` applies.
#[derive(Debug, Clone)]
pub(super) struct ServiceClient {
    pub(super) daemon: DaemonClient,
    pub(super) cwd: ByteString,
    /// Whether names are resolved in all workspaces.
    all_workspaces: bool,
    /// Whether lists include dismissed services.
    include_dismissed: bool,
}

/// Whether more than one workspace is meant.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct AllWorkspacesArgs {
    /// In every workspace, not only that of the nearest ostler.toml from here upwards
    #[arg(long)]
    pub(super) all_workspaces: bool,
}

/// The services that an unknown name may have been meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Candidates {
    /// All that are listed.
    Listed,
    /// Those that are defined: by a file, or by the API.
    Defined,
    /// Those that are defined by the API.
    DefinedByApi,
}

impl Candidates {
    fn include(self, service: &ServiceBody) -> bool {
        match self {
            Self::Listed => true,
            Self::Defined => service.definition.is_some(),
            Self::DefinedByApi => service.definition.as_deref() == Some(API_DEFINITION),
        }
    }

    /// The hint where there are none.
    const fn none_hint(self) -> &'static str {
        match self {
            Self::Listed => "there are no services; `ostler service start -- COMMAND` starts one",
            Self::Defined | Self::DefinedByApi => {
                "no other is defined; `ostler service define NAME -- COMMAND` defines one"
            }
        }
    }
}

impl ServiceClient {
    /// The same client for one or all workspaces.
    pub(super) fn with_workspaces(
        self,
        AllWorkspacesArgs { all_workspaces }: AllWorkspacesArgs,
    ) -> Self {
        Self {
            all_workspaces,
            ..self
        }
    }

    /// The same client with dismissed services in lists, if requested.
    pub(super) fn include_dismissed(self, dismissed: bool) -> Self {
        Self {
            include_dismissed: dismissed,
            ..self
        }
    }

    /// The REST path of a resource below one service.
    pub(super) fn path(name: &str, rest: &str) -> String {
        let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        // In a path, a blank is not encoded as a plus sign.
        let name = name.replace('+', "%20");
        format!("/api/v1/services/{name}{rest}")
    }

    /// The same path with the directory.
    fn scoped_path(&self, name: &str, rest: &str) -> String {
        format!("{}?{}", Self::path(name, rest), self.query())
    }

    fn query(&self) -> String {
        if self.all_workspaces {
            return String::new();
        }
        let cwd: String = form_urlencoded::byte_serialize(self.cwd.as_bytes()).collect();
        format!("cwd={cwd}")
    }

    /// The first services of the list: at most `limit`, or the daemon's default number.
    ///
    /// # Errors
    /// As the daemon responds.
    pub(super) async fn list(&self, limit: Option<u32>) -> Result<ServicesBody, CommandError> {
        let limit = limit.map(|limit| limit.to_string());
        self.list_page(limit.map(|limit| ("limit", limit))).await
    }

    /// All services, page by page.
    ///
    /// # Errors
    /// As the daemon responds.
    pub(super) async fn list_all(&self) -> Result<Vec<ServiceBody>, CommandError> {
        let mut services = Vec::new();
        let mut cursor = None;
        loop {
            let list = self
                .list_page(cursor.map(|cursor| ("cursor", cursor)))
                .await?;
            services.extend(list.services);
            cursor = list.next;
            if cursor.is_none() {
                return Ok(services);
            }
        }
    }

    async fn list_page(
        &self,
        parameter: Option<(&str, String)>,
    ) -> Result<ServicesBody, CommandError> {
        let mut path = format!("/api/v1/services?{}", self.query());
        if self.include_dismissed {
            path += "&dismissed=true";
        }
        if let Some((name, value)) = parameter {
            let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            path += &format!("&{name}={value}");
        }
        self.daemon
            .call(Method::GET, &path, RequestBody::None)
            .await
    }

    /// Fetches one service.
    ///
    /// # Errors
    /// As the daemon responds; an unknown name with similar ones.
    pub(super) async fn show(&self, name: &str) -> Result<ServiceBody, CommandError> {
        let path = self.scoped_path(name, "");
        let service = self
            .daemon
            .call(Method::GET, &path, RequestBody::None)
            .await;
        self.with_suggestion(&[name], Candidates::Listed, service)
            .await
    }

    /// Fetches a resource below one service.
    ///
    /// # Errors
    /// As [`ServiceClient::show`].
    pub(super) async fn get<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        rest: &str,
    ) -> Result<T, CommandError> {
        let path = self.scoped_path(name, rest);
        let result = self
            .daemon
            .call(Method::GET, &path, RequestBody::None)
            .await;
        self.with_suggestion(&[name], Candidates::Listed, result)
            .await
    }

    /// Sends a POST to a resource below one service.
    ///
    /// # Errors
    /// As [`ServiceClient::show`].
    pub(super) async fn post<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        rest: &str,
        body: RequestBody,
    ) -> Result<T, CommandError> {
        let path = self.scoped_path(name, rest);
        let result = self.daemon.call(Method::POST, &path, body).await;
        self.with_suggestion(&[name], Candidates::Listed, result)
            .await
    }

    /// The same result; where one of the requested names is unknown, with similar ones.
    pub(super) async fn with_suggestion<T>(
        &self,
        requested: &[&str],
        candidates: Candidates,
        result: Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        match result {
            Err(error) if error.code() == Some(ErrorCode::ProcessNotFound) => {
                Err(self.suggest(requested, candidates, error).await)
            }
            answer => answer,
        }
    }

    async fn suggest(
        &self,
        requested: &[&str],
        candidates: Candidates,
        error: CommandError,
    ) -> CommandError {
        let Ok(list) = self.list(None).await else {
            return error;
        };
        let services = list.services.iter().filter(|it| candidates.include(it));
        let mut names: Vec<&str> = services.map(|service| service.name.as_str()).collect();
        let unknown = requested.iter().find(|name| !names.contains(name));
        // One that is listed and yet unknown is no alternative to itself.
        let mut seen = HashSet::new();
        names.retain(|name| !requested.contains(name) && seen.insert(*name));
        let suggestion = unknown.and_then(|unknown| nearest(unknown, names.iter().copied()));
        match suggestion {
            Some(suggestion) => error.with_hint(format!("did you mean {suggestion}?")),
            None if names.is_empty() => error.with_hint(candidates.none_hint()),
            None if names_known(&error) => error,
            None => {
                let listed = &names[..names.len().min(MAX_NAMES)];
                error.with_hint(format!("there are {}", listed.join(", ")))
            }
        }
    }
}

/// Whether the message has the names that there are.
fn names_known(error: &CommandError) -> bool {
    error.message().is_some_and(|it| it.contains("; known: "))
}

/// Sends a request; if the policy requires an approval and there is a terminal, prompts for it and
/// repeats the request.
///
/// # Errors
/// As the daemon responds.
pub(super) async fn with_approval<T, F, Fut>(
    client: &DaemonClient,
    command: &str,
    request: F,
) -> Result<T, CommandError>
where
    F: Fn(Option<String>) -> Fut,
    Fut: Future<Output = Result<T, CommandError>>,
{
    let error = match request(None).await {
        Err(error) if error.approval().is_some() => error,
        answer => return answer,
    };
    let id = error.approval().unwrap_or_default().to_owned();
    let reason = error.message().unwrap_or_default();
    if approve::ask_at_terminal(client, &id, command, reason).await? != Some(true) {
        return Err(error);
    }
    request(Some(id)).await
}
