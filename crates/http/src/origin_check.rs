//! Checks `Host` and `Origin` before anything else of a request.
//!
//! A web page can make a browser send requests to a loopback address, under the page's own name
//! (DNS rebinding) or under the server's address. `Host` reveals the first, `Origin` the second; a
//! page can forge neither.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use ostler_model::ErrorCode;

use crate::listen::LocalAddr;
use ostler_interface::http::HttpProblem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The hosts and origins that are accepted besides this machine's loopback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OriginCheck {
    /// Host names and addresses.
    pub(crate) hosts: Vec<String>,
    /// Origins: scheme, host and port.
    pub(crate) origins: Vec<String>,
}

impl OriginCheck {
    /// Refuses requests from pages of other origins.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), HttpProblem> {
        for (header, name) in [(&HOST, "Host"), (&ORIGIN, "Origin")] {
            if parts.headers.get_all(header).iter().nth(1).is_some() {
                return Err(given_twice(name));
            }
        }
        let local_addr = parts.extensions.get::<LocalAddr>();
        let host = requested_host(&parts.uri, &parts.headers)
            .ok_or_else(|| refused_problem("Host", "missing"))?;
        if !self.is_host_allowed(&host, local_addr) {
            return Err(wrong_host(&host));
        }
        match parts.headers.get(ORIGIN) {
            Some(origin) if !self.is_origin_allowed(origin, &host) => Err(wrong_origin(origin)),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses requests of every page but the server's own, those of other ports of this machine
    /// too: browsers send cookies to all ports of a host. A client that is no browser says nothing
    /// of a page.
    pub(crate) fn check_own_page(&self, parts: &Parts) -> Result<(), HttpProblem> {
        for site in parts.headers.get_all(SEC_FETCH_SITE) {
            if site != "same-origin" {
                return Err(other_page("Sec-Fetch-Site", site));
            }
        }
        let host = requested_host(&parts.uri, &parts.headers);
        for origin in parts.headers.get_all(ORIGIN) {
            if !self.is_own_page(origin, host.as_ref()) {
                return Err(other_page("Origin", origin));
            }
        }
        Ok(())
    }

    /// Whether this is the origin of a page that this server, or a proxy in front of it, served.
    fn is_own_page(&self, origin: &HeaderValue, host: Option<&Authority>) -> bool {
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        self.is_origin_listed(origin)
            || origin_authority(origin).is_some_and(|page| host.is_some_and(|host| page == *host))
    }

    fn is_origin_listed(&self, origin: &str) -> bool {
        let mut origins = self.origins.iter();
        origins.any(|listed| listed.eq_ignore_ascii_case(origin))
    }

    fn is_host_allowed(&self, host: &Authority, local_addr: Option<&LocalAddr>) -> bool {
        let name = host.host();
        let is_reached = |LocalAddr(ip): &LocalAddr| parse_address(name) == Some(*ip);
        let is_listed = |listed: &String| {
            listed.eq_ignore_ascii_case(name) || listed.eq_ignore_ascii_case(host.as_str())
        };
        is_loopback(name) || local_addr.is_some_and(is_reached) || self.hosts.iter().any(is_listed)
    }

    fn is_origin_allowed(&self, origin: &HeaderValue, host: &Authority) -> bool {
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        if self.is_origin_listed(origin) {
            return true;
        }
        let Some(authority) = origin_authority(origin) else {
            return false;
        };
        // A page served by this server.
        let is_own_page = authority.as_str().eq_ignore_ascii_case(host.as_str());
        is_own_page || is_loopback(authority.host())
    }
}

/// Host and port of a web origin; none for `null` and everything that is not an origin.
fn origin_authority(origin: &str) -> Option<Authority> {
    let (scheme, authority) = origin.split_once("://")?;
    let is_web = ["http", "https"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web));
    is_web.then(|| plain_authority(authority)).flatten()
}

/// The host the request names; none when it names none or several.
pub(crate) fn requested_host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    if let Some(authority) = uri.authority() {
        return plain_authority(authority.as_str());
    }
    let mut values = headers.get_all(HOST).iter();
    let first = values.next()?;
    values.next().is_none().then_some(())?;
    plain_authority(first.to_str().ok()?)
}

fn plain_authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let plain = !text.contains('@') && !authority.host().is_empty();
    plain.then_some(authority)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || parse_address(name).is_some_and(|ip| ip.to_canonical().is_loopback())
}

/// The IP address in a host, if it is one; IPv6 comes in brackets.
fn parse_address(name: &str) -> Option<IpAddr> {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    bare.unwrap_or(name).parse().ok()
}

fn wrong_host(host: &Authority) -> HttpProblem {
    let hint = "use a loopback name or address, or list the host in http.hosts";
    refused_problem("Host", host.as_str()).with_hint(hint)
}

fn wrong_origin(origin: &HeaderValue) -> HttpProblem {
    let origin = origin.to_str().unwrap_or("not text");
    let hint = "pages of other sites must not use this; list the origin in http.origins \
                where one may";
    refused_problem("Origin", origin).with_hint(hint)
}

