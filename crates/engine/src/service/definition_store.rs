//! Stores definitions made through the API; they survive restarts of the engine.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use ostler_model::{Caller, Principal};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{ServiceDefinition, ServiceError};
use crate::error::Error;
use crate::json_file;

/// The file within the state directory.
const FILE: &str = "services.json";
const VERSION: u8 = 1;
/// The most definitions of one principal.
const DEFINITIONS: usize = 1_000;
/// The most definitions of all principals together, so that the file stays bounded: each change
/// writes all of it.
const ALL_DEFINITIONS: usize = 10_000;
/// The origin of services that were defined through the API.
pub(crate) const API: &str = "api";

#[derive(Debug)]
pub(crate) struct DefinitionStore {
    path: PathBuf,
    stored: Mutex<Vec<StoredDefinition>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredDefinition {
    principal: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    definition: ServiceDefinition,
}

impl StoredDefinition {
    fn belongs_to(&self, caller: &Caller) -> bool {
        let projects = &caller.projects.reachable;
        self.principal == caller.owner.principal && projects.contains(self.project.as_deref())
    }
}

/// The place of the caller's definition of this name: one that belongs to no project comes first.
fn position(stored: &[StoredDefinition], caller: &Caller, name: &str) -> Option<usize> {
    let found = stored
        .iter()
        .enumerate()
        .filter(|(_, it)| it.belongs_to(caller) && it.definition.name == name);
    let first = found.min_by_key(|(_, it)| it.project.is_some());
    first.map(|(place, _)| place)
}

/// Why a principal can define no further service beside those that these principals have, one for
/// each definition; none where it can. Says nothing of others.
fn no_space_problem(owners: &[&Principal], principal: &Principal) -> Option<String> {
    let own = owners.iter().filter(|owner| **owner == principal).count();
    if own >= DEFINITIONS {
        return Some(format!(
            "you have defined {DEFINITIONS} services already, as many as are allowed; forget some"
        ));
    }
    let is_full = owners.len() >= ALL_DEFINITIONS;
    is_full.then(|| "the daemon stores no further definition at present; forget some".to_owned())
}

#[derive(Debug, Serialize, Deserialize)]
struct DefinitionsFile {
    version: u8,
    definitions: Vec<StoredDefinition>,
}

impl DefinitionStore {
    /// Reads the stored definitions. An unreadable file is renamed, not overwritten.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, Error> {
        let path = state_dir.join(FILE);
        let stored = match json_file::read(&path) {
            Ok(bytes) => read(&path, &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(storage_error("cannot read", &path, source)),
        };
        Ok(Self {
            path,
            stored: Mutex::new(stored),
        })
    }

    /// The definitions that a caller reaches, by name.
    pub(crate) fn list(&self, caller: &Caller) -> Vec<ServiceDefinition> {
        let stored = self.stored.lock();
        let mut found: Vec<ServiceDefinition> = stored
            .iter()
            .filter(|it| it.belongs_to(caller))
            .map(|it| it.definition.clone())
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// The definition of this name.
    pub(crate) fn get(&self, caller: &Caller, name: &str) -> Option<ServiceDefinition> {
        let stored = self.stored.lock();
        let place = position(&stored, caller, name)?;
        Some(stored[place].definition.clone())
    }

    /// Stores a definition, replacing an older one of its name and directory. That of a caller who is
    /// limited to projects belongs to the caller's project.
    ///
    /// # Errors
    /// When the name is defined for another directory, there are too many, or it cannot be written.
    pub(crate) fn put(&self, caller: &Caller, definition: ServiceDefinition) -> Result<(), Error> {
        let mut stored = self.stored.lock();
        let mut next = stored.clone();
        let name = definition.name.clone();
        let place = position(&next, caller, &name);
        if let Some(other) = place.map(|place| &next[place].definition)
            && other.cwd != definition.cwd
        {
            let problem = format!(
                "it is defined for {} already: forget that definition first, or choose another name",
                other.cwd.as_path().display()
            );
            return Err(value_error("service name", name, problem));
        }
        let project = match place {
            Some(place) => next.remove(place).project,
            None if caller.projects.reachable.is_all() => None,
            None => caller.owner.project.clone(),
        };
        let owners: Vec<&Principal> = next.iter().map(|it| &it.principal).collect();
        if let Some(problem) = no_space_problem(&owners, &caller.owner.principal) {
            return Err(value_error("definition", name, problem));
        }
        next.push(StoredDefinition {
            principal: caller.owner.principal.clone(),
            project,
            definition,
        });
        self.write(&next)?;
        *stored = next;
        Ok(())
    }

    /// Deletes a definition; false where there was none.
    pub(crate) fn remove(&self, caller: &Caller, name: &str) -> Result<bool, Error> {
        let mut stored = self.stored.lock();
        let mut next = stored.clone();
        let Some(place) = position(&next, caller, name) else {
            return Ok(false);
        };
        next.remove(place);
        self.write(&next)?;
        *stored = next;
        Ok(true)
    }

    /// Replaces the file atomically and durably. Only its owner can read it.
    fn write(&self, definitions: &[StoredDefinition]) -> Result<(), Error> {
        let failed = |source| storage_error("cannot write", &self.path, source);
        let file = DefinitionsFile {
            version: VERSION,
            definitions: definitions.to_vec(),
        };
        let bytes = serde_json::to_vec(&file).map_err(|error| failed(error.into()))?;
        let mut new = AtomicFile::create(&self.path, PRIVATE_MODE).map_err(failed)?;
        new.write_all(&bytes)
            .and_then(|()| new.commit_durably())
            .map_err(failed)
    }
}

fn read(path: &Path, bytes: &[u8]) -> Result<Vec<StoredDefinition>, Error> {
    json_file::refuse_newer(path, bytes, VERSION)?;
    match serde_json::from_slice::<DefinitionsFile>(bytes) {
        Ok(file) => Ok(file.definitions),
        Err(error) => {
            let backup_path = path.with_extension("json.damaged");
            tracing::warn!(path = %path.display(), %error, "cannot be read: set aside");
            fs::rename(path, backup_path)
                .map_err(|source| storage_error("cannot move", path, source))?;
            Ok(Vec::new())
        }
    }
}

fn value_error(what: &'static str, given: String, problem: String) -> Error {
    ServiceError::Value {
        what,
        given,
        problem,
    }
    .into()
}

fn storage_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    let path = path.to_owned();
    Error::Storage {
        what: action,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_leaves_space_for_others_and_the_file_is_bounded() {
        let (one, other, many) = (Principal::unix(1), Principal::unix(2), Principal::unix(3));
        let problem = |owners: &[&Principal], principal: &Principal| {
            no_space_problem(owners, principal).unwrap_or_default()
        };
        let mut owners = vec![&one; DEFINITIONS - 1];
        assert_eq!(problem(&owners, &one), "");
        owners.push(&one);
        assert!(problem(&owners, &one).contains("you have defined 1000 services"));
        assert_eq!(problem(&owners, &other), "");
        owners.resize(ALL_DEFINITIONS, &many);
        let full = problem(&owners, &other);
        let tells_a_number = full.contains(|it: char| it.is_ascii_digit());
        assert!(!full.is_empty() && !tells_a_number, "{full}");
    }
}
