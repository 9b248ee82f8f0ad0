//! The banner of `ostler serve`: where the daemon can be reached, and configurations to paste.

use ostler_http::{LINK_MINUTES, WebAccess};
use serde_json::{Value, json};

use super::http_listener::{HttpListener, TokenStatus, own_principal};
use crate::config::{Config, SettingSource};
use crate::error::CommandError;
use crate::output::StdoutWriter;

/// Prints the address, client configurations to paste, and the state directory. The only place
/// where a token is shown, and only once.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn print_banner(
    config: &Config,
    web: Option<(&HttpListener, &WebAccess)>,
) -> Result<(), CommandError> {
    let dirs = config.dirs();
    let mut out = StdoutWriter::new();
    out.write_line(format!("ostler {} serves", env!("CARGO_PKG_VERSION")))?;
    if let Some((listener, access)) = web {
        let is_any_port = config.http_address().is_ok_and(|it| it.port() == 0);
        print_http(&mut out, listener, is_any_port)?;
        print_link(&mut out, access)?;
    }
    out.write_line(format!("  socket   {}", dirs.daemon_socket().display()))?;
    out.write_line(format!("  fronts   {}", dirs.stdio_socket().display()))?;
    out.write_line(format!("  state    {}", dirs.state.display()))?;
    out.write_line(format!("  pid      {}", std::process::id()))?;
    print_client_config(
        &mut out,
        "Paste this into the configuration of an MCP client:",
        stdio_client(config),
    )?;
    if let Some((listener, _)) = web {
        print_client_config(&mut out, "or, over HTTP:", http_client(listener))?;
    }
    out.write_line("")?;
    out.write_line("Ctrl-C ends the daemon; running commands go on.")?;
    out.flush()
}

fn print_http(
    out: &mut StdoutWriter,
    web: &HttpListener,
    is_any_port: bool,
) -> Result<(), CommandError> {
    let url = web.url();
    out.write_line(format!("  http     {url}/mcp (MCP), {url}/api (REST)"))?;
    if is_any_port {
        out.write_line("           on another port with each start; --port N keeps one")?;
    }
    if web.has_legacy_sse() {
        out.write_line(format!("  sse      {url}/sse (MCP 2024-11-05)"))?;
    }
    if !web.address().ip().is_loopback() {
        out.write_line(format!(
            "  bound    {}, reachable from other machines",
            web.address()
        ))?;
    }
    match web.token_status() {
        TokenStatus::Created(secret) => {
            let secret = secret.reveal();
            out.write_line(format!("  token    {secret}"))?;
            out.write_line("           shown this once; `ostler token` makes and revokes others")
        }
        TokenStatus::Exists | TokenStatus::Missing => {
            out.write_line("  token    made earlier; `ostler token new NAME` makes another")
        }
        TokenStatus::NotRequired => out.write_line(
            "  token    NONE NEEDED: every user of this machine may run commands as you",
        ),
    }
}

/// The address of the page, which signs in whoever opens it first.
fn print_link(out: &mut StdoutWriter, access: &WebAccess) -> Result<(), CommandError> {
    let link = access.open_link(own_principal());
    let link = link.map_err(|error| CommandError::daemon(error.to_string()))?;
    let url = link.url;
    let once = match link.expires {
        Some(_) => format!("  (valid once, {LINK_MINUTES} min)"),
        None => String::new(),
    };
    out.write_line(format!("  open     {url}{once}"))
}

fn print_client_config(
    out: &mut StdoutWriter,
    heading: &str,
    client: Value,
) -> Result<(), CommandError> {
    let servers = json!({"mcpServers": {"ostler": client}});
    out.write_line("")?;
    out.write_line(heading)?;
    out.write_line("")?;
    out.write_json(&format!("{servers:#}"))
}

fn stdio_client(config: &Config) -> Value {
    json!({"command": super::run::executable(), "args": client_arguments(config)})
}

fn http_client(web: &HttpListener) -> Value {
    let mut client = json!({"type": "http", "url": format!("{}/mcp", web.url())});
    let token = match web.token_status() {
        TokenStatus::Created(secret) => secret.reveal(),
        TokenStatus::Exists | TokenStatus::Missing => "TOKEN",
        TokenStatus::NotRequired => return client,
    };
    client["headers"] = json!({"Authorization": format!("Bearer {token}")});
    client
}

/// The arguments that a client needs to find a daemon whose directories are not the default.
fn client_arguments(config: &Config) -> Vec<String> {
    let flags = [
        ("state_dir", "--state-dir"),
        ("runtime_dir", "--runtime-dir"),
    ];
    let arguments = flags.iter().flat_map(|(key, flag)| {
        let setting = config.get(key);
        let default = setting.source == SettingSource::Default;
        (!default).then(|| [(*flag).to_owned(), setting.value.to_string()])
    });
    arguments.flatten().chain(["mcp".to_owned()]).collect()
}
