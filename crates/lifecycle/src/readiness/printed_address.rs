//! Extracts addresses from lines of output.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::limits::PATH_BYTES;

/// An address in a line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrintedAddress {
    /// The host as printed, IPv6 without brackets; none if only a port was printed.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// Whether the scheme is `https`; none without a scheme.
    pub(super) https: Option<bool>,
    /// Path, query and fragment: empty, or beginning with `/`.
    pub(super) path: String,
    /// The weight of the evidence.
    pub(super) weight: AddressWeight,
}

/// The weight of a printed address as evidence, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AddressWeight {
    /// An expression of the rule matched it.
    Rule,
    /// It is a URL.
    Url,
    /// A port in a sentence.
    Phrase,
    /// The line is about a secondary component.
    Side,
}

impl PrintedAddress {
    /// Whether its host is certainly this machine.
    pub(super) fn is_local(&self) -> bool {
        self.host.as_deref().is_none_or(is_local)
    }
}

/// Whether a host name or address is certainly this machine.
pub(super) fn is_local(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    is_wildcard(&host)
        || matches!(host.as_str(), "localhost" | "::1")
        || host.ends_with(".localhost")
        || (host.starts_with("127.") && host.parse::<std::net::Ipv4Addr>().is_ok())
}

/// Whether a host is the wildcard address.
pub(super) fn is_wildcard(host: &str) -> bool {
    matches!(host, "0.0.0.0" | "::" | "*" | "")
}

/// Matches a URL, with its parts as groups.
static URL: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)\b(?<scheme>https?)://(?:(?:[^\s/@:]+:)?[^\s/@]+@)?",
        r"(?:\[(?<six>[0-9a-f:.]+)(?:%\w+)?\]|(?<host>[a-z0-9._-]+|\*))",
        r#"(?::(?<port>\d{1,5}))?(?<path>[/?#][^\s"'<>`|\\^{}()\[\]]*)?"#,
    ))
});

/// Matches an address with a port.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)(?:\b(?:\d{1,3}\.){3}\d{1,3}|\blocalhost|\[[0-9a-f:]*\]|::|\*):(?<port>\d{1,5})\b",
    )
});

/// Matches a port in a sentence.
static PORT_PHRASE: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)\bport(?:\(s\)|s|\b)[^\w\n]{1,12}(?<port>\d{2,5})\b",
        r"|\b(?:listening|serving|bound|running|started|available|ready)\b",
        r"(?: \w{1,12}){0,3}:? (?:on:? |at:? |to:? |:)+(?<on>\d{3,5})\b",
    ))
});

fn compile(expression: &str) -> Regex {
    Regex::new(&ascii_classes(expression)).expect("a constant")
}

/// Replaces the Unicode classes of an expression by ASCII ones, which keep matching fast on lines
/// that contain other characters.
pub(super) fn ascii_classes(expression: &str) -> String {
    let pattern = expression.replace(r"\b", r"(?-u:\b)");
    let pattern = pattern
        .replace(r"\d", "[0-9]")
        .replace(r"\w", "[0-9A-Za-z_]");
    pattern.replace(r"\s", r"[ \t]")
}

/// The URLs of a line that have a port or are on this machine; if there is none, a port in a
/// sentence.
pub(super) fn extract_addresses(line: &str) -> Vec<PrintedAddress> {
    let mut found: Vec<PrintedAddress> = Vec::new();
    if line.contains("://") {
        found.extend(URL.captures_iter(line).filter_map(|it| {
            let url = url_from_captures(&it, AddressWeight::Url)?;
            (it.name("port").is_some() || url.is_local()).then_some(url)
        }));
    }
    if found.is_empty() && line.bytes().any(|it| it.is_ascii_digit()) {
        found.extend(phrase_ports(&ADDRESS, line));
        if found.is_empty() {
            found.extend(phrase_ports(&PORT_PHRASE, line));
        }
    }
    found
}

fn phrase_ports(expression: &Regex, line: &str) -> Vec<PrintedAddress> {
    let ports = expression.captures_iter(line).filter_map(|it| {
        let port = it.name("port").or_else(|| it.name("on"))?;
        port_only(port.as_str(), AddressWeight::Phrase)
    });
    ports.collect()
}

/// The address in the groups `url`, `addr` or `port` of a rule's expression.
pub(super) fn from_captures(captures: &Captures<'_>) -> Option<PrintedAddress> {
    if let Some(text) = captures.name("url") {
        return parse(text.as_str());
    }
    if let Some(text) = captures.name("addr") {
        return parse_address(text.as_str());
    }
    port_only(captures.name("port")?.as_str(), AddressWeight::Rule)
}

/// Parses a whole URL, with or without a scheme.
pub(super) fn parse(text: &str) -> Option<PrintedAddress> {
    match URL.captures(text) {
        Some(found) => url_from_captures(&found, AddressWeight::Rule),
        None => parse_address(text),
    }
}

