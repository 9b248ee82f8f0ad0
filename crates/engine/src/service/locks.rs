//! One lock per service name: two callers that ensure the same service start one.

use std::path::PathBuf;

use ostler_model::{Caller, Owner};

/// The key of a name: its owner. Sessions share it, since some see each other's services.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServiceKey {
    principal: String,
    manifest: Option<PathBuf>,
    name: String,
}

impl ServiceKey {
    pub(crate) fn new(caller: &Caller, manifest: Option<PathBuf>, name: &str) -> Self {
        Self::of_owner(&caller.owner, manifest, name)
    }

    /// The key of a name that another caller may have locked.
    pub(crate) fn of_owner(owner: &Owner, manifest: Option<PathBuf>, name: &str) -> Self {
        Self {
            principal: owner.principal.0.clone(),
            manifest,
            name: name.to_owned(),
        }
    }
}
