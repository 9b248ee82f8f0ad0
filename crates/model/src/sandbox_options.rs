//! What a request asks of isolation level high beyond its defaults.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::byte_string::ByteString;
use crate::capability::{Capability, CapabilityError};
use crate::sandbox_spec::{NetworkAccess, PortForward, PortForwardError};

/// What isolation level high exposes and reaches beyond its defaults; not allowed for lower levels.
/// The working directory is the workspace, unless it is private inside the sandbox anyway (`/tmp`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxOptions {
    /// The writable directory, which must contain the working directory; none takes the working
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// Whether writes to the workspace go to an overlay, to be committed or discarded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overlay: bool,
    /// The network access, as `"none"`, `"full"` or a list of hosts; none takes the setting.
    #[serde(
        default,
        with = "optional_network",
        skip_serializing_if = "Option::is_none"
    )]
    pub network: Option<NetworkAccess>,
    /// Additional read-only paths, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ByteString>,
    /// Additional writable paths, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<ByteString>,
    /// Ports of the host's loopback that are forwarded into the command's network namespace, as
    /// `"8080:80"`, or `"8080"`.
    #[serde(
        default,
        rename = "forward",
        with = "port_words",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub forwards: Vec<PortForward>,
    /// Capabilities that may be missing without a refusal, for example `landlock`; every answer
    /// reports those that are.
    #[serde(
        default,
        deserialize_with = "capabilities",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub allow_degraded: Vec<Capability>,
}

impl SandboxOptions {
    /// These options, and those of `base` where they ask for nothing; paths, forwarded ports and
    /// what may be missing are those of both.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        Self {
            workspace: self.workspace.or(base.workspace),
            overlay: self.overlay || base.overlay,
            network: self.network.or(base.network),
            read: merged(base.read, self.read),
            write: merged(base.write, self.write),
            forwards: merged(base.forwards, self.forwards),
            allow_degraded: merged(base.allow_degraded, self.allow_degraded),
        }
    }
}

/// What both have, each once, that of `base` first.
fn merged<T: PartialEq>(mut base: Vec<T>, mut own: Vec<T>) -> Vec<T> {
    own.retain(|it| !base.contains(it));
    base.append(&mut own);
    base
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A network access as people write it: `"none"`, `"full"`, or a list of hosts as `["example.org",
/// "*.example.net", "10.0.0.5:22"]`.
pub mod network_words {
    use std::fmt;

    use super::{Deserializer, NetworkAccess, SeqAccess, Serializer, Visitor, de_error};

    /// Writes the words.
    ///
    /// # Errors
    /// As the serializer.
    pub fn serialize<S: Serializer>(network: &NetworkAccess, to: S) -> Result<S::Ok, S::Error> {
        match network {
            NetworkAccess::None => to.serialize_str("none"),
            NetworkAccess::Full => to.serialize_str("full"),
            NetworkAccess::AllowList { hosts } => {
                to.collect_seq(hosts.iter().map(ToString::to_string))
            }
        }
    }

    /// Reads the words.
    ///
    /// # Errors
    /// As the deserializer; for other words, and hosts that are none.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<NetworkAccess, D::Error> {
        from.deserialize_any(WordsVisitor)
    }

    /// One word, or a list of hosts.
    struct WordsVisitor;

    impl<'de> Visitor<'de> for WordsVisitor {
        type Value = NetworkAccess;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("\"none\", \"full\" or a list of hosts")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NetworkAccess, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NetworkAccess, A::Error> {
            let mut words: Vec<String> = Vec::new();
            while let Some(word) = items.next_element()? {
                words.push(word);
            }
            NetworkAccess::from_words(words.iter().map(String::as_str)).map_err(de_error)
        }
    }
}

fn de_error<E: serde::de::Error>(error: impl std::fmt::Display) -> E {
    E::custom(error)
}

mod optional_network {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{NetworkAccess, network_words};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Words(#[serde(with = "network_words")] NetworkAccess);

    pub(super) fn serialize<S: Serializer>(
        network: &Option<NetworkAccess>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        network.clone().map(Words).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<NetworkAccess>, D::Error> {
        Ok(Option::<Words>::deserialize(from)?.map(|Words(network)| network))
    }
}

/// Parses names of restrictions; the error lists the valid ones.
fn capabilities<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Capability>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    let parsed = names.iter().map(|name| name.parse());
    parsed
        .collect::<Result<_, CapabilityError>>()
        .map_err(D::Error::custom)
}

/// Port forwards as people write them: `"8080:80"`, or `"8080"`.
pub mod port_words {
    use super::{Deserialize, Deserializer, PortForward, PortForwardError, Serializer, de_error};

    /// Writes the words.
    ///
    /// # Errors
    /// As the serializer.
    pub fn serialize<S: Serializer>(ports: &[PortForward], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ports.iter().map(ToString::to_string))
    }

    /// Reads the words.
    ///
    /// # Errors
    /// As the deserializer; for texts that are no port forward.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PortForward>, D::Error> {
        let words = Vec::<String>::deserialize(from)?;
        let parsed = words.iter().map(|word| word.parse());
        parsed
            .collect::<Result<_, PortForwardError>>()
            .map_err(de_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(body: Value) -> Result<SandboxOptions, String> {
        serde_json::from_value(body).map_err(|error| error.to_string())
    }

    #[test]
    fn networks_are_a_word_or_a_list_and_shown_as_given() {
        for network in [
            json!("none"),
            json!("full"),
            json!(["example.org", "*.example.net:443", "[2001:db8::1]:22"]),
        ] {
            let body = read(json!({"network": network})).unwrap();
            assert_eq!(json!(body), json!({"network": network}));
        }
    }

    #[test]
    fn invalid_values_are_reported_with_what_is_allowed() {
        for (body, expected) in [
            (
                json!({"network": 7}),
                "expected \"none\", \"full\" or a list of hosts",
            ),
            (
                json!({"network": ["full", "a.example"]}),
                "'full' is no host: it stands alone",
            ),
            (json!({"network": "https://a.example"}), "without scheme"),
            (
                json!({"allow_degraded": ["moat"]}),
                "allowed: no_new_privileges, ",
            ),
            (json!({"overlay": "yes"}), "expected a boolean"),
            (json!({"reed": []}), "unknown field `reed`"),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
