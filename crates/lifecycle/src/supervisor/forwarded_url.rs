//! The URL of a service in a network of its own: there, the address it listens on is not the host's.

use ostler_model::PortForward;

/// The URL of a port of the service as the host reaches it; none where the port is not forwarded.
pub(super) fn to_host(url: &str, port: u16, forwards: &[PortForward]) -> Option<String> {
    let forward = forwards.iter().find(|it| it.inside == port)?;
    let url = UrlParts::of(url)?;
    Some(format!(
        "{}://localhost:{}{}",
        url.scheme, forward.host, url.rest
    ))
}

/// The URL within the service's network, of one that [`to_host`] made.
pub(super) fn to_service(url: &str, forwards: &[PortForward]) -> Option<String> {
    let url = UrlParts::of(url)?;
    let port: u16 = url.authority.rsplit_once(':')?.1.parse().ok()?;
    let forward = forwards.iter().find(|it| it.host == port)?;
    Some(format!(
        "{}://localhost:{}{}",
        url.scheme, forward.inside, url.rest
    ))
}

struct UrlParts<'a> {
    scheme: &'a str,
    authority: &'a str,
    /// The path and what follows it.
    rest: &'a str,
}

impl<'a> UrlParts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, after) = url.split_once("://")?;
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        Some(Self {
            scheme,
            authority,
            rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_the_forwarded_port_or_nowhere() {
        let forwards = [PortForward {
            host: 19_100,
            inside: 8123,
        }];
        let inside = "https://0.0.0.0:8123/lab?token=a:b/c";
        let outside = "https://localhost:19100/lab?token=a:b/c";
        let found = to_host(inside, 8123, &forwards);
        assert_eq!(found.as_deref(), Some(outside));
        let back = to_service(outside, &forwards);
        assert_eq!(
            back.as_deref(),
            Some("https://localhost:8123/lab?token=a:b/c")
        );
        assert_eq!(to_host("http://localhost/", 80, &forwards), None);
        assert_eq!(to_service("http://localhost:1/", &forwards), None);
        assert_eq!(to_service("http://localhost/", &forwards), None);
    }
}
