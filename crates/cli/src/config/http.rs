//! The configuration of the HTTP listener.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use ostler_http::tokens::TokenStore;
use ostler_http::{HttpAccess, HttpOptions, RateLimit, WebFile, WebFiles};
use ostler_mcp::{ClientContext, McpHttpOptions, ToolSet};
use ostler_model::{ByteString, ErrorCode, Principal};
use ostler_web::EmbeddedFile;

use super::load::Config;
use super::value::SettingValue;
use crate::error::CommandError;

/// The name of the token file in the state directory.
const TOKENS_FILE: &str = "tokens.json";
/// The name of the session file in the state directory.
const SESSIONS_FILE: &str = "http-sessions.json";

impl Config {
    /// Whether a daemon started on demand serves HTTP.
    pub(crate) fn has_http_port(&self) -> bool {
        self.get("http.port").value != SettingValue::Unset
    }

    /// The address to listen on; port 0 is any.
    ///
    /// # Errors
    /// When everyone who can reach it would have access.
    pub(crate) fn http_address(&self) -> Result<SocketAddr, CommandError> {
        let host = self.text("http.host").and_then(|host| host.parse().ok());
        let host: IpAddr = host.unwrap_or(Ipv4Addr::LOCALHOST.into());
        if !self.needs_token() && !host.to_canonical().is_loopback() {
            let (tokens, at) = (self.get("http.tokens"), self.get("http.host"));
            let message = format!(
                "http.tokens = {} ({}) does not go with http.host = {} ({}): everybody who \
                 reaches that address could run commands as you",
                tokens.value, tokens.source, at.value, at.source
            );
            let hint = "serve a loopback address, or leave tokens on";
            return Err(CommandError::new(ErrorCode::Environment, message).with_hint(hint));
        }
        let port = self
            .number("http.port")
            .and_then(|port| port.try_into().ok());
        Ok(SocketAddr::new(host, port.unwrap_or(0)))
    }

    /// Whether HTTP clients need a token.
    pub(crate) fn needs_token(&self) -> bool {
        self.text("http.tokens").as_deref() != Some("off")
    }

    /// The token store of the state directory.
    pub(crate) fn tokens(&self) -> TokenStore {
        TokenStore::new(self.dirs().state.join(TOKENS_FILE))
    }

    /// The options of the HTTP server. Without tokens, requests belong to `principal`.
    pub(crate) fn http_options(&self, principal: Principal, project: String) -> HttpOptions {
        let access = if self.needs_token() {
            HttpAccess::Tokens(self.tokens())
        } else {
            HttpAccess::Open(principal)
        };
        HttpOptions {
            url_prefix: self.url_prefix(),
            hosts: self.list("http.hosts").unwrap_or_default(),
            origins: self.list("http.origins").unwrap_or_default(),
            web_files: self.web_files(),
            rate_limit: self.rate_limit(),
            ..HttpOptions::new(access, Some(project))
        }
    }

    /// The files of the web interface.
    pub(super) fn web_files(&self) -> WebFiles {
        if let Some(directory) = self.text("http.web_directory") {
            return WebFiles::Directory(directory.into());
        }
        if let Some(reason) = ostler_web::ABSENT {
            return WebFiles::Absent(reason);
        }
        let file = |file: &EmbeddedFile| WebFile {
            path: file.path,
            gzip: file.gzip,
            sha256: file.sha256,
        };
        WebFiles::Embedded(ostler_web::FILES.iter().map(file).collect())
    }

    /// The options of MCP over HTTP. Commands start in `directory` unless the configuration names
    /// another.
    pub(crate) fn mcp_http_options(&self, directory: ByteString, tools: ToolSet) -> McpHttpOptions {
        // The environment is the daemon's own, which the engine has.
        let client = ClientContext {
            cwd: self
                .text("http.directory")
                .map_or(directory, ByteString::from),
            tools,
            ..ClientContext::default()
        };
        McpHttpOptions {
            url_prefix: self.url_prefix(),
            legacy_sse: self.get("http.legacy_sse").value == SettingValue::Flag(true),
            sessions_file: Some(self.dirs().state.join(SESSIONS_FILE)),
            ..McpHttpOptions::new(client)
        }
    }

    fn rate_limit(&self) -> Option<RateLimit> {
        let count = |name| NonZeroU32::new(self.number(name)?.try_into().ok()?);
        let per_second = count("http.rate_limit")?;
        Some(RateLimit {
            per_second,
            burst: count("http.rate_burst").unwrap_or(per_second),
        })
    }

    fn url_prefix(&self) -> String {
        self.text("http.url_prefix").unwrap_or_default()
    }
}
