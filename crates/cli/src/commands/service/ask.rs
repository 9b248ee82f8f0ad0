//! Questions to the daemon about services, with names that are a slip away suggested.

use std::future::Future;
use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use ostler_model::{ErrorCode, Text};
use ostler_server::wire::{ServiceBody, ServicesBody};

use crate::client::{Body, Client};
use crate::commands::approve;
use crate::commands::start::directory;
use crate::config;
use crate::error::CommandError;
use crate::output::nearest;
use crate::setup::Setup;

/// The most names that are listed to choose from.
const NAMES: usize = 12;

/// The working directory asked for, or ours, and the daemon.
///
/// # Errors
/// When ours is gone, or the table of services cannot be used.
pub(super) fn desk(setup: &Setup, cwd: Option<PathBuf>) -> Result<Desk, CommandError> {
    // Told here, and not by a daemon that cannot start.
    drop(config::services::table(&setup.config)?);
    Ok(Desk {
        client: setup.client(),
        cwd: directory(cwd)?,
        everywhere: false,
        dismissed: false,
    })
}

/// Where services are looked for: the daemon, and the directory whose `ostler.toml` holds.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) client: Client,
    pub(super) cwd: Text,
    /// Names are looked for in every workspace.
    everywhere: bool,
    /// Lists show what was dismissed, too.
    dismissed: bool,
}

/// Whether more than one workspace is meant.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct WorkspaceArgs {
    /// In every workspace, not only that of the nearest ostler.toml from here upwards
    #[arg(long)]
    pub(super) all_workspaces: bool,
}

impl Desk {
    /// The same for as many workspaces as are asked for.
    pub(super) fn over(self, WorkspaceArgs { all_workspaces }: WorkspaceArgs) -> Self {
        Self {
            everywhere: all_workspaces,
            ..self
        }
    }

    /// The same with what was dismissed, where that is wanted.
    pub(super) fn with_dismissed(self, dismissed: bool) -> Self {
        Self { dismissed, ..self }
    }

    /// The path of what belongs to one service.
    pub(super) fn path(name: &str, rest: &str) -> String {
        let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        // In a path a blank is no plus.
        let name = name.replace('+', "%20");
        format!("/api/v1/services/{name}{rest}")
    }

    /// The same with the directory.
    fn here(&self, name: &str, rest: &str) -> String {
        format!("{}?{}", Self::path(name, rest), self.query())
    }

    fn query(&self) -> String {
        if self.everywhere {
            return String::new();
        }
        let cwd: String = form_urlencoded::byte_serialize(self.cwd.as_bytes()).collect();
        format!("cwd={cwd}")
    }

    /// The first services of the list, at most as many as `limit` says or the daemon thinks
    /// enough.
    ///
    /// # Errors
    /// As the daemon answers.
    pub(super) async fn list(&self, limit: Option<u32>) -> Result<ServicesBody, CommandError> {
        let limit = limit.map(|limit| limit.to_string());
        self.window(limit.map(|limit| ("limit", limit))).await
    }

    /// Every service there is, window by window.
    ///
    /// # Errors
    /// As the daemon answers.
    pub(super) async fn every(&self) -> Result<Vec<ServiceBody>, CommandError> {
        let mut services = Vec::new();
        let mut cursor = None;
        loop {
            let list = self.window(cursor.map(|cursor| ("cursor", cursor))).await?;
            services.extend(list.services);
            cursor = list.next;
            if cursor.is_none() {
                return Ok(services);
            }
        }
    }

    async fn window(&self, asked: Option<(&str, String)>) -> Result<ServicesBody, CommandError> {
        let mut path = format!("/api/v1/services?{}", self.query());
        if self.dismissed {
            path += "&dismissed=true";
        }
        if let Some((name, value)) = asked {
            let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            path += &format!("&{name}={value}");
        }
        self.client.call(Method::GET, &path, Body::None).await
    }

    /// One service.
    ///
    /// # Errors
    /// As the daemon answers; an unknown name with what it looks like.
    pub(super) async fn show(&self, name: &str) -> Result<ServiceBody, CommandError> {
        let path = self.here(name, "");
        let shown = self.client.call(Method::GET, &path, Body::None).await;
        self.or_suggest(name, shown).await
    }

    /// Whatever stands below one service.
    ///
    /// # Errors
    /// As [`Desk::show`].
    pub(super) async fn get<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        rest: &str,
    ) -> Result<T, CommandError> {
        let path = self.here(name, rest);
        let got = self.client.call(Method::GET, &path, Body::None).await;
        self.or_suggest(name, got).await
    }

    /// Asks for something to be done to one service.
    ///
    /// # Errors
    /// As [`Desk::show`].
    pub(super) async fn post<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        rest: &str,
        body: Body,
    ) -> Result<T, CommandError> {
        let path = self.here(name, rest);
        let done = self.client.call(Method::POST, &path, body).await;
        self.or_suggest(name, done).await
    }

    /// The same answer; where no service has the name, with those it may have meant.
    pub(super) async fn or_suggest<T>(
        &self,
        name: &str,
        answer: Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        match answer {
            Err(error) if error.code() == Some(ErrorCode::ProcessNotFound) => {
                Err(self.suggest(name, error).await)
            }
            answer => answer,
        }
    }

    async fn suggest(&self, name: &str, error: CommandError) -> CommandError {
        let Ok(list) = self.list(None).await else {
            return error;
        };
        let services = &list.services;
        let names: Vec<&str> = services
            .iter()
            .map(|service| service.name.as_str())
            .collect();
        match nearest(name, names.iter().copied()) {
            Some(like) => error.with_hint(format!("did you mean {like}?")),
            None if names.is_empty() => error
                .with_hint("there are no services; `ostler service start -- COMMAND` starts one"),
            None => {
                let shown = &names[..names.len().min(NAMES)];
                error.with_hint(format!("there are {}", shown.join(", ")))
            }
        }
    }
}

/// Asks; where the policy wants a person's word first and a person is there, asks for that and
/// asks again with it.
///
/// # Errors
/// As the daemon answers.
pub(super) async fn approved<T, F, Fut>(
    client: &Client,
    command: &str,
    ask: F,
) -> Result<T, CommandError>
where
    F: Fn(Option<String>) -> Fut,
    Fut: Future<Output = Result<T, CommandError>>,
{
    let error = match ask(None).await {
        Err(error) if error.approval().is_some() => error,
        answer => return answer,
    };
    let id = error.approval().unwrap_or_default().to_owned();
    let why = error.told().unwrap_or_default();
    if approve::at_terminal(client, &id, (command, why)).await? != Some(true) {
        return Err(error);
    }
    ask(Some(id)).await
}
