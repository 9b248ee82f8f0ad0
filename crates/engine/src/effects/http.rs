//! One HTTP/1.1 request, of whose answer only the status matters.
//!
//! A client library refuses what it cannot use (a huge header, a banner, an alert) and keeps the
//! bytes to itself; here it is these bytes that tell what kind of server it is.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};

/// How much of an answer is looked at for its status; interim answers (1xx) count.
const PROBE_HEAD_BYTES: usize = 64 * 1024;
/// How much of an answer is read after its status, so that servers see it taken and do not log
/// a broken pipe.
const PROBE_BODY_BYTES: usize = 256 * 1024;
/// How long that takes at most: a stream of events never ends.
const PROBE_BODY_MS: u64 = 250;
/// Read at once.
const READ_BYTES: usize = 8 * 1024;
/// The first byte of a TLS record that holds an alert (RFC 8446 §5.1).
const TLS_ALERT: u8 = 0x15;

/// What to ask.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// The `Host` header.
    pub(super) host: String,
    /// From `/` on.
    pub(super) path: String,
}

/// How a server took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchange {
    /// A final status, and the milliseconds to the first byte.
    Status { status: u16, ms: u64 },
    /// The connection was closed or reset without a byte.
    Closed,
    /// It wants TLS.
    Alert,
    /// It said something else.
    NoHttp,
}

impl Request {
    /// Whether it stays one request on the wire.
    pub(super) fn is_sound(&self) -> bool {
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

/// Sends the request and waits for the status as long as it takes.
pub(super) async fn exchange<S>(mut stream: S, request: &Request) -> Exchange
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let began = Instant::now();
    // One that talks first and hangs up may refuse the request and still have said something.
    let _sent = stream.write_all(&request.bytes()).await;
    let _flushed = stream.flush().await;
    let answer = status(&mut stream, began).await;
    if let Exchange::Status { .. } = answer {
        let whole = Duration::from_millis(PROBE_BODY_MS);
        let _taken = timeout(whole, drain(&mut stream)).await;
    }
    answer
}

async fn status<S: AsyncRead + Unpin>(stream: &mut S, began: Instant) -> Exchange {
    let mut head = Vec::with_capacity(READ_BYTES);
    let mut first_byte = None;
    loop {
        head.reserve(READ_BYTES);
        let ended = !matches!(stream.read_buf(&mut head).await, Ok(1..));
        if !head.is_empty() {
            first_byte.get_or_insert_with(|| began.elapsed());
        }
        let full = ended || head.len() >= PROBE_HEAD_BYTES;
        match judge(&mut head) {
            Judged::Status(status) => {
                let ms = first_byte.map_or(0, |after| after.as_millis());
                let ms = u64::try_from(ms).unwrap_or(u64::MAX);
                return Exchange::Status { status, ms };
            }
            Judged::NoHttp => return Exchange::NoHttp,
            Judged::Alert => return Exchange::Alert,
            Judged::More if full && first_byte.is_none() => return Exchange::Closed,
            Judged::More if full => return Exchange::NoHttp,
            Judged::More => {}
        }
    }
}

async fn drain<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut rest = stream.take(PROBE_BODY_BYTES as u64);
    let _counted = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Status(u16),
    NoHttp,
    Alert,
    More,
}

/// Judges what came so far; whole interim answers are cut off.
fn judge(head: &mut Vec<u8>) -> Judged {
    loop {
        let judged = status_line(head);
        let Judged::Status(100 | 102..=199) = judged else {
            return judged;
        };
        let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Judged::More;
        };
        head.drain(..end + 4);
    }
}

/// `HTTP/1.x NNN`, then a space or the end of the line (RFC 9112 §4).
fn status_line(head: &[u8]) -> Judged {
    const VERSION: &[u8] = b"HTTP/1.";
    let known = head.len().min(VERSION.len());
    if head[..known] != VERSION[..known] {
        return match head {
            [TLS_ALERT] => Judged::More,
            [TLS_ALERT, 3, ..] => Judged::Alert,
            [..] => Judged::NoHttp,
        };
    }
    let Some([minor, b' ', code @ .., after]) = head.get(VERSION.len()..VERSION.len() + 6) else {
        return match head.get(VERSION.len() + 1) {
            None | Some(b' ') => Judged::More,
            Some(_) => Judged::NoHttp,
        };
    };
    let code = std::str::from_utf8(code).ok();
    let code = code.and_then(|digits| digits.parse().ok());
    match code {
        Some(status @ 100..=599)
            if minor.is_ascii_digit() && matches!(after, b' ' | b'\r' | b'\n') =>
        {
            Judged::Status(status)
        }
        Some(_) | None => Judged::NoHttp,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_bytes_tell_what_it_is() {
        for (head, judged) in [
            (&b""[..], Judged::More),
            (b"HT", Judged::More),
            (b"HTTP/1.1", Judged::More),
            (b"HTTP/1.1 20", Judged::More),
            (b"HTTP/1.1 200", Judged::More),
            (b"HTTP/1.1 200 OK", Judged::Status(200)),
            (b"HTTP/1.1 200\r", Judged::Status(200)),
            (b"HTTP/1.0 503\n", Judged::Status(503)),
            (b"HTTP/1.1 101 Switching Protocols", Judged::Status(101)),
            (b"HTTP/1.1 100 Continue\r\n\r\n", Judged::More),
            (
                b"HTTP/1.1 103 E\r\nLink: </a>\r\n\r\nHTTP/1.1 404 ",
                Judged::Status(404),
            ),
            (b"HTTP/1.1 999 No", Judged::NoHttp),
            (b"HTTP/1.1 20x ", Judged::NoHttp),
            (b"HTTP/1.1 2000", Judged::NoHttp),
            (b"HTTP/2 200 OK", Judged::NoHttp),
            (b"<html>", Judged::NoHttp),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", Judged::NoHttp),
            (b"-ERR wrong number of arguments", Judged::NoHttp),
            (b"\0\0\x12\x04\0\0\0\0\0", Judged::NoHttp),
            (b"\x15\x03\x01\0\x02\x02\x46", Judged::Alert),
            (b"\x15", Judged::More),
            (b"\x15\x01", Judged::NoHttp),
        ] {
            assert_eq!(judge(&mut head.to_vec()), judged, "{head:?}");
        }
    }

    #[test]
    fn a_request_stays_one_request() {
        let request = |path: &str, host: &str| Request {
            host: host.to_owned(),
            path: path.to_owned(),
        };
        assert!(request("/a?b=c", "localhost:80").is_sound());
        assert!(request("/ä", "[::1]:80").is_sound());
        assert!(!request("", "localhost").is_sound());
        assert!(!request("a", "localhost").is_sound());
        assert!(!request("/a b", "localhost").is_sound());
        assert!(!request("/\r\nX: y", "localhost").is_sound());
        assert!(!request("/", "local\nhost").is_sound());
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
            let mut judged = Judged::More;
            for byte in &whole {
                head.push(*byte);
                judged = judge(&mut head);
                if judged != Judged::More {
                    break;
                }
            }
            prop_assert_eq!(judge(&mut whole), judged);
        }
    }
}
