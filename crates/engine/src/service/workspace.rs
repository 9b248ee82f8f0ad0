//! Workspaces: the directory that a name is resolved from, and the one a service belongs to.

use std::path::{Path, PathBuf};

use ostler_model::ByteString;

use super::caller_services::manifest_path;
use super::definition_store::API;
use super::manifest::{Manifest, locate, locate_or};
use super::reload::ManifestWatches;
use super::{ServiceError, ServiceInfo};
use crate::admission::environment;
use crate::settings::Settings;

/// The scope in which names are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NameScope<'a> {
    /// In every workspace.
    #[default]
    AllWorkspaces,
    /// In the workspace of this `ostler.toml`; none: among those that belong to no workspace.
    Workspace(Option<&'a Path>),
}

/// The scope that a service belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ServiceScope {
    /// To the workspace of this `ostler.toml`, or to none.
    Workspace(Option<PathBuf>),
    /// The principal that defined it through the API, in every directory.
    Principal,
}

/// A caller's workspace: the path of its file, and the parsed content where needed.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceContext {
    file: Option<Option<PathBuf>>,
    pub(crate) manifest: Option<Manifest>,
    /// Why its file cannot be used, where nothing else reports that.
    pub(crate) problem: Option<ServiceError>,
}

impl WorkspaceContext {
    /// The workspace of a directory, without parsing its file. A removed file counts as long as its
    /// services run.
    pub(crate) fn at(dir: &Path, home: Option<&Path>, watches: &ManifestWatches) -> Self {
        Self {
            file: Some(locate_or(dir, home, |file| watches.is_watched(file))),
            ..Self::default()
        }
    }

    /// The workspace of a parsed file.
    pub(crate) fn from_manifest(manifest: Manifest) -> Self {
        Self {
            file: Some(Some(manifest.path.clone())),
            manifest: Some(manifest),
            problem: None,
        }
    }

    /// The same, with the parsed file.
    pub(crate) fn with_manifest(self, manifest: Option<Manifest>) -> Self {
        Self { manifest, ..self }
    }

    /// The same, with the reason why its file cannot be used.
    pub(crate) fn with_problem(self, problem: Option<ServiceError>) -> Self {
        Self { problem, ..self }
    }

    /// The workspace's file, where there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref()?.as_deref()
    }

    /// The scope in which its names are resolved.
    pub(crate) fn name_scope(&self) -> NameScope<'_> {
        self.file.as_ref().map_or(NameScope::AllWorkspaces, |file| {
            NameScope::Workspace(file.as_deref())
        })
    }
}

impl NameScope<'_> {
    /// Whether a service of this scope is visible here.
    pub(crate) fn includes(self, scope: &ServiceScope) -> bool {
        match (self, scope) {
            (Self::AllWorkspaces, _) | (_, ServiceScope::Principal) => true,
            (Self::Workspace(file), ServiceScope::Workspace(of)) => of.as_deref() == file,
        }
    }
}

impl ServiceScope {
    /// The scope of a service that is defined there and runs in this directory.
    pub(crate) fn new(
        settings: &Settings,
        defined_in: Option<&ByteString>,
        cwd: &ByteString,
    ) -> Self {
        match (defined_in.and_then(manifest_path), defined_in) {
            (Some(file), _) => Self::Workspace(Some(file.to_owned())),
            (None, Some(at)) if at.as_bytes() == API.as_bytes() => Self::Principal,
            (None, _) => {
                let home = environment::value(&settings.base_env, b"HOME");
                let home = home.map(ByteString::as_path);
                Self::Workspace(locate(cwd.as_path(), home))
            }
        }
    }

    /// The scope of a list row.
    pub(crate) fn from_info(info: &ServiceInfo) -> Self {
        if info.defined_in.as_deref() == Some(API) {
            return Self::Principal;
        }
        Self::Workspace(info.workspace.clone())
    }

    /// The file of its workspace.
    pub(crate) fn workspace(self) -> Option<PathBuf> {
        match self {
            Self::Workspace(file) => file,
            Self::Principal => None,
        }
    }

    /// Whether two services may refer to each other by name.
    pub(crate) fn shares_names(&self, other: &Self) -> bool {
        self == other || *self == Self::Principal || *other == Self::Principal
    }
}
