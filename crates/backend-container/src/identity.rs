//! How containers of ours are known: their labels, and the key by which starts share one.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use ostler_backend::ContainerLaunch;
use ostler_model::Limits;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

use crate::host_paths::MountedInodes;

/// The label with the identity of the state directory.
pub(crate) const LABEL_STATE: &str = "dev.ostler.state";
/// The label with the [`PoolKey`].
pub(crate) const LABEL_KEY: &str = "dev.ostler.key";
/// The label with the hash of the init.
pub(crate) const LABEL_INIT: &str = "dev.ostler.init";
/// The label with the idle timeout, in milliseconds; a container without it serves one execution.
pub(crate) const LABEL_IDLE: &str = "dev.ostler.idle-ms";
/// What the names of our containers begin with.
const NAME_PREFIX: &str = "ostler-";
/// How many random bytes follow; few, since the path of the init's socket is limited (unix(7)).
const NAME_BYTES: usize = 6;
/// How many bytes of a hash are kept, which no two containers of a machine share.
const HASH_BYTES: usize = 16;

/// The state directory as device and inode: where it is moved to another path, its containers stay
/// its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateIdentity(String);

impl StateIdentity {
    /// That of this directory.
    ///
    /// # Errors
    /// As stat(2).
    pub(crate) fn of(state_dir: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(state_dir)?;
        Ok(Self(format!("{}:{}", metadata.dev(), metadata.ino())))
    }

    /// The label by which the engine selects its containers.
    pub(crate) fn filter(&self) -> String {
        format!("{LABEL_STATE}={}", self.0)
    }
}

/// What starts have in common that may share a container: user, project, specification, what its
/// paths lead to, limits, the content of the image, and the init.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey(String);

impl PoolKey {
    /// The key of a start.
    ///
    /// # Errors
    /// Where the specification cannot be written as JSON, which is a defect of ours.
    pub(crate) fn new(
        launch: &ContainerLaunch,
        mounted: &MountedInodes,
        limits: &Limits,
        image_id: &str,
        init_hash: &str,
    ) -> Result<Self, serde_json::Error> {
        let ContainerLaunch {
            spec,
            principal,
            project,
        } = launch;
        let parts = (
            principal, project, spec, mounted, limits, image_id, init_hash,
        );
        Ok(Self(hash(&serde_json::to_vec(&parts)?)))
    }

    /// The key in the label of a container.
    pub(crate) fn from_label(label: &str) -> Self {
        Self(label.to_owned())
    }
}

/// The short form of a SHA-256, in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    ostler_model::lower_hex(&hash[..HASH_BYTES])
}

/// A container's name, and the name of its directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ContainerName(String);

impl ContainerName {
    /// A new one, which no other container has.
    ///
    /// # Errors
    /// As getrandom(2).
    pub(crate) fn unique() -> io::Result<Self> {
        let mut random = [0; NAME_BYTES];
        getrandom(&mut random[..], GetRandomFlags::empty())?;
        Ok(Self(
            NAME_PREFIX.to_owned() + &ostler_model::lower_hex(&random),
        ))
    }

    /// This name, if it is one of ours.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(NAME_PREFIX)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
        let plain = !rest.is_empty() && rest.bytes().all(is_plain);
        plain.then(|| Self(name.to_owned()))
    }

    /// As text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The labels of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerLabels {
    /// Its key.
    pub(crate) key: PoolKey,
    /// The hash of its init.
    pub(crate) init_hash: String,
    /// How long it is kept when it runs nothing; none where it serves one execution.
    pub(crate) idle_timeout: Option<Duration>,
}

impl ContainerLabels {
    /// As the engine stores them.
    pub(crate) fn to_map(&self, state: &StateIdentity) -> HashMap<String, String> {
        let mut labels = vec![
            (LABEL_STATE, state.0.clone()),
            (LABEL_KEY, self.key.0.clone()),
            (LABEL_INIT, self.init_hash.clone()),
        ];
        if let Some(idle) = self.idle_timeout {
            labels.push((LABEL_IDLE, idle.as_millis().to_string()));
        }
        let labels = labels.into_iter();
        labels
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// What was stored; none where a label is missing.
    pub(crate) fn from_map(labels: &HashMap<String, String>) -> Option<Self> {
        let idle = labels.get(LABEL_IDLE).and_then(|it| it.parse().ok());
        Some(Self {
            key: PoolKey::from_label(labels.get(LABEL_KEY)?),
            init_hash: labels.get(LABEL_INIT)?.clone(),
            idle_timeout: idle.map(Duration::from_millis),
        })
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::ByteString;

    use super::*;
    use crate::fixtures;

    #[test]
    fn a_key_is_of_everything_that_starts_must_share() {
        let key = |launch: &ContainerLaunch, limits: &Limits, image: &str, init: &str| {
            let mounted = MountedInodes::of(&launch.spec);
            PoolKey::new(launch, &mounted, limits, image, init).expect("plain")
        };
        let launch = fixtures::launch();
        let limits = Limits::default();
        let first = key(&launch, &limits, "image", "init");
        assert_eq!(first, key(&launch.clone(), &limits, "image", "init"));
        let mut others = vec![
            key(&launch, &limits, "rebuilt", "init"),
            key(&launch, &limits, "image", "newer"),
        ];
        let fewer = Limits {
            pids: Some(8),
            ..limits
        };
        others.push(key(&launch, &fewer, "image", "init"));
        for change in [
            |it: &mut ContainerLaunch| it.principal.push('x'),
            |it: &mut ContainerLaunch| it.project.push('x'),
            |it: &mut ContainerLaunch| it.spec.network.push('x'),
        ] {
            let mut changed = launch.clone();
            change(&mut changed);
            others.push(key(&changed, &limits, "image", "init"));
        }
        assert!(others.iter().all(|other| *other != first));
    }

    #[test]
    fn a_directory_that_was_replaced_has_another_key() {
        let root = tempfile::tempdir().expect("a directory");
        let work = root.path().join("work");
        let mut launch = fixtures::launch();
        launch.spec.workspace = ByteString::from(work.to_str().expect("text"));
        let key = || {
            let mounted = MountedInodes::of(&launch.spec);
            PoolKey::new(&launch, &mounted, &Limits::default(), "image", "init").expect("plain")
        };
        let absent = key();
        std::fs::create_dir(&work).expect("made");
        let first = key();
        assert_eq!(first, key());
        // As by a container that has mounted it.
        let _held = std::fs::File::open(&work).expect("there");
        std::fs::remove_dir(&work).expect("empty");
        std::fs::create_dir(&work).expect("made");
        let second = key();
        assert!(absent != first && first != second && absent != second);
    }

    #[test]
    fn labels_are_read_back() {
        let labels = ContainerLabels {
            key: PoolKey::from_label("k"),
            init_hash: "i".to_owned(),
            idle_timeout: Some(Duration::from_millis(1_500)),
        };
        let state = StateIdentity("1:2".to_owned());
        let mut stored = labels.to_map(&state);
        assert_eq!(stored.get(LABEL_STATE).map(String::as_str), Some("1:2"));
        assert_eq!(ContainerLabels::from_map(&stored), Some(labels));
        stored.remove(LABEL_KEY);
        assert_eq!(ContainerLabels::from_map(&stored), None);
    }

    #[test]
    fn a_name_is_no_path() {
        let name = ContainerName::unique().expect("random");
        assert_eq!(ContainerName::parse(name.as_str()), Some(name));
        for other in ["ostler-", "ostler-../x", "web-1", "ostler-a/b"] {
            assert_eq!(ContainerName::parse(other), None, "{other}");
        }
    }
}