fn other_page(header: &str, given: &HeaderValue) -> HttpProblem {
    let given = given.to_str().unwrap_or("not text");
    let hint = "a page's sign-in counts for requests of that page only; other clients send \
                'Authorization: Bearer TOKEN'";
    refused_problem(header, given).with_hint(hint)
}

fn given_twice(header: &str) -> HttpProblem {
    let message = format!("the request's {header} is given more than once");
    HttpProblem::new(ErrorCode::Security, message, None)
}

fn refused_problem(header: &str, given: &str) -> HttpProblem {
    let message = format!("the request's {header} is not allowed: {given}");
    HttpProblem::new(ErrorCode::Security, message, None)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::http::Request;

    use super::*;

    fn passes(guard: &OriginCheck, host: &str, origin: Option<&str>) -> bool {
        let mut request = Request::builder().uri("/mcp").header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let reached = LocalAddr(Ipv4Addr::new(10, 0, 0, 5).into());
        let request = request.extension(reached).body(()).unwrap();
        guard.check(&request.into_parts().0).is_ok()
    }

    #[test]
    fn hosts_of_this_machine_pass_and_no_others() {
        let guard = OriginCheck {
            hosts: vec!["box.example".to_owned(), "[fe80::1]:80".to_owned()],
            ..OriginCheck::default()
        };
        let good = [
            "localhost",
            "LocalHost:1",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]",
            "[::1]:80",
            "[::ffff:127.0.0.1]",
            "10.0.0.5:80",
            "box.example",
            "BOX.example:9",
            "[fe80::1]:80",
        ];
        for host in good {
            assert!(passes(&guard, host, None), "{host}");
        }
        let bad = [
            "evil.example",
            "localhost.evil.example",
            "evil.localhost.example",
            "10.0.0.6",
            "0.0.0.0",
            "x@localhost",
            "[fe80::1]:81",
            "192.0.2.1",
            "",
            "localhost:1:2",
            "2130706433",
        ];
        for host in bad {
            assert!(!passes(&guard, host, None), "{host}");
        }
    }

    #[test]
    fn origins_of_this_machine_pass_and_no_others() {
        let guard = OriginCheck {
            origins: vec!["https://ui.example".to_owned()],
            ..OriginCheck::default()
        };
        let good = [
            "http://localhost",
            "https://localhost:3000",
            "http://127.0.0.1:1",
            "http://[::1]:9",
            "https://ui.example",
            "http://10.0.0.5:80",
        ];
        for origin in good {
            assert!(passes(&guard, "10.0.0.5:80", Some(origin)), "{origin}");
        }
        let bad = [
            "null",
            "",
            "http://evil.example",
            "https://localhost.evil.example",
            "http://ui.example",
            "https://ui.example:444",
            "file://localhost",
            "http://localhost/path",
            "http://10.0.0.5:81",
            "http://x@localhost",
            "ftp://localhost",
            "http://",
        ];
        for origin in bad {
            assert!(!passes(&guard, "10.0.0.5:80", Some(origin)), "{origin}");
        }
    }

    fn is_own_page(headers: &[(&str, &str)]) -> bool {
        let check = OriginCheck {
            origins: vec!["https://ui.example".to_owned()],
            ..OriginCheck::default()
        };
        let mut request = Request::builder().uri("/").header(HOST, "localhost:7");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check.check_own_page(&parts).is_ok()
    }

    #[test]
    fn a_page_of_another_port_is_not_the_own_page() {
        let own = ("origin", "http://localhost:7");
        let same = ("sec-fetch-site", "same-origin");
        for good in [&[][..], &[own], &[same], &[own, same]] {
            assert!(is_own_page(good), "{good:?}");
        }
        assert!(is_own_page(&[("origin", "HTTP://LOCALHOST:7")]));
        assert!(is_own_page(&[("origin", "https://ui.example"), same]));
        for origin in [
            "http://localhost:8",
            "http://localhost",
            "http://127.0.0.1:7",
            "https://ui.example:444",
            "null",
            "",
        ] {
            assert!(!is_own_page(&[("origin", origin)]), "{origin}");
            assert!(!is_own_page(&[own, ("origin", origin)]), "{origin}");
        }
        for site in ["same-site", "cross-site", "none", ""] {
            let site = ("sec-fetch-site", site);
            assert!(!is_own_page(&[site]), "{site:?}");
            assert!(!is_own_page(&[own, same, site]), "{site:?}");
        }
    }

    #[test]
    fn two_hosts_or_origins_are_none() {
        let twice = |name| {
            Request::builder()
                .uri("/mcp")
                .header(HOST, "localhost")
                .header(&name, "localhost")
                .header(&name, "http://localhost")
                .body(())
                .unwrap()
        };
        for name in [HOST, ORIGIN] {
            let (parts, ()) = twice(name).into_parts();
            let refused = OriginCheck::default().check(&parts).unwrap_err();
            let message = refused.0.message;
            assert!(message.ends_with("is given more than once"), "{message}");
        }
        let (parts, ()) = Request::builder()
            .uri("/mcp")
            .body(())
            .unwrap()
            .into_parts();
        assert!(OriginCheck::default().check(&parts).is_err());
    }
}
