//! HTTP on TCP: opened by `ostler serve`, and on demand where the configuration names a port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use ostler_engine::project_of;
use ostler_model::{Principal, Text};
use ostler_server::http::tokens::{NewToken, Secret, TokenScope};
use ostler_server::http::{HttpOptions, Parts, app};
use ostler_server::listen::{HEAD_MS, listen_tcp};
use ostler_server::rest::{RestState, counted, router};

use super::fronts::{Fronts, tool_set};
use super::run::How;
use crate::config::{Config, Environment};
use crate::error::CommandError;
use crate::paths;

/// The token that is made when there is none.
const FIRST_TOKEN: &str = "default";

/// A bound address, and how it is served.
#[derive(Debug)]
pub(crate) struct Web {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
    pass: Pass,
}

/// What a client needs to come in.
#[derive(Debug)]
pub(crate) enum Pass {
    /// Nothing.
    Open,
    /// A token, just made.
    Fresh(Secret),
    /// A token that was made earlier.
    Known,
    /// A token, and there is none.
    Missing,
}

impl Web {
    /// Binds the address.
    ///
    /// # Errors
    /// When the configuration is refused, or a person is told that the address cannot be had.
    pub(crate) fn open(
        config: &Config,
        env: &Environment,
        how: How,
    ) -> Result<Option<Self>, CommandError> {
        if how == How::OnDemand && !config.names_http_port() {
            return Ok(None);
        }
        let wanted = config.http_address()?;
        let listener = match bind(wanted) {
            Ok(listener) => listener,
            // Whoever needed a daemon needs no HTTP.
            Err(error) if how == How::OnDemand => {
                tracing::error!(%error, %wanted, "HTTP is not served");
                return Ok(None);
            }
            Err(error) => return Err(cannot_bind(config, wanted, &error)),
        };
        let told = |error: io::Error| cannot_bind(config, wanted, &error);
        let tools = tool_set(&config.tools());
        let tools = tools.map_err(|error| CommandError::value(error.to_string()))?;
        let mut options = config.http_options(own_principal(), directory(env), tools);
        let home = paths::home(env);
        options.project = Some(project_of(options.front.cwd.as_path(), Some(&home)));
        Ok(Some(Self {
            address: listener.local_addr().map_err(told)?,
            options,
            pass: pass(config)?,
            listener,
        }))
    }

    /// Makes a token where there is none and a person sees it. Last of all: it is shown once.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub(crate) fn admit(mut self, config: &Config, how: How) -> Result<Self, CommandError> {
        match (&self.pass, how) {
            (Pass::Missing, How::Foreground) => {
                let secret = config.tokens().create(NewToken {
                    name: FIRST_TOKEN.to_owned(),
                    principal: own_principal(),
                    scopes: vec![TokenScope::SessionsAll],
                })?;
                self.pass = Pass::Fresh(secret);
            }
            (Pass::Missing, How::OnDemand) => tracing::warn!(
                "HTTP needs a token and there is none: `ostler token new NAME` makes one"
            ),
            (Pass::Open, _) => tracing::warn!(
                "HTTP needs no token: every user of this machine may run commands as you"
            ),
            (Pass::Fresh(_) | Pass::Known, _) => {}
        }
        Ok(self)
    }

    /// Where it is, as clients on this machine reach it, up to the prefix.
    pub(crate) fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let address = SocketAddr::new(ip, self.address.port());
        format!("http://{address}{}", self.options.url_prefix)
    }

    /// The address that is bound.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client needs to come in.
    pub(crate) const fn pass(&self) -> &Pass {
        &self.pass
    }

    /// Whether the transport of 2024-11-05 is there too.
    pub(crate) const fn has_legacy_sse(&self) -> bool {
        self.options.legacy_sse
    }

    /// Serves until the daemon stops.
    pub(crate) async fn serve(self, shared: Fronts) {
        let state = RestState::new(shared.engine, shared.stop.clone());
        let router = app(Parts {
            desk: shared.desk,
            rest: counted(router(state), shared.presence.count()),
            options: self.options,
            shutdown: shared.stop.clone(),
            tasks: shared.tracker,
        });
        tracing::info!(address = %self.address, "HTTP is served");
        let head = Duration::from_millis(HEAD_MS);
        let served = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listen_tcp(listener, head, router, shared.stop).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            tracing::error!(%error, "HTTP requests cannot be accepted any more");
        }
    }
}

/// Who owns what the daemon's own user starts, by any way.
pub(crate) fn own_principal() -> Principal {
    Principal::unix(rustix::process::geteuid().as_raw())
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn cannot_bind(config: &Config, wanted: SocketAddr, error: &io::Error) -> CommandError {
    let source = &config.get("http.port").source;
    CommandError::daemon(format!("cannot listen at {wanted} ({source}): {error}"))
        .with_hint("name another address with --host and --port, or http.host and http.port")
}

fn pass(config: &Config) -> Result<Pass, CommandError> {
    if !config.needs_token() {
        return Ok(Pass::Open);
    }
    let is_known = !config.tokens().list()?.is_empty();
    Ok(if is_known { Pass::Known } else { Pass::Missing })
}

/// Where relative directories start: where a person started us, or at home.
fn directory(env: &Environment) -> Text {
    let here = std::env::current_dir().ok();
    let here = here.filter(|path| path != Path::new("/"));
    Text::from(here.unwrap_or_else(|| paths::home(env)))
}
