//! Containers: what a request asks for, and what was resolved from that and the settings.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;
use crate::default_value::is_default;
use crate::millis::{optional_millis, whole_millis};

/// The directory of a container that the workspace is mounted at.
pub const CONTAINER_WORKSPACE: &str = "/workspace";
/// The directory of a container in which secrets are files, one per name.
pub const CONTAINER_SECRETS: &str = "/run/secrets";
/// The memory of a container unless asked otherwise, in bytes.
pub const CONTAINER_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// Its share of the processors, in thousandths of one.
pub const CONTAINER_CPU_MILLIS: u32 = 500;
/// What it may add to its file systems, in bytes.
pub const CONTAINER_DISK_BYTES: u64 = 1024 * 1024 * 1024;
/// From SIGTERM to SIGKILL, in milliseconds.
pub const CONTAINER_STOP_GRACE_MS: u64 = 10_000;
/// How long a container is kept warm that runs nothing, in milliseconds.
pub const CONTAINER_IDLE_MS: u64 = 1_800_000;
/// The most volumes of a container.
pub const VOLUMES_MAX: usize = 64;
/// The most capabilities that are added, which is more than there are.
pub const CAPABILITIES_MAX: usize = 64;

/// What a start asks of its container; a field that is absent takes the setting. In JSON, durations
/// are milliseconds, and unknown fields are refused.
///
/// Memory, processor, processes and disk are [`Limits`](crate::Limits), as of any command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerOptions {
    /// The image, by name or id. It must be on this machine: nothing is pulled by a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The host's directory at `/workspace`, which must contain the working directory; none takes
    /// the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<ByteString>,
    /// The network: `bridge`, `none`, or one that the settings allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Name servers, as addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<String>,
    /// The proxy for HTTP and HTTPS, as a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Whether the root file system is read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_root: Option<bool>,
    /// Whether execve(2) grants no further privileges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_new_privileges: Option<bool>,
    /// The user, as `name`, `uid`, `name:group` or `uid:gid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// capabilities(7) that it keeps, without `CAP_`; all others are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cap_add: Vec<String>,
    /// Directories and files of the host to mount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeMount>,
    /// Whether secrets are files in `/run/secrets` instead of variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_files: Option<bool>,
    /// How its health is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ContainerHealth>,
    /// From SIGTERM to SIGKILL, in milliseconds.
    #[serde(
        default,
        rename = "stop_grace_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub stop_grace: Option<Duration>,
    /// How long the container is kept when it runs nothing, in milliseconds.
    #[serde(
        default,
        rename = "idle_timeout_ms",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub idle_timeout: Option<Duration>,
    /// Whether a container that runs already is used, and this one is kept for later starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<bool>,
}

impl ContainerOptions {
    /// These options, and those of `base` where they ask for nothing; lists are those of both.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        Self {
            image: self.image.or(base.image),
            workspace: self.workspace.or(base.workspace),
            network: self.network.or(base.network),
            dns: merged(base.dns, self.dns),
            proxy: self.proxy.or(base.proxy),
            read_only_root: self.read_only_root.or(base.read_only_root),
            no_new_privileges: self.no_new_privileges.or(base.no_new_privileges),
            user: self.user.or(base.user),
            cap_add: merged(base.cap_add, self.cap_add),
            volumes: merged(base.volumes, self.volumes),
            secret_files: self.secret_files.or(base.secret_files),
            health: self.health.or(base.health),
            stop_grace: self.stop_grace.or(base.stop_grace),
            idle_timeout: self.idle_timeout.or(base.idle_timeout),
            reuse: self.reuse.or(base.reuse),
        }
    }
}

/// What both have, each once, that of `base` first.
fn merged<T: PartialEq>(mut base: Vec<T>, mut own: Vec<T>) -> Vec<T> {
    own.retain(|it| !base.contains(it));
    base.append(&mut own);
    base
}

/// The container of an execution, resolved. Executions with equal specifications, limits and owners
/// share a container where [`reuse`](Self::reuse) is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The image, by name or id.
    pub image: String,
    /// The host's directory at [`CONTAINER_WORKSPACE`].
    pub workspace: ByteString,
    /// The network's name; `none` has the loopback interface only.
    pub network: String,
    /// Name servers; none takes the engine's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<String>,
    /// The proxy for HTTP and HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Whether the root file system is read-only.
    pub read_only_root: bool,
    /// Whether execve(2) grants no further privileges.
    pub no_new_privileges: bool,
    /// The user; none takes the image's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// capabilities(7) that it keeps, without `CAP_`, in upper case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cap_add: Vec<String>,
    /// Directories and files of the host that are mounted besides the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeMount>,
    /// Whether secrets are files in [`CONTAINER_SECRETS`] instead of variables.
    #[serde(default, skip_serializing_if = "is_default")]
    pub secret_files: bool,
    /// How its health is checked; none takes the image's way, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ContainerHealth>,
    /// How long it is kept when it runs nothing.
    #[serde(rename = "idle_timeout_ms", with = "whole_millis")]
    pub idle_timeout: Duration,
    /// Whether it may run several executions, one after the other or side by side.
    pub reuse: bool,
    /// How the limit on its disk is enforced; none where that was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskEnforcement>,
}

