//! Configuration: defaults, files, environment and flags, each value with where it came from.
//!
//! * [`keys`]: the table of everything that can be set.
//! * [`value`]: what a value may be, and what is allowed for each key.
//! * [`file`]: the file's values with their lines.
//! * [`load`]: the layers, strongest last: default, file, environment, flag.
//! * [`secrets`]: the file of secrets, read when one is asked for; [`bindings`]: who is given
//!   which.
//! * [`settings`]: what the engine and the daemon are given; [`http`]: what HTTP is.

mod bindings;
mod env;
mod file;
mod http;
mod keys;
mod load;
pub(crate) mod policy;
mod secrets;
pub(crate) mod services;
mod settings;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use bindings::describe as describe_binding;
pub(crate) use env::ProcessEnv;
pub(crate) use keys::{KEYS, SettingKey};
pub(crate) use load::{Config, ConfigFlags, FlagValue, Setting, SettingSource};
pub(crate) use secrets::check_file as check_secrets;
pub(crate) use settings::ClientPolicy;
pub(crate) use value::TOOL_PROFILES;
