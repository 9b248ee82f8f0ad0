//! What a command of level high sees and reaches, as asked and as it is.

use ostler_engine::{Confine, Info};
use ostler_model::policy::{Degraded, Limit, Limits};
use ostler_model::{
    Ability, AutorunReport, Confinement, Fate, Forward, IsolationLevel, LimitBackend, Network,
    Policy, Text,
};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Beyond the defaults of level high; lower levels take none of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfineBody {
    /// The writable directory; absent takes the working directory, which must be below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Text>,
    /// Whether writes to it are kept apart, to be committed or discarded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlay: bool,
    /// `"none"`, `"full"`, or a list of hosts; absent takes the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkBody>,
    /// Further absolute paths to show read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Text>,
    /// Further absolute paths to show writable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Text>,
    /// Ports of the host's loopback that lead to the command's own: `"8080:80"`, or `"8080"`.
    #[serde(default, with = "ports", skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<Forward>,
    /// Walls that may be missing without a refusal, for example `landlock`.
    #[serde(
        default,
        deserialize_with = "walls",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub allow_degraded: Vec<Ability>,
}

/// What of the network is reached: `"none"`, `"full"`, or a list of hosts as
/// `["pypi.org", "*.pythonhosted.org", "10.0.0.5:22"]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkBody(pub Network);

/// What was asked of isolation, what is in force and what is missing (D8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationBody {
    /// The level asked.
    pub asked: IsolationLevel,
    /// What is in force.
    pub in_force: Vec<Ability>,
    /// What was asked and cannot be had here, each with its reason.
    pub missing: Vec<Degraded>,
    /// Those of the missing that people are told without asking: what no command gets on this
    /// host is told once by a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Degraded>,
    /// How limits are enforced.
    pub backend: LimitBackend,
    /// The limits of its tree.
    pub limits: Limits,
    /// Limits that were reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<Limit>,
    /// What it made or changed in its workspace that tools run or obey unasked.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
    /// What it sees and reaches; absent below level high, where that is what its user does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementBody>,
}

/// What a command of level high sees and reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfinementBody {
    /// The writable directory; absent where it works in a private one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Text>,
    /// What became of writes that are kept apart; absent without an overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Fate>,
    /// What of the network it reaches.
    pub network: NetworkBody,
    /// Further paths shown read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Text>,
    /// Further paths shown writable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Text>,
    /// Paths below the workspace that stay read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<Text>,
    /// Ports of the host's loopback that lead to the command's own.
    #[serde(default, with = "ports", skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<Forward>,
}

impl ConfineBody {
    /// As the engine is asked.
    #[must_use]
    pub fn into_request(self) -> Confine {
        Confine {
            workspace: self.workspace,
            overlay: self.overlay,
            network: self.network.map(|NetworkBody(network)| network),
            read: self.read,
            write: self.write,
            forwards: self.forward,
            allow_degraded: self.allow_degraded,
        }
    }
}

impl From<&Info> for IsolationBody {
    fn from(info: &Info) -> Self {
        let policy: &Policy = &info.spec.policy;
        let (hit, fate) = (info.state.limits_hit.clone(), info.state.workspace);
        Self {
            asked: policy.level,
            in_force: policy.in_force.clone(),
            missing: policy.missing.clone(),
            warnings: info.isolation_warnings(),
            backend: policy.backend,
            limits: policy.limits,
            limits_hit: hit,
            autorun: info.state.autorun.clone(),
            confinement: policy.confinement.as_ref().map(|it| shown(it, fate)),
        }
    }
}

fn shown(confinement: &Confinement, fate: Option<Fate>) -> ConfinementBody {
    ConfinementBody {
        workspace: confinement.workspace.clone(),
        overlay: confinement.overlay.then(|| fate.unwrap_or_default()),
        network: NetworkBody(confinement.network.clone()),
        read: confinement.read.clone(),
        write: confinement.write.clone(),
        protect: confinement.protect.clone(),
        forward: confinement.forwards.clone(),
    }
}

impl Serialize for NetworkBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Network::None => to.serialize_str("none"),
            Network::Full => to.serialize_str("full"),
            Network::AllowList { hosts } => to.collect_seq(hosts.iter().map(ToString::to_string)),
        }
    }
}

impl<'de> Deserialize<'de> for NetworkBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Words)
    }
}

/// One word, or a list of hosts.
struct Words;

impl<'de> Visitor<'de> for Words {
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
        let network = Network::of_words(words.iter().map(String::as_str));
        network.map(NetworkBody).map_err(A::Error::custom)
    }
}

/// Walls by name; the error lists them.
fn walls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Ability>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    let parsed = words.iter().map(|word| word.parse());
    parsed
        .collect::<Result<_, ostler_model::evidence::AbilityError>>()
        .map_err(D::Error::custom)
}

/// Ports as people write them.
mod ports {
    use ostler_model::{Forward, ForwardError};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(ports: &[Forward], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ports.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Forward>, D::Error> {
        let words = Vec::<String>::deserialize(from)?;
        let parsed = words.iter().map(|word| word.parse());
        parsed
            .collect::<Result<_, ForwardError>>()
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

    fn read(body: Value) -> Result<ConfineBody, String> {
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
