//! The webhook of alerts.

use std::path::Path;

use ostler_http::webhook::{WebhookError, WebhookSecret, WebhookSettings};
use ostler_model::ErrorCode;

use super::load::Config;
use super::secrets::read_private_file;
use crate::error::CommandError;

/// The most bytes of a key.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

impl Config {
    /// Where alerts are posted to; none where the setting has no address.
    ///
    /// # Errors
    /// When the key cannot be read, or others can.
    pub(crate) fn webhook(&self) -> Result<Option<WebhookSettings>, CommandError> {
        let Some(url) = self.text("alerts.webhook") else {
            return Ok(None);
        };
        let url = url.parse().map_err(|error| setting_error(&error))?;
        let Some(file) = self.webhook_secret_file() else {
            return Err(key_error("there is no file of its key"));
        };
        let secret = read_secret(&file)
            .map_err(|problem| key_error(&format!("its key {} {problem}", file.display())))?;
        let secret = WebhookSecret::new(&secret)
            .map_err(|error| key_error(&format!("its key {}: {error}", file.display())))?;
        Ok(Some(WebhookSettings {
            url,
            secret,
            ca_file: self.text("alerts.webhook_ca_file").map(Into::into),
        }))
    }
}

/// The error of a webhook that cannot be used.
pub(crate) fn setting_error(error: &WebhookError) -> CommandError {
    CommandError::new(ErrorCode::Environment, format!("alerts.webhook: {error}"))
}

fn key_error(problem: &str) -> CommandError {
    let message = format!("alerts.webhook is set, but {problem}");
    CommandError::new(ErrorCode::Environment, message).with_hint(
        "write at least 16 bytes to the file that alerts.webhook_secret_file names, yours alone: \
         openssl rand -hex 32 > FILE; chmod 600 FILE",
    )
}

fn read_secret(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read_private_file(path, SECRET_BYTES_MAX)?;
    Ok(bytes.trim_ascii().to_vec())
}
