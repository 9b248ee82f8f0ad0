//! Definitions of the API, kept over restarts (E7).

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ostler_model::{Caller, Principal};
use serde::{Deserialize, Serialize};

use super::{Definition, ServiceError};
use crate::error::Error;

/// The file within the state directory.
const FILE: &str = "services.json";
const VERSION: u8 = 1;
/// Definitions of all owners together.
const DEFINITIONS: usize = 1_000;
/// Where services of the API are defined, in words.
pub(crate) const API: &str = "api";

/// The definitions.
#[derive(Debug)]
pub(crate) struct Definitions {
    path: PathBuf,
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    principal: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    definition: Definition,
}

impl Kept {
    fn is_of(&self, caller: &Caller) -> bool {
        self.principal == caller.owner.principal
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Kepts {
    version: u8,
    definitions: Vec<Kept>,
}

impl Definitions {
    /// Reads what is kept. A file that cannot be read is set aside, not overwritten.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, Error> {
        let path = state_dir.join(FILE);
        let kept = match fs::read(&path) {
            Ok(bytes) => read(&path, &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(storage("cannot read", &path, source)),
        };
        Ok(Self {
            path,
            kept: Mutex::new(kept),
        })
    }

    /// Those of a caller's principal and project, by name.
    pub(crate) fn of(&self, caller: &Caller) -> Vec<Definition> {
        let kept = self.lock();
        let mut found: Vec<Definition> = kept
            .iter()
            .filter(|it| it.is_of(caller))
            .map(|it| it.definition.clone())
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// The one of this name.
    pub(crate) fn get(&self, caller: &Caller, name: &str) -> Option<Definition> {
        let kept = self.lock();
        let mut found = kept.iter().filter(|it| it.is_of(caller));
        found
            .find(|it| it.definition.name == name)
            .map(|it| it.definition.clone())
    }

    /// Keeps one, in place of an older one of its name.
    pub(crate) fn put(&self, caller: &Caller, definition: Definition) -> Result<(), Error> {
        let mut kept = self.lock();
        let mut next = kept.clone();
        let name = definition.name.clone();
        next.retain(|it| !(it.is_of(caller) && it.definition.name == name));
        if next.len() >= DEFINITIONS {
            let problem = format!("{DEFINITIONS} services are defined already; forget some");
            let (what, given) = ("definition", name);
            return Err(ServiceError::Value {
                what,
                given,
                problem,
            }
            .into());
        }
        next.push(Kept {
            principal: caller.owner.principal.clone(),
            project: None,
            definition,
        });
        self.write(&next)?;
        *kept = next;
        Ok(())
    }

    /// Forgets one; false where there was none.
    pub(crate) fn remove(&self, caller: &Caller, name: &str) -> Result<bool, Error> {
        let mut kept = self.lock();
        let mut next = kept.clone();
        next.retain(|it| !(it.is_of(caller) && it.definition.name == name));
        if next.len() == kept.len() {
            return Ok(false);
        }
        self.write(&next)?;
        *kept = next;
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole file or none of it; durable before it is told. Its owner alone reads it.
    fn write(&self, kept: &[Kept]) -> Result<(), Error> {
        const PRIVATE: u32 = 0o600;
        let failed = |source| storage("cannot write", &self.path, source);
        let file = Kepts {
            version: VERSION,
            definitions: kept.to_vec(),
        };
        let bytes = serde_json::to_vec(&file).map_err(|error| failed(error.into()))?;
        let aside = self.path.with_extension("json.new");
        let mut new = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(PRIVATE)
            .open(&aside)
            .map_err(failed)?;
        new.write_all(&bytes)
            .and_then(|()| new.sync_all())
            .and_then(|()| fs::rename(&aside, &self.path))
            .map_err(failed)
    }
}

fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Kept>, Error> {
    match serde_json::from_slice::<Kepts>(bytes) {
        Ok(file) if file.version <= VERSION => Ok(file.definitions),
        Ok(file) => {
            let problem = format!("version {} is newer than this engine", file.version);
            Err(storage("cannot read", path, std::io::Error::other(problem)))
        }
        Err(error) => {
            let aside = path.with_extension("json.damaged");
            tracing::warn!(path = %path.display(), %error, "cannot be read: set aside");
            fs::rename(path, aside).map_err(|source| storage("cannot move", path, source))?;
            Ok(Vec::new())
        }
    }
}

fn storage(what: &'static str, path: &Path, source: std::io::Error) -> Error {
    let path = path.to_owned();
    Error::Storage { what, path, source }
}
