//! Parsing, formatting and matching of host rules.
//!
//! `example.org`, `*.example.org` (names below it, not itself), `10.1.2.3`, `10.1.2.0/24`,
//! `2001:db8::/32`, each with ports where others than 80 and 443 are meant: `example.org:8443`,
//! `example.org:80,8443`, `10.1.2.0/24:5432`, `[2001:db8::1]:443`, `[2001:db8::]/32:443`.
//!
//! Names are ASCII: an internationalized name is given in its A-label form (`xn--…`), so that
//! homographs have different letters. Comparison is in lower case and without a final dot.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::sandbox_spec::{DEFAULT_PORTS, HostPattern, HostRule, HostRuleError};

/// The length of the longest name in bytes (RFC 1035, as text without the final dot).
const NAME_BYTES: usize = 253;
/// The length of the longest label in bytes (RFC 1035).
const LABEL_BYTES: usize = 63;
/// The most ports that one rule may name.
pub const RULE_PORTS_MAX: usize = 32;

type HostProblem = &'static str;

impl FromStr for HostRule {
    type Err = HostRuleError;

    fn from_str(given: &str) -> Result<Self, HostRuleError> {
        let parsed = split_ports(given).and_then(|(host, ports)| {
            Ok(Self {
                host: parse_pattern(host)?,
                ports: parse_ports(ports)?,
            })
        });
        parsed.map_err(|problem| HostRuleError {
            given: given.chars().take(NAME_BYTES).collect(),
            problem,
        })
    }
}

/// Splits a rule into its host part and its ports part.
fn split_ports(given: &str) -> Result<(&str, Option<&str>), HostProblem> {
    if given.is_empty() {
        return Err("it is empty");
    }
    if given.contains("://") || given.contains(['?', '#', '@']) {
        return Err("give the host alone, without scheme, user or path");
    }
    if given.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err("it has spaces or control characters");
    }
    if given.starts_with('[') {
        let close = given.find(']').ok_or("a bracket is not closed")?;
        let host_end = given[close..]
            .find(':')
            .map_or(given.len(), |at| close + at);
        let ports = given.get(host_end + 1..);
        return Ok((&given[..host_end], ports));
    }
    match given.match_indices(':').count() {
        0 => Ok((given, None)),
        1 => Ok(given
            .split_once(':')
            .map_or((given, None), |(host, ports)| (host, Some(ports)))),
        // An IPv6 address without brackets has no port.
        _ => Ok((given, None)),
    }
}

fn parse_ports(text: Option<&str>) -> Result<Vec<u16>, HostProblem> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let mut ports = Vec::new();
    for word in text.split(',') {
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let port = word.parse().ok().filter(|&port| digits && port != 0);
        let port: u16 = port.ok_or("a port is a number from 1 to 65535")?;
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    if ports.len() > RULE_PORTS_MAX {
        return Err("it names more than 32 ports");
    }
    Ok(ports)
}

fn parse_pattern(host: &str) -> Result<HostPattern, HostProblem> {
    let (address, prefix) = match host.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (host, None),
    };
    let address: Option<IpAddr> = match address.strip_prefix('[') {
        Some(inner) => {
            let inner = inner.strip_suffix(']').unwrap_or("");
            let parsed = inner.parse::<Ipv6Addr>();
            Some(
                parsed
                    .map_err(|_| "brackets are for an IPv6 address")?
                    .into(),
            )
        }
        None => address.parse().ok(),
    };
    match (address, prefix) {
        (Some(address), prefix) => parse_network(address, prefix),
        (None, Some(_)) => Err("give the host alone, without scheme, user or path"),
        (None, None) => parse_name(host),
    }
}

