//! An HTTP/1.1 probe, which evaluates only the status of the response.
//!
//! A client library rejects responses that it cannot use (a huge header, a banner, a TLS alert) and
//! hides their bytes; here these bytes identify the kind of server.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};

/// The bytes of a response that are searched for its status; interim responses (1xx) count.
const PROBE_HEAD_BYTES: usize = 64 * 1024;
/// The bytes of a response that are read after its status, so that servers do not log a broken
/// pipe.
const PROBE_BODY_BYTES: usize = 256 * 1024;
/// The timeout of that: an event stream never ends.
const PROBE_BODY_MS: u64 = 250;
/// Read at once.
const READ_BYTES: usize = 8 * 1024;
/// The first byte of a TLS record that holds an alert (RFC 8446 §5.1).
const TLS_ALERT: u8 = 0x15;

/// The request to send.
#[derive(Debug, Clone)]
pub(super) struct HttpRequest {
    /// The `Host` header.
    pub(super) host: String,
    /// The path, beginning with `/`.
    pub(super) path: String,
}

/// The server's reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchange {
    /// A final status, and the milliseconds to the first byte.
    Status { status: u16, ms: u64 },
    /// The connection was closed or reset without a byte.
    Closed,
    /// The server requires TLS.
    TlsAlert,
    /// The reply is not HTTP.
    NoHttp,
}

