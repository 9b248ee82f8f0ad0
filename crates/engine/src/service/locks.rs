//! One lock per service name: two callers that ensure the same service start one.

use std::path::PathBuf;

use ostler_model::Caller;

/// The key of a name: its owner. Sessions share it, since some see each other's services.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServiceKey {
    principal: String,
    manifest: Option<PathBuf>,
    name: String,
}

impl ServiceKey {
    pub(crate) fn new(caller: &Caller, manifest: Option<PathBuf>, name: &str) -> Self {
        let owner = &caller.owner;
        Self {
            principal: owner.principal.0.clone(),
            manifest,
            name: name.to_owned(),
        }
    }
}