fn parse_network(address: IpAddr, prefix: Option<&str>) -> Result<HostPattern, HostProblem> {
    if let IpAddr::V6(v6) = address
        && v6.to_ipv4_mapped().is_some()
    {
        return Err("give the IPv4 address itself");
    }
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => width,
        Some(text) => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let prefix = text.parse().ok().filter(|&bits| digits && bits <= width);
            prefix.ok_or("what follows the slash is no prefix length")?
        }
    };
    if mask_address(address, prefix) != address {
        return Err("the address has bits beyond its prefix length");
    }
    Ok(HostPattern::Addresses { address, prefix })
}

/// The address with all bits after the first `prefix` cleared.
#[must_use]
pub fn mask_address(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32)));
            IpAddr::V4((v4.to_bits() & mask.unwrap_or(0)).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128)));
            IpAddr::V6((v6.to_bits() & mask.unwrap_or(0)).into())
        }
    }
}

fn parse_name(host: &str) -> Result<HostPattern, HostProblem> {
    if host == "*" {
        return Err("for every host ask for the network 'full'");
    }
    let (name, below) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    if name.contains('*') {
        return Err("a star may only stand for the first labels, as in *.example.org");
    }
    let name = canonical_name(name)?;
    if name == "localhost" || name.ends_with(".localhost") {
        return Err("localhost is the command's own and always reachable");
    }
    Ok(if below {
        HostPattern::Below(name)
    } else {
        HostPattern::Name(name)
    })
}

/// Normalizes a host name: lower case, no final dot.
///
/// # Errors
/// When it is not a host name of ASCII letters, digits, hyphens and underscores, or could be parsed
/// as an address. The error names the problem.
pub fn canonical_name(name: &str) -> Result<String, &'static str> {
    if !name.is_ascii() {
        return Err("give an internationalised name in its ASCII form (xn--…)");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_BYTES {
        return Err("it is longer than 253 characters");
    }
    let name = name.to_ascii_lowercase();
    for label in name.split('.') {
        if label.is_empty() {
            return Err("a label is empty");
        }
        if label.len() > LABEL_BYTES {
            return Err("a label is longer than 63 characters");
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !label.bytes().all(fits) {
            return Err("a name has letters, digits, hyphens and dots");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("a label begins or ends with a hyphen");
        }
    }
    // Forms that inet_aton(3) takes for an address: 127.1, 0x7f.1, 2130706433.
    let last = name.rsplit('.').next().unwrap_or("");
    let hexadecimal = |word: &str| {
        word.strip_prefix("0x")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if last.bytes().all(|byte| byte.is_ascii_digit()) || hexadecimal(last) {
        return Err("it is neither a name nor a complete address");
    }
    Ok(name)
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Addresses { address, prefix } => {
                match address {
                    IpAddr::V4(v4) => write!(f, "{v4}")?,
                    IpAddr::V6(v6) => write!(f, "[{v6}]")?,
                }
                let width = if address.is_ipv4() { 32 } else { 128 };
                if *prefix == width {
                    Ok(())
                } else {
                    write!(f, "/{prefix}")
                }
            }
        }
    }
}

impl fmt::Display for HostRule {
    /// Writes the form that `from_str` parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.host)?;
        for (position, port) in self.ports.iter().enumerate() {
            write!(f, "{}{port}", if position == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl HostRule {
    /// The TCP ports of the rule: the named ones, else
    /// [`DEFAULT_PORTS`].
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        if self.ports.is_empty() {
            &DEFAULT_PORTS
        } else {
            &self.ports
        }
    }
}

impl HostPattern {
    /// Whether the rule matches this name, given in lower case without a final dot.
    #[must_use]
    pub fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(own) => name
                .strip_suffix(own.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|rest| !rest.is_empty()),
            Self::Addresses { .. } => false,
        }
    }

    /// Whether the rule matches this address.
    #[must_use]
    pub fn matches_address(&self, address: IpAddr) -> bool {
        match self {
            Self::Addresses {
                address: own,
                prefix,
            } => own.is_ipv4() == address.is_ipv4() && mask_address(address, *prefix) == *own,
            Self::Name(_) | Self::Below(_) => false,
        }
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