impl HttpRequest {
    /// Whether it is exactly one request on the wire (no injected lines).
    pub(super) fn is_valid(&self) -> bool {
        let sound = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
        self.path.starts_with('/') && sound(&self.path) && sound(&self.host)
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { host, path } = self;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ostler\r\nAccept: */*\r\n\
             Connection: close\r\n\r\n"
        )
        .into_bytes()
    }
}

/// Sends the request and waits for the status without a timeout.
pub(super) async fn exchange<S>(mut stream: S, request: &HttpRequest) -> Exchange
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let started_at = Instant::now();
    // A server that sends a banner and closes may reject the request; its banner still counts.
    let _sent = stream.write_all(&request.bytes()).await;
    let _flushed = stream.flush().await;
    let answer = read_status(&mut stream, started_at).await;
    if let Exchange::Status { .. } = answer {
        let whole = Duration::from_millis(PROBE_BODY_MS);
        let _taken = timeout(whole, drain(&mut stream)).await;
    }
    answer
}

async fn read_status<S: AsyncRead + Unpin>(stream: &mut S, started_at: Instant) -> Exchange {
    let mut head = Vec::with_capacity(READ_BYTES);
    let mut first_byte = None;
    loop {
        head.reserve(READ_BYTES);
        let ended = !matches!(stream.read_buf(&mut head).await, Ok(1..));
        if !head.is_empty() {
            first_byte.get_or_insert_with(|| started_at.elapsed());
        }
        let full = ended || head.len() >= PROBE_HEAD_BYTES;
        match classify(&mut head) {
            ResponseKind::Status(status) => {
                let ms = first_byte.map_or(0, |after| after.as_millis());
                let ms = u64::try_from(ms).unwrap_or(u64::MAX);
                return Exchange::Status { status, ms };
            }
            ResponseKind::NoHttp => return Exchange::NoHttp,
            ResponseKind::TlsAlert => return Exchange::TlsAlert,
            ResponseKind::Incomplete if full && first_byte.is_none() => return Exchange::Closed,
            ResponseKind::Incomplete if full => return Exchange::NoHttp,
            ResponseKind::Incomplete => {}
        }
    }
}

async fn drain<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut rest = stream.take(PROBE_BODY_BYTES as u64);
    let _counted = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseKind {
    Status(u16),
    NoHttp,
    TlsAlert,
    Incomplete,
}

/// Parses the bytes received so far; complete interim responses are removed.
fn classify(head: &mut Vec<u8>) -> ResponseKind {
    loop {
        let kind = parse_status_line(head);
        let ResponseKind::Status(100 | 102..=199) = kind else {
            return kind;
        };
        let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else {
            return ResponseKind::Incomplete;
        };
        head.drain(..end + 4);
    }
}

/// `HTTP/1.x NNN`, then a space or the end of the line (RFC 9112 §4).
fn parse_status_line(head: &[u8]) -> ResponseKind {
    const VERSION: &[u8] = b"HTTP/1.";
    let known = head.len().min(VERSION.len());
    if head[..known] != VERSION[..known] {
        return match head {
            [TLS_ALERT] => ResponseKind::Incomplete,
            [TLS_ALERT, 3, ..] => ResponseKind::TlsAlert,
            [..] => ResponseKind::NoHttp,
        };
    }
    let Some([minor, b' ', code @ .., after]) = head.get(VERSION.len()..VERSION.len() + 6) else {
        return match head.get(VERSION.len() + 1) {
            None | Some(b' ') => ResponseKind::Incomplete,
            Some(_) => ResponseKind::NoHttp,
        };
    };
    let code = std::str::from_utf8(code).ok();
    let code = code.and_then(|digits| digits.parse().ok());
    match code {
        Some(status @ 100..=599)
            if minor.is_ascii_digit() && matches!(after, b' ' | b'\r' | b'\n') =>
        {
            ResponseKind::Status(status)
        }
        Some(_) | None => ResponseKind::NoHttp,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_bytes_tell_what_it_is() {
        for (head, judged) in [
            (&b""[..], ResponseKind::Incomplete),
            (b"HT", ResponseKind::Incomplete),
            (b"HTTP/1.1", ResponseKind::Incomplete),
            (b"HTTP/1.1 20", ResponseKind::Incomplete),
            (b"HTTP/1.1 200", ResponseKind::Incomplete),
            (b"HTTP/1.1 200 OK", ResponseKind::Status(200)),
            (b"HTTP/1.1 200\r", ResponseKind::Status(200)),
            (b"HTTP/1.0 503\n", ResponseKind::Status(503)),
            (
                b"HTTP/1.1 101 Switching Protocols",
                ResponseKind::Status(101),
            ),
            (b"HTTP/1.1 100 Continue\r\n\r\n", ResponseKind::Incomplete),
            (
                b"HTTP/1.1 103 E\r\nLink: </a>\r\n\r\nHTTP/1.1 404 ",
                ResponseKind::Status(404),
            ),
            (b"HTTP/1.1 999 No", ResponseKind::NoHttp),
            (b"HTTP/1.1 20x ", ResponseKind::NoHttp),
            (b"HTTP/1.1 2000", ResponseKind::NoHttp),
            (b"HTTP/2 200 OK", ResponseKind::NoHttp),
            (b"<html>", ResponseKind::NoHttp),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", ResponseKind::NoHttp),
            (b"-ERR wrong number of arguments", ResponseKind::NoHttp),
            (b"\0\0\x12\x04\0\0\0\0\0", ResponseKind::NoHttp),
            (b"\x15\x03\x01\0\x02\x02\x46", ResponseKind::TlsAlert),
            (b"\x15", ResponseKind::Incomplete),
            (b"\x15\x01", ResponseKind::NoHttp),
        ] {
            assert_eq!(classify(&mut head.to_vec()), judged, "{head:?}");
        }
    }

    #[test]
    fn a_request_stays_one_request() {
        let request = |path: &str, host: &str| HttpRequest {
            host: host.to_owned(),
            path: path.to_owned(),
        };
        assert!(request("/a?b=c", "localhost:80").is_valid());
        assert!(request("/ä", "[::1]:80").is_valid());
        assert!(!request("", "localhost").is_valid());
        assert!(!request("a", "localhost").is_valid());
        assert!(!request("/a b", "localhost").is_valid());
        assert!(!request("/\r\nX: y", "localhost").is_valid());
        assert!(!request("/", "local\nhost").is_valid());
    }

    proptest! {
        #[test]
        fn bytes_in_any_pieces_are_judged_alike(
            rest in prop::collection::vec(any::<u8>(), 0..64),
            http in any::<bool>(),
        ) {
            let mut whole = if http { b"HTTP/1.1 100 \r\n\r\nHTTP/1.".to_vec() } else { Vec::new() };
            whole.extend(rest);
            let mut head = Vec::new();
            let mut judged = ResponseKind::Incomplete;
            for byte in &whole {
                head.push(*byte);
                judged = classify(&mut head);
                if judged != ResponseKind::Incomplete {
                    break;
                }
            }
            prop_assert_eq!(classify(&mut whole), judged);
        }
    }
}
