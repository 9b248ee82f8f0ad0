//! The address that a requested probe connects to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::input::ProbeRequest;
use super::printed_address;

/// A target of an HTTP probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeTarget {
    /// This path of the main port.
    Path(String),
    /// An address of its own.
    Url {
        /// The host, without brackets.
        host: String,
        port: u16,
        /// Whether to use TLS.
        https: bool,
        /// The path, beginning with `/`.
        path: String,
    },
}

impl ProbeTarget {
    /// Parses the target in a request or a definition.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.contains("://")
            && let Some(url) = printed_address::parse(text)
        {
            let path = text.splitn(4, '/').nth(3).unwrap_or_default();
            let path = path.split('#').next().unwrap_or_default();
            return Self::Url {
                host: url.host.unwrap_or_default(),
                port: url.port,
                https: url.https == Some(true),
                path: format!("/{path}"),
            };
        }
        Self::Path(format!("/{}", text.trim_start_matches('/')))
    }

    /// The port in the target.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Self::Path(_) => None,
            Self::Url { port, .. } => Some(*port),
        }
    }
}

/// The address of a port on which no process of the tree listens: always on this machine.
pub(super) fn loopback_address(host: &str, port: u16) -> SocketAddr {
    let ip = host.parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
    SocketAddr::new(ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port)
}

/// How an HTTP request is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct HttpProbeOptions {
    /// Whether TLS is tried first.
    pub(super) tls: bool,
    /// Whether the socket may speak a protocol other than HTTP.
    pub(super) unsure: bool,
}

/// A request for a path at a socket.
pub(super) fn http_request(
    address: SocketAddr,
    path: &str,
    HttpProbeOptions { tls, unsure }: HttpProbeOptions,
) -> ProbeRequest {
    let ip = address.ip();
    let host = if ip.is_loopback() || ip.is_unspecified() {
        "localhost".to_owned()
    } else {
        ip.to_string()
    };
    ProbeRequest::Http {
        address,
        host,
        path: path.to_owned(),
        tls,
        unsure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        for (text, target) in [
            ("/health", ProbeTarget::Path("/health".into())),
            ("health?x=1", ProbeTarget::Path("/health?x=1".into())),
            ("", ProbeTarget::Path("/".into())),
            (
                "http://localhost:3000/health?a=b#c",
                ProbeTarget::Url {
                    host: "localhost".into(),
                    port: 3000,
                    https: false,
                    path: "/health?a=b".into(),
                },
            ),
            (
                "https://[::1]",
                ProbeTarget::Url {
                    host: "::1".into(),
                    port: 443,
                    https: true,
                    path: "/".into(),
                },
            ),
        ] {
            assert_eq!(ProbeTarget::parse(text), target, "{text}");
        }
        assert_eq!(loopback_address("0.0.0.0", 1), ([127, 0, 0, 1], 1).into());
        assert_eq!(loopback_address("::1", 1).to_string(), "[::1]:1");
        for host in ["name.localhost", "169.254.169.254", "example.org", ""] {
            assert_eq!(loopback_address(host, 1), ([127, 0, 0, 1], 1).into());
        }
    }
}
