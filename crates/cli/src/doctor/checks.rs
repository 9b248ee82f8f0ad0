//! Checks of directories, zygote, cgroups, secrets and the daemon.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ostler_api::HealthBody;
use ostler_http::rest::HTTP_PROBLEM_HINT;
use ostler_model::{Capability, CapabilitySet, LimitBackend};
use serde::Serialize;

use crate::client::DaemonState;
use crate::config::check_secrets;
use crate::context::CliContext;
use crate::daemon::{state_dir_mismatch, unreachable_reason, unresponsive_daemon_message};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DoctorCheck {
    pub(super) what: &'static str,
    pub(super) ok: bool,
    #[serde(rename = "said")]
    pub(super) detail: String,
}

pub(super) async fn all(context: &CliContext, capabilities: &CapabilitySet) -> Vec<DoctorCheck> {
    vec![
        configuration(context),
        allow_list(context),
        directory("state directory", &context.dirs.state),
        directory("runtime directory", &context.dirs.runtime),
        zygote(capabilities),
        cgroups(capabilities),
        secrets(context),
        daemon(context).await,
    ]
}

fn configuration(context: &CliContext) -> DoctorCheck {
    let problems = context.problems.iter();
    let detail: Vec<String> = problems
        .map(|problem| problem.to_string().replace('\n', "; "))
        .collect();
    DoctorCheck {
        what: "configuration",
        ok: detail.is_empty(),
        detail: if detail.is_empty() {
            "every value can be".to_owned()
        } else {
            detail.join("; ")
        },
    }
}

/// Reports the allow list of commands: it is a setting, not a problem of the machine.
fn allow_list(context: &CliContext) -> DoctorCheck {
    let warnings = context.config.warnings();
    DoctorCheck {
        what: "allow list",
        ok: true,
        detail: if warnings.is_empty() {
            "nothing on it is known to run other programs, or there is none".to_owned()
        } else {
            format!("warning: {}", warnings.join("; "))
        },
    }
}

fn directory(what: &'static str, path: &Path) -> DoctorCheck {
    let us = rustix::process::geteuid().as_raw();
    let (ok, detail) = match fs::metadata(path) {
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
    let detail = match detail.as_str() {
        "" => path.display().to_string(),
        said => format!("{}: {said}", path.display()),
    };
    DoctorCheck { what, ok, detail }
}

fn zygote(capabilities: &CapabilitySet) -> DoctorCheck {
    let ok = capabilities.has(Capability::Durable);
    let detail = if ok {
        "commands go on when the daemon ends"
    } else {
        "commands end with the daemon"
    };
    DoctorCheck {
        what: "keeper",
        ok,
        detail: detail.to_owned(),
    }
}

fn cgroups(capabilities: &CapabilitySet) -> DoctorCheck {
    let backend = match capabilities.backend {
        LimitBackend::CgroupV2 => "limits by cgroup v2",
        LimitBackend::CgroupV1 => "limits by cgroup v1, kill by v2 where it is mounted",
        LimitBackend::Rlimits => "limits of single processes only (rlimits)",
        LimitBackend::None => "no limits",
    };
    let ok = capabilities.has(Capability::OwnCgroup);
    let reason = capabilities
        .missing
        .iter()
        .find(|it| it.ability == Capability::OwnCgroup);
    let detail = match reason {
        Some(missing) => format!("{backend}; {}", missing.reason),
        None => backend.to_owned(),
    };
    DoctorCheck {
        what: "cgroup delegation",
        ok,
        detail,
    }
}

fn secrets(context: &CliContext) -> DoctorCheck {
    let (ok, detail) = match context.config.secrets_file() {
        None => (true, "no file of secrets".to_owned()),
        Some(path) => match check_secrets(&path) {
            Ok(()) if path.exists() => (true, path.display().to_string()),
            Ok(()) => (true, format!("{}: not there", path.display())),
            Err(error) => (false, error.to_string().replace('\n', "; ")),
        },
    };
    DoctorCheck {
        what: "secrets",
        ok,
        detail,
    }
}

async fn daemon(context: &CliContext) -> DoctorCheck {
    let client = context.running_daemon_client();
    let (ok, detail) = match client.daemon_state().await {
        DaemonState::Answers(health) => running_daemon(context, &health),
        DaemonState::Silent => (false, unresponsive_daemon_message(&context.dirs)),
        DaemonState::Unreachable => match unreachable_reason(&context.dirs) {
            Some(message) => (false, message),
            None => (true, "not running; started on demand".to_owned()),
        },
    };
    DoctorCheck {
        what: "daemon",
        ok,
        detail,
    }
}

/// Whether the daemon is the right one and serves all that it is configured to.
fn running_daemon(context: &CliContext, health: &HealthBody) -> (bool, String) {
    let version = env!("CARGO_PKG_VERSION");
    if health.version != version {
        let message = format!(
            "version {} runs, this is {version}; `ostler shutdown` lets the next command start it \
             anew",
            health.version
        );
        return (false, message);
    }
    if let Some(other) = state_dir_mismatch(&context.dirs, &health.state_dir) {
        return (false, other);
    }
    let running = format!("runs as process {}", health.pid);
    match &health.http_problem {
        Some(problem) => (
            false,
            format!("{running}; HTTP is not served: {problem}; {HTTP_PROBLEM_HINT}"),
        ),
        None => (true, running),
    }
}
