//! A minimal HTTP/1.1 client over a unix socket. No client library, to be independent of the code
//! under test.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

/// The timeout of a response in milliseconds.
const ANSWER_MS: u64 = 60_000;

#[derive(Debug)]
pub(super) struct HttpReply {
    pub(super) status: u16,
    /// The body, without its transfer coding.
    pub(super) body: String,
}

/// Sends one request on a connection of its own.
pub(super) fn request(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<HttpReply> {
    let mut stream =
        UnixStream::connect(socket).with_context(|| format!("{}", socket.display()))?;
    stream.set_read_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw)?;
    parse(&raw)
}

fn parse(raw: &[u8]) -> Result<HttpReply> {
    let text = String::from_utf8_lossy(raw);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .context("an answer without a head")?;
    let status = head
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok());
    let chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    let body = if chunked {
        join_chunks(body)
    } else {
        body.to_owned()
    };
    Ok(HttpReply {
        status: status.context("an answer without a status")?,
        body,
    })
}

fn join_chunks(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = tail.get(..size).filter(|_| size > 0) else {
            break;
        };
        body.push_str(chunk);
        rest = tail.get(size + 2..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_chunked_answers_are_read() {
        let plain =
            parse(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}").expect("parses");
        assert_eq!((plain.status, plain.body.as_str()), (404, "{}"));
        let raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(parse(raw).expect("parses").body, "abcde");
    }
}