/// How a limit on the disk of a container is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskEnforcement {
    /// The storage driver limits the container's own layer; the growth of the workspace is counted.
    StorageDriver,
    /// The growth of the workspace is counted; the storage driver is not known to limit the
    /// container's own layer.
    Accounting,
}

impl fmt::Display for DiskEnforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StorageDriver => "storage driver",
            Self::Accounting => "accounting",
        })
    }
}

/// A directory or file of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeMount {
    /// Its absolute path on the host.
    pub host: ByteString,
    /// Its absolute path in the container.
    pub container: ByteString,
    /// Whether it is writable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write: bool,
}

/// The error for a text that is no volume.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no volume: write HOST:CONTAINER, HOST:CONTAINER:ro or HOST:CONTAINER:rw")]
pub struct VolumeError(String);

impl FromStr for VolumeMount {
    type Err = VolumeError;

    /// Parses `HOST:CONTAINER`, read-only, or `HOST:CONTAINER:rw`. Paths with a colon have no such
    /// form.
    fn from_str(text: &str) -> Result<Self, VolumeError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (host, container, write) = match parts[..] {
            [host, container] | [host, container, "ro"] => (host, container, false),
            [host, container, "rw"] => (host, container, true),
            _ => return Err(VolumeError(text.to_owned())),
        };
        if host.is_empty() || container.is_empty() {
            return Err(VolumeError(text.to_owned()));
        }
        Ok(Self {
            host: ByteString::from(host),
            container: ByteString::from(container),
            write,
        })
    }
}

/// A health check, which the container engine makes: the container is unhealthy after `retries`
/// failures in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerHealth {
    /// The program and its arguments; exit code 0 is healthy.
    pub command: Vec<String>,
    /// From one check to the next, in milliseconds.
    #[serde(default = "interval", rename = "interval_ms", with = "whole_millis")]
    pub interval: Duration,
    /// How long one check may take, in milliseconds.
    #[serde(default = "timeout", rename = "timeout_ms", with = "whole_millis")]
    pub timeout: Duration,
    /// How long failures do not count after the start, in milliseconds.
    #[serde(
        default = "start_period",
        rename = "start_period_ms",
        with = "whole_millis"
    )]
    pub start_period: Duration,
    /// How many failures in a row make it unhealthy.
    #[serde(default = "retries")]
    pub retries: u32,
}

const fn interval() -> Duration {
    Duration::from_secs(30)
}

const fn timeout() -> Duration {
    Duration::from_secs(10)
}

const fn start_period() -> Duration {
    Duration::from_secs(5)
}

const fn retries() -> u32 {
    3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_ask_for_nothing_unless_they_say_so() {
        let empty = serde_json::to_string(&ContainerOptions::default()).expect("plain");
        assert_eq!(empty, "{}");
        let unknown = serde_json::from_str::<ContainerOptions>(r#"{"privileged": true}"#);
        assert!(
            unknown.is_err(),
            "an option that does not exist is not ignored"
        );
    }

    #[test]
    fn own_options_come_before_those_of_the_base_and_lists_are_added() {
        let own = ContainerOptions {
            image: Some("own".to_owned()),
            dns: vec!["192.0.2.1".to_owned()],
            ..ContainerOptions::default()
        };
        let base = ContainerOptions {
            image: Some("base".to_owned()),
            network: Some("none".to_owned()),
            dns: vec!["192.0.2.2".to_owned()],
            ..ContainerOptions::default()
        };
        let both = own.over(base);
        assert_eq!(both.image.as_deref(), Some("own"));
        assert_eq!(both.network.as_deref(), Some("none"));
        assert_eq!(both.dns, ["192.0.2.2", "192.0.2.1"]);
    }

    #[test]
    fn a_volume_is_read_only_unless_it_says_so() {
        let read = |text: &str| text.parse::<VolumeMount>();
        let mount = |write| VolumeMount {
            host: "/a".into(),
            container: "/b".into(),
            write,
        };
        assert_eq!(read("/a:/b"), Ok(mount(false)));
        assert_eq!(read("/a:/b:ro"), Ok(mount(false)));
        assert_eq!(read("/a:/b:rw"), Ok(mount(true)));
        for bad in ["", "/a", "/a:", ":/b", "/a:/b:rx", "/a:/b:rw:x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_health_check_has_the_usual_times() {
        let check: ContainerHealth =
            serde_json::from_str(r#"{"command": ["true"]}"#).expect("valid");
        let seconds = [check.interval, check.timeout, check.start_period].map(|it| it.as_secs());
        assert_eq!((seconds, check.retries), ([30, 10, 5], 3));
    }
}
