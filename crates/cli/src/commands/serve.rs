//! `ostler serve`: its flags. The daemon itself is in `crate::daemon`.

use clap::Args;

use crate::config::FlagValue;

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
    /// The configuration values that the flags set.
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
        let flag_value = |(key, flag, value): (_, _, Option<String>)| {
            value.map(|value| FlagValue { key, flag, value })
        };
        values.into_iter().filter_map(flag_value).collect()
    }
}
