//! Names that become part of a request's path: images, networks.

use ostler_backend::ContainerError;

/// The longest name of an image or network, in bytes.
const NAME_BYTES: usize = 512;
/// The ways to name a namespace that is not the container's own.
const SHARED_NETWORKS: [&str; 3] = ["host", "container:", "ns:"];

/// Whether this can be the name or id of an image; another text could name another resource of the
/// engine.
pub(crate) fn is_image(name: &str) -> bool {
    is_name(name, b"._-/:@+") && !name.split('/').any(|part| part.is_empty() || part == "..")
}

/// Whether this can be the name of a network.
pub(crate) fn is_network(name: &str) -> bool {
    is_name(name, b"._-")
}

/// Refuses a network that is that of the host or of another container.
///
/// # Errors
/// With its name.
pub(crate) fn check_own_network(name: &str) -> Result<(), ContainerError> {
    if !is_shared_network(name) {
        return Ok(());
    }
    let reason = format!("'{name}' is the network of the host or of another container");
    Err(ContainerError::Refused(reason))
}

fn is_shared_network(name: &str) -> bool {
    SHARED_NETWORKS.iter().any(|it| {
        if it.ends_with(':') {
            name.starts_with(it)
        } else {
            name == *it
        }
    })
}

fn is_name(name: &str, marks: &[u8]) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || marks.contains(&byte);
    let first = name.bytes().next();
    name.len() <= NAME_BYTES
        && first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_image_leads_nowhere_else() {
        for name in [
            "busybox",
            "r.example:5000/a/b:1.2",
            "sha256:00ff",
            "a@sha256:00",
        ] {
            assert!(is_image(name), "{name}");
        }
        for name in [
            "",
            "../containers/x",
            "a/../b",
            "a b",
            "a?b",
            "/a",
            "a//b",
            "-a",
            "a%2e",
        ] {
            assert!(!is_image(name), "{name}");
        }
    }

    #[test]
    fn the_networks_of_others_are_recognised() {
        for name in ["host", "container:web", "ns:/proc/1/ns/net"] {
            assert!(is_shared_network(name), "{name}");
        }
        for name in ["bridge", "none", "hosting", "containers"] {
            assert!(is_network(name) && !is_shared_network(name), "{name}");
        }
    }
}
