//! `ostler serve`: its flags, and what it says when it serves. The daemon itself is in
//! `crate::daemon`.

use clap::Args;
use serde_json::{Value, json};

use crate::config::{Config, FlagValue};
use crate::daemon::{Pass, Web};
use crate::error::CommandError;
use crate::output::Out;

/// What `serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to serve HTTP at
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Port to serve HTTP at; any free one where nothing names one, or it is 0
    #[arg(long, value_name = "PORT", allow_hyphen_values = true)]
    port: Option<String>,
    /// What every path over HTTP begins with
    #[arg(long, value_name = "PATH")]
    url_prefix: Option<String>,
    /// Serve the HTTP+SSE transport of MCP 2024-11-05 too
    #[arg(long)]
    legacy_sse: bool,
    /// Let everybody on this machine in who reaches the address
    #[arg(long)]
    no_token: bool,
    /// Log more
    #[arg(long)]
    debug: bool,
}

impl ServeArgs {
    /// What the flags say about keys of the configuration.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let on = |is_on: bool, value: &str| is_on.then(|| value.to_owned());
        let values = [
            ("http.host", "--host", self.host.clone()),
            ("http.port", "--port", self.port.clone()),
            ("http.url_prefix", "--url-prefix", self.url_prefix.clone()),
            (
                "http.legacy_sse",
                "--legacy-sse",
                on(self.legacy_sse, "true"),
            ),
            ("http.tokens", "--no-token", on(self.no_token, "off")),
            ("log", "--debug", on(self.debug, "debug")),
        ];
        let given = |(key, flag, value): (_, _, Option<String>)| {
            value.map(|value| FlagValue { key, flag, value })
        };
        values.into_iter().filter_map(given).collect()
    }
}

/// Prints where we serve, what to paste into a client, and where state lies. The only place
/// where a token is shown, and once.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn greet(config: &Config, web: Option<&Web>) -> Result<(), CommandError> {
    let places = config.places();
    let mut out = Out::new();
    out.line(format!("ostler {} serves", env!("CARGO_PKG_VERSION")))?;
    if let Some(web) = web {
        let is_any_port = config.http_address().is_ok_and(|it| it.port() == 0);
        greet_http(&mut out, web, is_any_port)?;
    }
    out.line(format!("  socket   {}", places.daemon_socket().display()))?;
    out.line(format!("  fronts   {}", places.front_socket().display()))?;
    out.line(format!("  state    {}", places.state.display()))?;
    out.line(format!("  pid      {}", std::process::id()))?;
    paste(
        &mut out,
        "Paste this into the configuration of an MCP client:",
        stdio_client(config),
    )?;
    if let Some(web) = web {
        paste(&mut out, "or, over HTTP:", http_client(web))?;
    }
    out.line("")?;
    out.line("Ctrl-C ends the daemon; running commands go on.")?;
    out.flush()
}

fn greet_http(out: &mut Out, web: &Web, is_any_port: bool) -> Result<(), CommandError> {
    let url = web.url();
    out.line(format!("  http     {url}/mcp (MCP), {url}/api (REST)"))?;
    if is_any_port {
        out.line("           on another port with each start; --port N keeps one")?;
    }
    if web.has_legacy_sse() {
        out.line(format!("  sse      {url}/sse (MCP 2024-11-05)"))?;
    }
    if !web.address().ip().is_loopback() {
        out.line(format!(
            "  bound    {}, reachable from other machines",
            web.address()
        ))?;
    }
    match web.pass() {
        Pass::Fresh(secret) => {
            let secret = secret.reveal();
            out.line(format!("  token    {secret}"))?;
            out.line("           shown this once; `ostler token` makes and revokes others")
        }
        Pass::Known | Pass::Missing => {
            out.line("  token    made earlier; `ostler token new NAME` makes another")
        }
        Pass::Open => {
            out.line("  token    NONE NEEDED: every user of this machine may run commands as you")
        }
    }
}

fn paste(out: &mut Out, heading: &str, client: Value) -> Result<(), CommandError> {
    let servers = json!({"mcpServers": {"ostler": client}});
    out.line("")?;
    out.line(heading)?;
    out.line("")?;
    out.document(&format!("{servers:#}"))
}

fn stdio_client(config: &Config) -> Value {
    json!({"command": crate::daemon::executable(), "args": client_arguments(config)})
}

fn http_client(web: &Web) -> Value {
    let mut client = json!({"type": "http", "url": format!("{}/mcp", web.url())});
    let token = match web.pass() {
        Pass::Fresh(secret) => secret.reveal(),
        Pass::Known | Pass::Missing => "TOKEN",
        Pass::Open => return client,
    };
    client["headers"] = json!({"Authorization": format!("Bearer {token}")});
    client
}

/// What a client must add to find this daemon where its directories are not the usual ones.
fn client_arguments(config: &Config) -> Vec<String> {
    let named = [
        ("state_dir", "--state-dir"),
        ("runtime_dir", "--runtime-dir"),
    ];
    let given = named.iter().flat_map(|(key, flag)| {
        let setting = config.get(key);
        let default = setting.source == crate::config::Source::Default;
        (!default).then(|| [(*flag).to_owned(), setting.value.to_string()])
    });
    given.flatten().chain(["mcp".to_owned()]).collect()
}
