//! The file in an execution's directory which says that its owner dismissed it: lists leave it out.

use std::path::Path;

use ostler_model::Principal;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::json_file;

/// Name of the file.
const FILE: &str = "dismissed.json";
/// The format's version.
const VERSION: u8 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct DismissalFile {
    version: u8,
    by: Principal,
}

/// Records that an execution was dismissed.
///
/// # Errors
/// [`Error::Storage`].
pub(crate) fn write(dir: &Path, by: &Principal) -> Result<(), Error> {
    let file = DismissalFile {
        version: VERSION,
        by: by.clone(),
    };
    json_file::replace(dir, FILE, &file)
}

/// Whether an execution was dismissed under an earlier engine.
pub(crate) fn was_dismissed(dir: &Path) -> bool {
    dir.join(FILE).exists()
}
