//! A server that the suites connect to: it prints its address, and exits when its standard input
//! closes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::test_env::ProcessHandle;

/// The timeout for a server to print its address, in milliseconds.
const START_TIMEOUT_MS: u64 = 30_000;
/// The timeout for it to exit, in milliseconds.
const END_TIMEOUT_MS: u64 = 15_000;

#[derive(Debug)]
pub(super) struct TestServer {
    child: Child,
    /// The URL of its MCP endpoint.
    pub(super) url: String,
}

impl TestServer {
    /// Starts it and waits for its address.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let shown = shell::display(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {shown}"))?;
        let out = child.stdout.take().context("it has no output")?;
        let (sender, address) = mpsc::sync_channel(1);
        // Reads on after the address, so that the server never blocks on its output.
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if let Some(url) = address_in(&line) {
                    let _only_the_first = sender.try_send(url);
                }
            }
        });
        match address.recv_timeout(Duration::from_millis(START_TIMEOUT_MS)) {
            Ok(url) => Ok(Self { child, url }),
            Err(_) => {
                child.kill()?;
                bail!("{shown} printed no address ({})", child.wait()?)
            }
        }
    }

    /// Ends it in order: by an earlier request, or by the end of its input.
    pub(super) fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let process = ProcessHandle::open(self.child.id())?;
        if !process.wait_gone(Instant::now() + Duration::from_millis(END_TIMEOUT_MS)) {
            self.child.kill()?;
            bail!("the server did not end when it was told");
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

/// The URL of the MCP endpoint in a line with an address.
fn address_in(line: &str) -> Option<String> {
    let start = line.find("http://")?;
    let rest = &line[start..];
    let end = rest.find(|c: char| c.is_whitespace() || "\"',)".contains(c));
    let address = rest[..end.unwrap_or(rest.len())].trim_end_matches('/');
    let address = address.strip_suffix("/mcp").unwrap_or(address);
    Some(format!("{address}/mcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_wherever_it_stands() {
        let url = Some("http://127.0.0.1:80/mcp".to_owned());
        for line in [
            "http://127.0.0.1:80/mcp",
            "ostler is at http://127.0.0.1:80/ now",
            r#"  "url": "http://127.0.0.1:80/mcp","#,
        ] {
            assert_eq!(address_in(line), url, "{line}");
        }
        assert_eq!(address_in("nothing"), None);
    }
}
