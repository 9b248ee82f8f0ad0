//! What is configured of services.

use ostler_engine::detection::Table;
use ostler_engine::{Automatic, ServiceSettings};
use ostler_model::ErrorCode;

use super::load::Config;
use super::value::{Value, port_range};
use crate::error::CommandError;

/// The shipped table with the entries of `services.table` before its own; none where no file
/// is named.
///
/// # Errors
/// When the file cannot be read, or says what it cannot.
pub(crate) fn table(config: &Config) -> Result<Option<Table>, CommandError> {
    let Some(path) = config.text("services.table") else {
        return Ok(None);
    };
    let text =
        std::fs::read_to_string(&path).map_err(|error| bad(config, &format!("{path}: {error}")))?;
    let table = Table::shipped().with(&path, &text);
    table
        .map(Some)
        .map_err(|error| bad(config, &error.to_string()))
}

fn bad(config: &Config, what: &str) -> CommandError {
    let source = &config.get("services.table").source;
    let message = format!("services.table ({source}): {what}");
    CommandError::new(ErrorCode::Environment, message)
}

impl Config {
    /// How services are recognised and told.
    pub(super) fn services(&self) -> ServiceSettings {
        let off = self.get("services.automatic").value == Value::Flag(false);
        let ports = self.text("services.lease_ports");
        ServiceSettings {
            table: self.table.clone(),
            automatic: if off { Automatic::Off } else { Automatic::On },
            lease_ports: ports.as_deref().and_then(port_range),
        }
    }
}
