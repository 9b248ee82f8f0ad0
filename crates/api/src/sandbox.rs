//! Isolation of level high: options and their effect.

use std::fmt;

use ostler_model::isolation::{LimitKind, Limits, MissingCapability};
use ostler_model::{
    AutorunReport, ByteString, Capability, IsolationLevel, LimitBackend, NetworkAccess,
    OverlayOutcome, PortForward,
};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Options beyond the defaults of level high; not allowed for lower levels.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxOptionsBody {
    /// The writable directory, which must contain the working directory; absent means the working
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// Whether writes to it go to an overlay, to be committed or discarded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlay: bool,
    /// `"none"`, `"full"`, or a list of hosts; absent means the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkBody>,
    /// Further absolute paths to mount read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ByteString>,
    /// Further absolute paths to mount writable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<ByteString>,
    /// Ports of the host's loopback that are forwarded to the command: `"8080:80"`, or `"8080"`.
    #[serde(default, with = "ports", skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<PortForward>,
    /// Restrictions that may be missing without a refusal, for example `landlock`.
    #[serde(
        default,
        deserialize_with = "capabilities",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub allow_degraded: Vec<Capability>,
}

/// The network access: `"none"`, `"full"`, or a list of hosts as `["pypi.org",
/// "*.pythonhosted.org", "10.0.0.5:22"]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkBody(pub NetworkAccess);

/// The requested isolation, what is in force and what is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationBody {
    /// The requested level.
    #[serde(rename = "asked")]
    pub requested: IsolationLevel,
    /// The level in force.
    pub in_force: Vec<Capability>,
    /// What was requested and is not available here, each with its reason.
    pub missing: Vec<MissingCapability>,
    /// Missing capabilities that are reported to people unasked: those that no command gets on this
    /// host are reported once per daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<MissingCapability>,
    /// How limits are enforced.
    pub backend: LimitBackend,
    /// The limits of its tree.
    pub limits: Limits,
    /// Limits that were reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<LimitKind>,
    /// Files it created or changed in its workspace that tools run or follow automatically.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
    /// What it sees and reaches; absent below level high, where that is the same as for its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<SandboxInfoBody>,
}

/// What a command of level high sees and reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxInfoBody {
    /// The writable directory; absent where it works in a private one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// The state of its overlay; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<OverlayOutcome>,
    /// Its network access.
    pub network: NetworkBody,
    /// Further paths mounted read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ByteString>,
    /// Further paths mounted writable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<ByteString>,
    /// Paths below the workspace that stay read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<ByteString>,
    /// Ports of the host's loopback that are forwarded to the command.
    #[serde(default, with = "ports", skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<PortForward>,
}

impl Serialize for NetworkBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            NetworkAccess::None => to.serialize_str("none"),
            NetworkAccess::Full => to.serialize_str("full"),
            NetworkAccess::AllowList { hosts } => {
                to.collect_seq(hosts.iter().map(ToString::to_string))
            }
        }
    }
}

impl<'de> Deserialize<'de> for NetworkBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NetworkVisitor)
    }
}

/// One word, or a list of hosts.
struct NetworkVisitor;

impl<'de> Visitor<'de> for NetworkVisitor {
    type Value = NetworkBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"none\", \"full\" or a list of hosts")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NetworkBody, E> {
        text.parse().map(NetworkBody).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NetworkBody, A::Error> {
        let mut words: Vec<String> = Vec::new();
        while let Some(word) = items.next_element()? {
            words.push(word);
        }
        let network = NetworkAccess::from_words(words.iter().map(String::as_str));
        network.map(NetworkBody).map_err(A::Error::custom)
    }
}

/// Parses names of restrictions; the error lists the valid ones.
fn capabilities<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Capability>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    let parsed = names.iter().map(|name| name.parse());
    parsed
        .collect::<Result<_, ostler_model::snapshot::CapabilityError>>()
        .map_err(D::Error::custom)
}

/// Parses port forwards as people write them.
mod ports {
    use ostler_model::{PortForward, PortForwardError};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        ports: &[PortForward],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(ports.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PortForward>, D::Error> {
        let words = Vec::<String>::deserialize(from)?;
        let parsed = words.iter().map(|word| word.parse());
        parsed
            .collect::<Result<_, PortForwardError>>()
            .map_err(D::Error::custom)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(body: Value) -> Result<SandboxOptionsBody, String> {
        serde_json::from_value(body).map_err(|error| error.to_string())
    }

    #[test]
    fn networks_are_a_word_or_a_list_and_told_as_given() {
        for network in [
            json!("none"),
            json!("full"),
            json!(["pypi.org", "*.pythonhosted.org:443", "[2001:db8::1]:22"]),
        ] {
            let body = read(json!({"network": network})).unwrap();
            assert_eq!(json!(body), json!({"network": network}));
        }
    }

    #[test]
    fn what_cannot_be_is_told_with_what_is_allowed() {
        for (body, told) in [
            (
                json!({"network": 7}),
                "expected \"none\", \"full\" or a list of hosts",
            ),
            (
                json!({"network": ["full", "a.org"]}),
                "'full' is no host: it stands alone",
            ),
            (json!({"network": "https://a.org"}), "without scheme"),
            (
                json!({"allow_degraded": ["moat"]}),
                "allowed: no_new_privileges, ",
            ),
            (json!({"overlay": "yes"}), "expected a boolean"),
            (json!({"reed": []}), "unknown field `reed`"),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
