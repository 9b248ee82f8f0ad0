//! The configuration of services.

use std::io;
use std::path::Path;

use ostler_engine::detection::DetectionTable;
use ostler_engine::{AutoServices, ServiceSettings};
use ostler_model::ErrorCode;
use ostler_sys::regular_file;

use super::load::Config;
use super::value::SettingValue;
use super::value_checks::port_range;
use crate::error::CommandError;

/// Loads the built-in detection table with the entries of the user's file before its own; none if
/// no file is configured.
///
/// # Errors
/// When the file cannot be read, or is invalid.
pub(crate) fn load_table(config: &Config) -> Result<Option<DetectionTable>, CommandError> {
    let Some(path) = config.text("services.table") else {
        return Ok(None);
    };
    let text = regular_file::open(Path::new(&path))
        .and_then(io::read_to_string)
        .map_err(|error| table_error(config, &format!("{path}: {error}")))?;
    let table = DetectionTable::shipped().with_file(&path, &text);
    table
        .map(Some)
        .map_err(|error| table_error(config, &error.to_string()))
}

fn table_error(config: &Config, what: &str) -> CommandError {
    let source = &config.get("services.table").source;
    let message = format!("services.table ({source}): {what}");
    CommandError::new(ErrorCode::Environment, message)
}

impl Config {
    /// The settings of services.
    pub(super) fn service_settings(&self) -> ServiceSettings {
        let is_off = self.get("services.automatic").value == SettingValue::Flag(false);
        let ports = self.text("services.lease_ports");
        ServiceSettings {
            table: self.detection_table.clone(),
            automatic: if is_off {
                AutoServices::Off
            } else {
                AutoServices::On
            },
            lease_ports: ports.as_deref().and_then(port_range),
        }
    }
}
