//! The HTTP listener on TCP: for `ostler serve`, and on demand if the configuration names a port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use ostler_engine::project_of;
use ostler_http::listen::{HEAD_MS, listen_tcp};
use ostler_http::rest::{count_in_flight, observe, router};
use ostler_http::tokens::{NewToken, TokenScope, TokenSecret};
use ostler_http::{AppParts, HttpOptions, WebAccess, app};
use ostler_mcp::{McpHttpOptions, McpHttpParts, http_routes};
use ostler_model::{ByteString, Principal};

use super::run::StartMode;
use super::stdio_server::{StdioServer, tool_set};
use crate::config::Config;
use crate::error::CommandError;
use crate::paths;
use crate::process_env::ProcessEnv;

/// The name of the token that is created when there is none.
const FIRST_TOKEN: &str = "default";

/// A bound address and its options.
#[derive(Debug)]
pub(crate) struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
    mcp_options: McpHttpOptions,
    token_status: TokenStatus,
}

/// Whether HTTP is served.
#[derive(Debug)]
pub(crate) enum HttpStart {
    /// It is not configured.
    Off,
    /// Its address cannot be used; which, and why.
    Failed(String),
    /// It is served.
    Open(Box<HttpListener>),
}

impl HttpStart {
    /// The listener, or why there is none although it is configured.
    pub(crate) fn into_parts(self) -> (Option<HttpListener>, Option<String>) {
        match self {
            Self::Off => (None, None),
            Self::Failed(problem) => (None, Some(problem)),
            Self::Open(listener) => (Some(*listener), None),
        }
    }
}

/// What a client needs for access.
#[derive(Debug)]
pub(crate) enum TokenStatus {
    /// Nothing.
    NotRequired,
    /// A token that was just created.
    Created(TokenSecret),
    /// A token that was created earlier.
    Exists,
    /// A token, but none exists.
    Missing,
}

impl HttpListener {
    /// Binds the address.
    ///
    /// # Errors
    /// When the configuration is invalid; in the foreground, also when the address is in use.
    pub(crate) fn open(
        config: &Config,
        env: &ProcessEnv,
        mode: StartMode,
    ) -> Result<HttpStart, CommandError> {
        if mode == StartMode::OnDemand && !config.has_http_port() {
            return Ok(HttpStart::Off);
        }
        let wanted = config.http_address()?;
        let listener = match bind(wanted) {
            Ok(listener) => listener,
            // A client that needed a daemon does not need HTTP.
            Err(error) if mode == StartMode::OnDemand => {
                tracing::error!(%error, %wanted, "HTTP is not served");
                return Ok(HttpStart::Failed(format!("{wanted}: {error}")));
            }
            Err(error) => return Err(bind_failed(config, wanted, &error)),
        };
        let bind_error = |error: io::Error| bind_failed(config, wanted, &error);
        let tools = tool_set(&config.tools());
        let tools = tools.map_err(|error| CommandError::value(error.to_string()))?;
        let mcp_options = config.mcp_http_options(default_directory(env), tools);
        let directory = mcp_options.client_context.cwd.as_path();
        let project = project_of(directory, Some(&paths::home(env)));
        Ok(HttpStart::Open(Box::new(Self {
            address: listener.local_addr().map_err(bind_error)?,
            options: config.http_options(own_principal(), project),
            mcp_options,
            token_status: token_status(config)?,
            listener,
        })))
    }

    /// Creates a token if there is none and a person will see it. Called last: it is shown once.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub(crate) fn ensure_token(
        mut self,
        config: &Config,
        mode: StartMode,
    ) -> Result<Self, CommandError> {
        match (&self.token_status, mode) {
            (TokenStatus::Missing, StartMode::Foreground) => {
                let secret = config.tokens().create(NewToken {
                    name: FIRST_TOKEN.to_owned(),
                    principal: own_principal(),
                    scopes: vec![TokenScope::SessionsAll],
                    expires: None,
                })?;
                self.token_status = TokenStatus::Created(secret);
            }
            (TokenStatus::Missing, StartMode::OnDemand) => tracing::warn!(
                "HTTP needs a token and there is none: `ostler token new NAME` makes one"
            ),
            (TokenStatus::NotRequired, _) => tracing::warn!(
                "HTTP needs no token: every user of this machine may run commands as you"
            ),
            (TokenStatus::Created(_) | TokenStatus::Exists, _) => {}
        }
        Ok(self)
    }

    /// The URL for clients on this machine, with the prefix.
    pub(crate) fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let address = SocketAddr::new(ip, self.address.port());
        format!("http://{address}{}", self.options.url_prefix)
    }

    /// Sign-ins at the page that it serves.
    pub(crate) fn web_access(&self) -> WebAccess {
        let prefix = self.options.url_prefix.clone();
        WebAccess::new(self.url(), prefix, self.options.access.clone())
    }

    /// The bound address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client needs for access.
    pub(crate) const fn token_status(&self) -> &TokenStatus {
        &self.token_status
    }

    /// Whether the HTTP+SSE transport of 2024-11-05 is served too.
    pub(crate) const fn has_legacy_sse(&self) -> bool {
        self.mcp_options.legacy_sse
    }

    /// Serves until the daemon stops.
    pub(crate) async fn serve(self, server: StdioServer) {
        let (access, stop) = (self.options.access.clone(), server.stop.clone());
        let watch = async move { stop.run_until_cancelled(access.watch_changes()).await };
        server.tracker.spawn(watch);
        let engine = server.mcp_state.engine().clone();
        let mcp = http_routes(McpHttpParts {
            state: server.mcp_state,
            options: self.mcp_options,
            shutdown: server.stop.clone(),
            tasks: server.tracker,
        });
        let router = app(AppParts {
            mcp: mcp.routes,
            sessions: mcp.sessions,
            rest: count_in_flight(router(server.rest.clone()), server.idle_tracker.count()),
            engine,
            options: self.options,
        });
        let router = observe(router, &server.rest);
        tracing::info!(address = %self.address, "HTTP is served");
        let head_timeout = Duration::from_millis(HEAD_MS);
        let result = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listen_tcp(listener, head_timeout, router, server.stop).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            tracing::error!(%error, "HTTP requests cannot be accepted any more");
        }
    }
}

/// The owner of what the daemon's own user starts, over any channel.
pub(crate) fn own_principal() -> Principal {
    Principal::unix(rustix::process::geteuid().as_raw())
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn bind_failed(config: &Config, address: SocketAddr, error: &io::Error) -> CommandError {
    let source = &config.get("http.port").source;
    CommandError::daemon(format!("cannot listen at {address} ({source}): {error}"))
        .with_hint("name another address with --host and --port, or http.host and http.port")
}

fn token_status(config: &Config) -> Result<TokenStatus, CommandError> {
    if !config.needs_token() {
        return Ok(TokenStatus::NotRequired);
    }
    let has_tokens = !config.tokens().list()?.is_empty();
    Ok(if has_tokens {
        TokenStatus::Exists
    } else {
        TokenStatus::Missing
    })
}

/// The default working directory: that of the caller in the foreground, else the home directory.
fn default_directory(env: &ProcessEnv) -> ByteString {
    let cwd = std::env::current_dir().ok();
    let here = cwd.filter(|path| path != Path::new("/"));
    ByteString::from(here.unwrap_or_else(|| paths::home(env)))
}
