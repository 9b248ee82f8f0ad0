//! Configuration: defaults, files, environment and flags, each value with its source.
//!
//! * [`keys`]: the table of all settings, in parts: [`command_keys`], [`daemon_keys`], [`container_keys`].
//! * [`value`]: the kinds of values, and what each allows; [`value_checks`]: their forms; [`container`]: those of
//!   containers.
//! * [`file`]: the values of a file with their line numbers.
//! * [`load`]: the layers in increasing precedence: default, file, environment, flag.
//! * [`secrets`]: the file of secrets, read when one is requested; [`bindings`]: who may use which.
//! * [`webhook`]: the webhook of alerts and its key; [`history`]: the server of the history and its password.
//! * [`settings`]: the settings of the engine and the daemon; [`http`]: those of HTTP; [`mcp_app`]: the page of MCP.

mod bindings;
mod command_keys;
mod container;
mod container_keys;
mod daemon_keys;
mod file;
mod history;
mod http;
mod keys;
mod load;
mod mcp_app;
pub(crate) mod policy;
mod secrets;
pub(crate) mod services;
mod settings;
#[cfg(test)]
mod tests;
mod value;
mod value_checks;
mod webhook;

pub(crate) use bindings::describe as describe_binding;
pub(crate) use keys::{KEYS, SettingKey};
pub(crate) use load::{Config, ConfigFlags, FileState, FlagValue, Setting, SettingSource};
pub(crate) use secrets::check_file as check_secrets;
pub(crate) use settings::ClientPolicy;
pub(crate) use value::TOOL_PROFILES;
pub(crate) use webhook::setting_error as webhook_error;
