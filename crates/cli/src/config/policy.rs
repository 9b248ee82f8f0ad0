//! The files of the command policy.
//!
//! No policy applies unless a file of rules exists in its place, or `policy.mode` names a built-in
//! one. The machine's file always applies, whatever the user configures.

use std::io;
use std::path::{Path, PathBuf};

use ostler_model::ErrorCode;
use ostler_policy::{RuleSet, RuleSource, RuleTier};
use ostler_sys::regular_file;

use super::load::Config;
use crate::error::CommandError;
use crate::paths;
use crate::process_env::ProcessEnv;

/// The file of the machine's rules.
pub(crate) const MACHINE_FILE: &str = "/etc/ostler/policy.toml";

/// The files of a policy, lowest tier first; none without a policy.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn sources(config: &Config, env: &ProcessEnv) -> Result<Vec<RuleSource>, CommandError> {
    let mode = config.text("policy.mode").unwrap_or_default();
    let mut sources = match mode.as_str() {
        "default" => RuleSource::shipped(),
        "claude" => RuleSource::claude_only(),
        _ => Vec::new(),
    };
    if mode != "off" {
        let named = config.text("policy.file").map(PathBuf::from);
        let is_named = named.is_some();
        let file =
            named.unwrap_or_else(|| paths::default_config(env).with_file_name("policy.toml"));
        sources.extend(read_source(RuleTier::User, &file, is_named)?);
    }
    sources.extend(read_source(
        RuleTier::Admin,
        Path::new(MACHINE_FILE),
        false,
    )?);
    Ok(sources)
}

/// Loads the policy in force; none allows every command.
///
/// # Errors
/// When a file cannot be read, or is invalid.
pub(crate) fn load(config: &Config, env: &ProcessEnv) -> Result<Option<RuleSet>, CommandError> {
    let sources = sources(config, env)?;
    if sources.is_empty() {
        return Ok(None);
    }
    let set = RuleSet::load(&sources);
    set.map(Some).map_err(|error| {
        config_error(error.to_string()).with_hint("`ostler policy test` checks files")
    })
}

fn read_source(
    tier: RuleTier,
    file: &Path,
    must_exist: bool,
) -> Result<Option<RuleSource>, CommandError> {
    match regular_file::open(file).and_then(io::read_to_string) {
        Ok(text) => Ok(Some(RuleSource::new(
            tier,
            file.display().to_string(),
            text,
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
        Err(error) => Err(config_error(format!("{}: {error}", file.display()))),
    }
}

fn config_error(message: String) -> CommandError {
    CommandError::new(ErrorCode::Environment, message)
}
