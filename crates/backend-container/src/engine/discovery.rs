//! Where the socket of a container engine is looked for.

use std::path::{Path, PathBuf};

/// The scheme of a unix socket in `DOCKER_HOST` and `CONTAINER_HOST`.
const UNIX_SCHEME: &str = "unix://";
/// Docker's socket.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";
/// Docker's socket of a rootless engine, in the runtime directory.
const DOCKER_USER_SOCKET: &str = "docker.sock";
/// Podman's socket.
const PODMAN_SOCKET: &str = "/run/podman/podman.sock";
/// Podman's socket of a rootless engine, in the runtime directory.
const PODMAN_USER_SOCKET: &str = "podman/podman.sock";

/// What decides which socket is used. The first of these that is set excludes the others: whoever
/// names an engine does not want another one where that is away.
///
/// 1. the setting;
/// 2. `DOCKER_HOST`, then `CONTAINER_HOST`;
/// 3. the usual sockets of Docker and Podman, those of the machine before those of the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EngineDiscovery {
    /// The setting: a path, or a URL of the scheme `unix`.
    pub configured: Option<String>,
    /// The value of `DOCKER_HOST`.
    pub docker_host: Option<String>,
    /// The value of `CONTAINER_HOST`.
    pub container_host: Option<String>,
    /// The value of `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
}

/// One socket to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SocketCandidate {
    /// A socket of this machine.
    Socket(PathBuf),
    /// A URL of another scheme, as it was given.
    Unsupported(String),
}

impl EngineDiscovery {
    /// The sockets to try, in order.
    pub(crate) fn candidates(&self) -> Vec<SocketCandidate> {
        let is_set = |it: &&String| !it.is_empty();
        let configured = self.configured.as_ref().filter(is_set);
        if let Some(configured) = configured {
            return vec![candidate(configured)];
        }
        let hosts = [&self.docker_host, &self.container_host];
        let hosts = hosts.into_iter().flatten().filter(is_set);
        let hosts: Vec<_> = hosts.map(|host| candidate(host)).collect();
        if !hosts.is_empty() {
            return hosts;
        }
        let of_user = |name| self.runtime_dir.as_ref().map(|dir| dir.join(name));
        let usual = [
            Some(PathBuf::from(DOCKER_SOCKET)),
            of_user(DOCKER_USER_SOCKET),
            Some(PathBuf::from(PODMAN_SOCKET)),
            of_user(PODMAN_USER_SOCKET),
        ];
        let usual = usual.into_iter().flatten();
        usual.map(SocketCandidate::Socket).collect()
    }
}

fn candidate(text: &str) -> SocketCandidate {
    let path = text.strip_prefix(UNIX_SCHEME).unwrap_or(text);
    if Path::new(path).is_absolute() {
        SocketCandidate::Socket(PathBuf::from(path))
    } else {
        SocketCandidate::Unsupported(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(path: &str) -> SocketCandidate {
        SocketCandidate::Socket(PathBuf::from(path))
    }

    #[test]
    fn whoever_names_an_engine_gets_that_one() {
        let mut discovery = EngineDiscovery {
            configured: Some("/srv/engine.sock".to_owned()),
            docker_host: Some("unix:///srv/docker.sock".to_owned()),
            container_host: Some("tcp://192.0.2.1:2375".to_owned()),
            runtime_dir: Some(PathBuf::from("/run/user/1000")),
        };
        assert_eq!(discovery.candidates(), [socket("/srv/engine.sock")]);
        discovery.configured = Some(String::new());
        assert_eq!(
            discovery.candidates(),
            [
                socket("/srv/docker.sock"),
                SocketCandidate::Unsupported("tcp://192.0.2.1:2375".to_owned())
            ]
        );
    }

    #[test]
    fn otherwise_the_usual_sockets_are_tried() {
        let mut discovery = EngineDiscovery {
            runtime_dir: Some(PathBuf::from("/run/user/1000")),
            ..EngineDiscovery::default()
        };
        assert_eq!(
            discovery.candidates(),
            [
                socket("/var/run/docker.sock"),
                socket("/run/user/1000/docker.sock"),
                socket("/run/podman/podman.sock"),
                socket("/run/user/1000/podman/podman.sock"),
            ]
        );
        discovery.runtime_dir = None;
        assert_eq!(discovery.candidates().len(), 2);
    }
}
