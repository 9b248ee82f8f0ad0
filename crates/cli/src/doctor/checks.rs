//! Directories, keeper, cgroups, secrets and the daemon.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hyper::Method;
use ostler_model::{Abilities, Ability, LimitBackend};
use ostler_server::wire::HealthBody;
use serde::Serialize;

use crate::client::Body;
use crate::config::check_secrets;
use crate::daemon::{other_state, unreachable};
use crate::setup::Setup;

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    pub(super) what: &'static str,
    pub(super) ok: bool,
    pub(super) said: String,
}

/// All of them.
pub(super) async fn all(setup: &Setup, abilities: &Abilities) -> Vec<Check> {
    vec![
        configuration(setup),
        allow_list(setup),
        directory("state directory", &setup.places.state),
        directory("runtime directory", &setup.places.runtime),
        keeper(abilities),
        cgroups(abilities),
        secrets(setup),
        daemon(setup).await,
    ]
}

fn configuration(setup: &Setup) -> Check {
    let problems = setup.problems.iter();
    let said: Vec<String> = problems
        .map(|problem| problem.to_string().replace('\n', "; "))
        .collect();
    Check {
        what: "configuration",
        ok: said.is_empty(),
        said: if said.is_empty() {
            "every value can be".to_owned()
        } else {
            said.join("; ")
        },
    }
}

/// A list is as narrow as what is on it; that is told, and no problem of the machine.
fn allow_list(setup: &Setup) -> Check {
    let warnings = setup.config.warnings();
    Check {
        what: "allow list",
        ok: true,
        said: if warnings.is_empty() {
            "nothing on it is known to run other programs, or there is none".to_owned()
        } else {
            format!("warning: {}", warnings.join("; "))
        },
    }
}

fn directory(what: &'static str, path: &Path) -> Check {
    let us = rustix::process::geteuid().as_raw();
    let (ok, said) = match fs::metadata(path) {
        Ok(meta) if !meta.is_dir() => (false, "it is no directory".to_owned()),
        Ok(meta) if meta.uid() != us => (
            false,
            format!("it belongs to user {}, not to user {us}", meta.uid()),
        ),
        Ok(meta) if meta.mode() & 0o077 != 0 => (
            true,
            "open to others; the daemon closes it when it starts".to_owned(),
        ),
        Ok(_) => (true, String::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (true, "not there yet; made at the first start".to_owned())
        }
        Err(error) => (false, error.to_string()),
    };
    let said = match said.as_str() {
        "" => path.display().to_string(),
        said => format!("{}: {said}", path.display()),
    };
    Check { what, ok, said }
}

fn keeper(abilities: &Abilities) -> Check {
    let ok = abilities.has(Ability::Durable);
    let said = if ok {
        "commands go on when the daemon ends"
    } else {
        "commands end with the daemon"
    };
    Check {
        what: "keeper",
        ok,
        said: said.to_owned(),
    }
}

fn cgroups(abilities: &Abilities) -> Check {
    let backend = match abilities.backend {
        LimitBackend::CgroupV2 => "limits by cgroup v2",
        LimitBackend::CgroupV1 => "limits by cgroup v1, kill by v2 where it is mounted",
        LimitBackend::Rlimits => "limits of single processes only (rlimits)",
        LimitBackend::None => "no limits",
    };
    let ok = abilities.has(Ability::OwnCgroup);
    let reason = abilities
        .missing
        .iter()
        .find(|it| it.ability == Ability::OwnCgroup);
    let said = match reason {
        Some(missing) => format!("{backend}; {}", missing.reason),
        None => backend.to_owned(),
    };
    Check {
        what: "cgroup delegation",
        ok,
        said,
    }
}

fn secrets(setup: &Setup) -> Check {
    let (ok, said) = match setup.config.secrets_file() {
        None => (true, "no file of secrets".to_owned()),
        Some(path) => match check_secrets(&path) {
            Ok(()) if path.exists() => (true, path.display().to_string()),
            Ok(()) => (true, format!("{}: not there", path.display())),
            Err(error) => (false, error.to_string().replace('\n', "; ")),
        },
    };
    Check {
        what: "secrets",
        ok,
        said,
    }
}

async fn daemon(setup: &Setup) -> Check {
    let client = setup.client_of_running();
    let asked = client.call::<HealthBody>(Method::GET, "/api/v1/health", Body::None);
    let (ok, said) = match asked.await {
        Ok(health) if health.version != env!("CARGO_PKG_VERSION") => (
            false,
            format!(
                "version {} runs, this is {}; `ostler shutdown` lets the next command start it \
                 anew",
                health.version,
                env!("CARGO_PKG_VERSION")
            ),
        ),
        Ok(health) => match other_state(&setup.places, &health.state_dir) {
            Some(other) => (false, other),
            None => (true, format!("runs as process {}", health.pid)),
        },
        Err(_) => match unreachable(&setup.places) {
            Some(said) => (false, said),
            None => (true, "not running; started on demand".to_owned()),
        },
    };
    Check {
        what: "daemon",
        ok,
        said,
    }
}
