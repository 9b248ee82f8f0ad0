//! The rules of a workspace, which can only tighten a policy.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use ostler_policy::{RuleSet, RuleSource, RuleTier};
use ostler_sys::regular_file;

use crate::error::Error;
use crate::file_owner::is_trusted_owner;

/// A workspace's own rules, below its directory.
const WORKSPACE_FILE: &str = ".ostler/policy.toml";
/// The rule id of a refusal because a workspace's rules cannot be read.
const UNREADABLE: &str = "workspace-policy";
/// The largest file of workspace rules, in bytes.
const FILE_BYTES: u64 = 256 * 1024;
/// The most parent directories of the working directory that are searched.
const ANCESTORS: usize = 64;

/// The policy with the rules of all workspace files from the working directory upwards; none where
/// there are none. A file that cannot be read, or would loosen the policy, lets nothing run. A file
/// of another user, who does not own the working directory either, has no effect: a directory above
/// may be one that everybody writes to.
///
/// # Errors
/// [`Error::Denied`], with what is wrong with the file.
pub fn with_workspace_rules(set: &RuleSet, cwd: &ByteString) -> Result<Option<RuleSet>, Error> {
    let unusable = |reason: String| Error::Denied {
        rule: UNREADABLE.to_owned(),
        reason,
    };
    let mut directories: Vec<&Path> = cwd.as_path().ancestors().take(ANCESTORS).collect();
    directories.retain(|directory| workspace_file(directory).symlink_metadata().is_ok());
    let mut tightened: Option<RuleSet> = None;
    for directory in directories.into_iter().rev() {
        let name = workspace_file(directory).display().to_string();
        let text = read_rules(directory, cwd.as_path());
        let Some(text) = text.map_err(|error| unusable(format!("{name}: {error}")))? else {
            tracing::info!(file = %name, "the rules of another user's workspace have no effect");
            continue;
        };
        let source = RuleSource::new(RuleTier::Workspace, name, text);
        let outer = tightened.as_ref().unwrap_or(set);
        let inner = outer.with_workspace(&source);
        tightened = Some(inner.map_err(|error| unusable(error.to_string()))?);
    }
    Ok(tightened)
}

fn workspace_file(directory: &Path) -> PathBuf {
    directory.join(WORKSPACE_FILE)
}

/// The text of a directory's rules; none where they are another user's. No link is followed: a
/// command that may write to the workspace would have a file of its choice read, and quoted in the
/// refusal.
fn read_rules(directory: &Path, cwd: &Path) -> io::Result<Option<String>> {
    let file = regular_file::open_beneath(directory, Path::new(WORKSPACE_FILE))?;
    if !is_trusted_owner(file.metadata()?.uid(), cwd) {
        return Ok(None);
    }
    regular_file::text_of(file, FILE_BYTES).map(Some)
}
