//! `ostler serve`: what it says when it serves. The daemon itself is in `crate::daemon`.

use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::error::CommandError;
use crate::output::Out;

/// What `serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {}

/// Prints where we serve, what to paste into a client, and where state lies.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn greet(config: &Config) -> Result<(), CommandError> {
    let places = config.places();
    let program = crate::daemon::executable();
    let client =
        json!({"mcpServers": {"ostler": {"command": program, "args": client_arguments(config)}}});
    let mut out = Out::new();
    out.line(format!("ostler {} serves", env!("CARGO_PKG_VERSION")))?;
    out.line(format!("  socket   {}", places.daemon_socket().display()))?;
    out.line(format!("  fronts   {}", places.front_socket().display()))?;
    out.line(format!("  state    {}", places.state.display()))?;
    out.line(format!("  pid      {}", std::process::id()))?;
    out.line("\nPaste this into the configuration of an MCP client:\n")?;
    out.line(format!("{client:#}"))?;
    out.line("\nCtrl-C ends the daemon; running commands go on.")?;
    out.flush()
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
