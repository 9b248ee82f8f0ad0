//! Examples, tests and documents name only hosts and addresses that are reserved for them
//! (RFC 2606, RFC 6761, RFC 5737), never a service that exists.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Result;

use super::diagnostic::Diagnostic;
use crate::repository_files::files_below;

/// Endings of the files that are checked.
const TEXT: &[&str] = &[
    "rs", "toml", "md", "py", "sh", "yml", "yaml", "json", "jsonl", "mjs", "ts", "txt", "snap",
    "log",
];

/// Names of files that list packages with their sources.
const LISTS_OF_PACKAGES: &[&str] = &["package-lock.json", "requirements.txt"];

/// Reserved top-level domains.
const RESERVED_TOP: &[&str] = &["example", "invalid", "local", "localhost", "test"];

/// Reserved domains below other top-level domains.
const RESERVED_DOMAINS: &[&str] = &["example.com", "example.net", "example.org"];

/// Top-level domains of names that are recognised without a scheme before them.
const RECOGNISED_TOP: &[&str] = &["com", "org"];

/// `(file or directory with a final slash, domain, reason)` for hosts that exist; an empty domain stands for
/// every host.
const NAMED: &[(&str, &str, &str)] = &[
    ("CHANGELOG.md", "keepachangelog.com", "its format"),
    ("CHANGELOG.md", "semver.org", "its version numbers"),
    ("docs/wsl2.md", "sh.rustup.rs", "the installer of Rust"),
    (
        "xtask/src/setup/npm.rs",
        "nodejs.org",
        "where Node comes from",
    ),
    (
        "crates/mcp/src/fixtures/",
        "json-schema.org",
        "the identifier of a schema language",
    ),
    (
        "crates/detect/",
        "trycloudflare.com",
        "the domain that the tunnel prints",
    ),
    (
        "crates/egress/src/",
        "",
        "the limits of the special-purpose address ranges",
    ),
    ("xtask/src/tidy/hosts.rs", "", "this list"),
    ("xtask/src/tidy/tests.rs", "", "what this check must find"),
];

/// Checks every line of every text file.
pub(super) fn check(root: &Path) -> Result<Vec<Diagnostic>> {
    let mut findings = Vec::new();
    for path in files_below(root, TEXT)? {
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| LISTS_OF_PACKAGES.contains(&name)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let place = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        findings.extend(check_text(&place, &text));
    }
    Ok(findings)
}

/// Checks the lines of a text.
pub(super) fn check_text(path: &str, text: &str) -> Vec<Diagnostic> {
    let lines = text.lines().enumerate();
    let hosts = lines.flat_map(|(index, line)| hosts(line).map(move |host| (index + 1, host)));
    let unreserved = hosts.filter(|(_, host)| !is_reserved(host) && !is_named(path, host));
    unreserved
        .map(|(line, host)| {
            let message = format!("names the host {host}; use example.org, *.test or 192.0.2.1");
            Diagnostic::failure(path, line, message)
        })
        .collect()
}

/// The words of a line that are hosts: after a scheme, by their top-level domain, or as an IPv4
/// address.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let words = line.split(move |c: char| !is_part(c));
    let in_urls = line.split("://").skip(1).filter_map(move |rest| {
        let end = rest.find(['/', '"', ' ']).unwrap_or(rest.len());
        let authority = rest[..end].rsplit('@').next()?;
        authority.split(move |c: char| !is_part(c)).next()
    });
    let by_form = words.filter(|word| {
        word.parse::<Ipv4Addr>().is_ok()
            || word.rsplit_once('.').is_some_and(|(name, top)| {
                !name.is_empty() && RECOGNISED_TOP.contains(&top.to_ascii_lowercase().as_str())
            })
    });
    in_urls.filter(|host| host.contains('.')).chain(by_form)
}

/// Whether a host is reserved for documentation, tests or private networks.
fn is_reserved(host: &str) -> bool {
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return is_reserved_address(address);
    }
    let host = host.trim_matches('.').to_ascii_lowercase();
    let Some((_, top)) = host.rsplit_once('.') else {
        return true;
    };
    RESERVED_TOP.contains(&top)
        || RESERVED_DOMAINS
            .iter()
            .any(|domain| is_below(&host, domain))
}

/// Whether an address is private, local, for documentation or for tests.
fn is_reserved_address(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private()
        || address.is_documentation()
        || address.is_link_local()
        || matches!(first, 0 | 127 | 224..=255)
        || matches!((first, second), (198, 18 | 19) | (100, 64..=127))
}

fn is_named(path: &str, host: &str) -> bool {
    NAMED.iter().any(|(file, domain, _reason)| {
        let same_path = *file == path || file.ends_with('/') && path.starts_with(file);
        same_path && (domain.is_empty() || is_below(host, domain))
    })
}

/// Whether a host is this domain or below it.
fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