fn parse_address(text: &str) -> Option<PrintedAddress> {
    let text = text.trim();
    let (text, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut address = port_only(port, AddressWeight::Rule)?;
    address.host = Some(host.to_owned()).filter(|it| !it.is_empty());
    path.clone_into(&mut address.path);
    Some(address)
}

fn port_only(port: &str, weight: AddressWeight) -> Option<PrintedAddress> {
    let port = port.trim().parse().ok().filter(|it| *it > 0)?;
    Some(PrintedAddress {
        host: None,
        port,
        https: None,
        path: String::new(),
        weight,
    })
}

fn url_from_captures(captures: &Captures<'_>, weight: AddressWeight) -> Option<PrintedAddress> {
    let https = captures["scheme"].eq_ignore_ascii_case("https");
    let host = captures.name("six").or_else(|| captures.name("host"))?;
    let port = match captures.name("port") {
        Some(port) => port.as_str().parse().ok().filter(|it| *it > 0)?,
        None if https => 443,
        None => 80,
    };
    let path = captures.name("path").map_or("", |it| it.as_str());
    // Punctuation at the end of a sentence is not part of the path, nor is an ellipsis.
    let path = path.trim_end_matches(['.', ',', ';', ':', '!', '…']);
    Some(PrintedAddress {
        host: Some(host.as_str().trim_end_matches('.').to_owned()),
        port,
        https: Some(https),
        path: if path.len() <= PATH_BYTES {
            path.to_owned()
        } else {
            String::new()
        },
        weight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str) -> Vec<(Option<String>, u16, Option<bool>, String)> {
        let actual = extract_addresses(line).into_iter();
        actual
            .map(|it| (it.host, it.port, it.https, it.path))
            .collect()
    }

    /// A line, with the host, port, `https` and path that it contains.
    type Row = (&'static str, &'static str, u16, bool, &'static str);

    #[rustfmt::skip]
    const URLS: [Row; 10] = [
        ("  ➜  Local:   http://localhost:5173/", "localhost", 5173, false, "/"),
        ("Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...", "0.0.0.0", 8000, false, "/"),
        ("Serving HTTP on :: port 8000 (http://[::]:8000/) ...", "::", 8000, false, "/"),
        ("at http://127.0.0.1:8888/tree?token=5f1.", "127.0.0.1", 8888, false, "/tree?token=5f1"),
        ("https://localhost:8443, then", "localhost", 8443, true, ""),
        ("server at http://127.0.0.1:8000/", "127.0.0.1", 8000, false, "/"),
        ("see <http://app.localhost/>", "app.localhost", 80, false, "/"),
        ("http://user:word@localhost:99/x", "localhost", 99, false, "/x"),
        ("Network: http://192.168.1.5:5173/#/a", "192.168.1.5", 5173, false, "/#/a"),
        ("https://app.test:443/x", "app.test", 443, true, "/x"),
    ];

    #[test]
    fn urls() {
        for (line, host, port, https, path) in URLS {
            let expected = vec![(Some(host.to_owned()), port, Some(https), path.to_owned())];
            assert_eq!(all(line), expected, "{line}");
        }
        for line in [
            "docs at https://framework.example/docs",
            "http://localhost:99999/",
            "http://localhost:0/",
            "nothing",
            "took 3 s",
            "ready in 300 ms",
            "running 45 tests",
            "started 12 workers at 10:45",
            "portable 3000",
            "compiled 300 modules in 2000 ms",
        ] {
            assert_eq!(all(line), [], "{line}");
        }
        let long = format!("http://localhost:1/{}", "x".repeat(PATH_BYTES));
        assert_eq!(all(&long)[0].3, "");
    }

    #[test]
    fn words() {
        for (line, port) in [
            ("Example app listening on port 3101", 3101),
            ("listening on :3000", 3000),
            ("Server started on port: 8080.", 8080),
            ("PORT=4000", 4000),
            ("Listening at: 127.0.0.1:8000 (42)", 8000),
            ("Uvicorn server started on :::35761", 35761),
            ("* Listening on tcp://[::1]:9292", 9292),
            ("Server is running on 3000", 3000),
            ("Server running at port 3000", 3000),
            ("server started on: 3000", 3000),
            ("Tomcat started on port(s): 8080 (http)", 8080),
        ] {
            assert_eq!(all(line).iter().map(|it| it.1).next(), Some(port), "{line}");
        }
    }

    #[test]
    fn by_groups() {
        for (expression, line, host, port) in [
            (
                r"at (?<url>\S+)",
                "at http://localhost:81/a",
                Some("localhost"),
                81,
            ),
            (
                r"at (?<url>\S+)",
                "at localhost:81/a",
                Some("localhost"),
                81,
            ),
            (r"at (?<addr>\S+)", "at [::1]:82", Some("::1"), 82),
            (r"at (?<addr>\S+)", "at :83", None, 83),
            (r"at (?<port>\d+)", "at 84", None, 84),
        ] {
            let expression = Regex::new(expression).expect("valid");
            let printed =
                from_captures(&expression.captures(line).expect("matches")).expect("told");
            assert_eq!(
                (printed.host.as_deref(), printed.port),
                (host, port),
                "{line}"
            );
        }
        let none = Regex::new("at (?<other>.)").expect("valid");
        assert_eq!(
            from_captures(&none.captures("at x").expect("matches")),
            None
        );
    }

    #[test]
    fn this_machine() {
        for host in [
            "localhost",
            "LOCALHOST",
            "127.0.0.2",
            "::1",
            "::",
            "0.0.0.0",
            "a.localhost",
            "*",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "example.org",
            "192.168.1.5",
            "127.evil.example",
            "localhost.evil",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
