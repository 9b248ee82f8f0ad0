//! The text form of [`NetworkAccess`]: `none`, `full`, or a comma-separated list of hosts.

use std::fmt;
use std::str::FromStr;

use crate::sandbox_spec::{HOSTS_MAX, HostRule, HostRuleError, NetworkAccess};

impl NetworkAccess {
    /// Parses `none`, `full`, or a list of hosts that may be reached.
    ///
    /// # Errors
    /// For the first word that is not a host rule, and for `none` or `full` among hosts.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, HostRuleError> {
        let words: Vec<&str> = words.into_iter().map(str::trim).collect();
        let error = |given: &str, problem| HostRuleError {
            given: given.to_owned(),
            problem,
        };
        match words[..] {
            [] | ["none"] => return Ok(Self::None),
            ["full"] => return Ok(Self::Full),
            _ => {}
        }
        if words.len() > HOSTS_MAX {
            return Err(error(words[HOSTS_MAX], "a list has at most 256 hosts"));
        }
        let host = |word: &&str| match *word {
            "none" | "full" => Err(error(word, "it stands alone, or hosts do")),
            word => word.parse::<HostRule>(),
        };
        let hosts: Result<_, _> = words.iter().map(host).collect();
        Ok(Self::AllowList { hosts: hosts? })
    }
}

impl FromStr for NetworkAccess {
    type Err = HostRuleError;

    /// Parses `none`, `full`, or a comma-separated list of hosts. A number alone is one more port
    /// of the host before it.
    fn from_str(text: &str) -> Result<Self, HostRuleError> {
        let is_port = |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
        let mut words: Vec<String> = Vec::new();
        for word in text.split(',').map(str::trim) {
            match words.last_mut() {
                Some(host) if is_port(word) && host.contains(':') => {
                    host.push(',');
                    host.push_str(word);
                }
                Some(_) | None => words.push(word.to_owned()),
            }
        }
        Self::from_words(words.iter().map(String::as_str))
    }
}

impl fmt::Display for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::AllowList { hosts } => {
                let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
                f.write_str(&hosts.join(","))
            }
        }
    }
}
