//! Where alerts are posted to, and with which key they are signed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;
use thiserror::Error;

/// The certificates that servers are verified against unless another file is set: where Debian,
/// Ubuntu, Alpine and Arch keep them.
const CA_FILE: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The shortest key, in bytes: a shorter one can be guessed.
const SECRET_BYTES_MIN: usize = 16;
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

/// An address that alerts are posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// The path with its query.
    pub(super) path: String,
}

/// The key that alerts are signed with. Nothing displays it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(pub(super) Vec<u8>);

/// What a webhook needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The address.
    pub url: WebhookUrl,
    /// The key.
    pub secret: WebhookSecret,
    /// The certificates that servers are verified against, as PEM; none takes the system's.
    pub ca_file: Option<PathBuf>,
}

/// Why a webhook cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WebhookError {
    /// The text is no address of one.
    #[error(
        "no address of a webhook; allowed: http:// or https://, a host and a path, without a user or a password"
    )]
    Url,
    /// The key is too short.
    #[error(
        "a key of {0} bytes; allowed: at least {SECRET_BYTES_MIN} bytes, such as `openssl rand -hex 32` prints"
    )]
    Secret(usize),
    /// The certificates cannot be read.
    #[error("{path} has no certificates to verify servers with: {problem}")]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl FromStr for WebhookUrl {
    type Err = WebhookError;

    fn from_str(text: &str) -> Result<Self, WebhookError> {
        let uri: Uri = text.parse().map_err(|_| WebhookError::Url)?;
        let authority = uri.authority().ok_or(WebhookError::Url)?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(_) | None => return Err(WebhookError::Url),
        };
        // A password would be in the configuration, in errors and in logs.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(WebhookError::Url);
        }
        let default_port = if is_tls { HTTPS_PORT } else { HTTP_PORT };
        Ok(Self {
            is_tls,
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(default_port),
            path: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }
}

/// Scheme, host and port: a path may hold what its receiver knows senders by.
impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl WebhookSecret {
    /// A key of these bytes.
    ///
    /// # Errors
    /// [`WebhookError::Secret`].
    pub fn new(bytes: &[u8]) -> Result<Self, WebhookError> {
        if bytes.len() < SECRET_BYTES_MIN {
            return Err(WebhookError::Secret(bytes.len()));
        }
        Ok(Self(bytes.to_vec()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSettings {
    /// The file of certificates.
    pub(super) fn ca_path(&self) -> PathBuf {
        self.ca_file.clone().unwrap_or_else(|| CA_FILE.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let url: WebhookUrl = "https://hooks.example.org/a/b?c=d".parse().unwrap();
        assert_eq!(
            (url.is_tls, url.host.as_str(), url.port, url.path.as_str()),
            (true, "hooks.example.org", 443, "/a/b?c=d")
        );
        assert_eq!(url.to_string(), "https://hooks.example.org:443");
        let local: WebhookUrl = "http://127.0.0.1:8080".parse().unwrap();
        assert_eq!((local.port, local.path.as_str()), (8080, "/"));
        for text in [
            "",
            "hooks.example.org",
            "ftp://example.org/",
            "http://",
            "http://ann:word@example.org/",
            "http://example.org/a b",
            "/path",
        ] {
            assert_eq!(text.parse::<WebhookUrl>(), Err(WebhookError::Url), "{text}");
        }
    }

    #[test]
    fn a_short_key_is_refused_and_none_is_shown() {
        assert_eq!(WebhookSecret::new(b"short"), Err(WebhookError::Secret(5)));
        let secret = WebhookSecret::new(b"0123456789abcdef").unwrap();
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }
}
