//! What containers provide on this machine.

use ostler_backend::Backend;
use ostler_backend_container::EngineStatus;
use ostler_model::{Capability, IsolationLevel, IsolationRequest, Limits};

use super::checks::DoctorCheck;
use super::level_reports::{self, LevelReport};
use crate::containers;
use crate::context::CliContext;

/// What was found of a container engine.
#[derive(Debug)]
pub(super) struct ContainerReport {
    /// Its state, or why there is none.
    engine: Result<EngineStatus, String>,
    /// The image of containers, where a setting names one.
    image: Option<String>,
    /// Whether settings need containers.
    expected: bool,
}

impl ContainerReport {
    /// Asks the container engine.
    pub(super) async fn of(context: &CliContext, backend: &dyn Backend) -> Self {
        let image = context.config.container_image();
        let images = containers::image_store(&context.config, &context.env);
        let local = backend.capabilities();
        let status = images.status(&local, image.as_deref()).await;
        Self {
            engine: status.map_err(|error| error.to_string()),
            expected: image.is_some() || context.config.defaults_to_containers(),
            image,
        }
    }

    /// The level, with every limit that a container has.
    pub(super) fn level(&self) -> LevelReport {
        let level = IsolationLevel::Container;
        let status = match &self.engine {
            Ok(status) => status,
            Err(problem) => {
                return LevelReport {
                    level,
                    whole: false,
                    in_force: Vec::new(),
                    missing: Vec::new(),
                    problem: Some(problem.clone()),
                };
            }
        };
        let request = IsolationRequest {
            level,
            limits: Limits {
                pids: Some(1),
                memory_bytes: Some(1),
                cpu_millis: Some(1),
                disk_bytes: Some(1),
                ..Limits::default()
            },
            degradable: Capability::ALL.to_vec(),
            ..IsolationRequest::default()
        };
        level_reports::resolved(request, &status.capabilities)
    }

    /// The engine, and the image where one is named. An engine that nothing needs is no problem of
    /// the machine.
    pub(super) fn checks(&self) -> Vec<DoctorCheck> {
        let engine = DoctorCheck {
            what: "container engine",
            ok: self.engine.is_ok() || !self.expected,
            detail: match &self.engine {
                Ok(status) => describe(status),
                Err(problem) => problem.clone(),
            },
        };
        let present = self.engine.as_ref().ok().and_then(|it| it.has_image);
        let image = self
            .image
            .as_ref()
            .zip(present)
            .map(|(image, present)| DoctorCheck {
                what: "container image",
                ok: present,
                detail: match present {
                    true => format!("{image} is here"),
                    false => format!("{image} is not here; `ostler image pull {image}` fetches it"),
                },
            });
        std::iter::once(engine).chain(image).collect()
    }
}

fn describe(status: &EngineStatus) -> String {
    let facts = &status.facts;
    let user = if facts.rootless { ", without root" } else { "" };
    format!(
        "{} {} (API {}) at {}: storage {}, cgroup v{}{user}",
        facts.kind.as_str(),
        facts.version,
        facts.api_version,
        facts.socket.display(),
        facts.storage_driver,
        facts.cgroup_version,
    )
}

#[cfg(test)]
mod tests {
    use ostler_backend_container::{EngineFacts, EngineKind};
    use ostler_model::CapabilitySet;

    use super::*;

    fn report(engine: Result<EngineStatus, String>) -> ContainerReport {
        ContainerReport {
            engine,
            image: Some("work".to_owned()),
            expected: true,
        }
    }

    fn status(has_image: bool) -> EngineStatus {
        EngineStatus {
            facts: EngineFacts {
                socket: "/run/docker.sock".into(),
                kind: EngineKind::Docker,
                version: "27.5".to_owned(),
                api_version: "1.47".to_owned(),
                storage_driver: "overlay2".to_owned(),
                storage_filesystem: None,
                cgroup_driver: "systemd".to_owned(),
                cgroup_version: "2".to_owned(),
                rootless: true,
                remaps_users: false,
                limits_memory: true,
                limits_swap: true,
                limits_cpu: true,
                limits_pids: true,
                has_seccomp: true,
            },
            capabilities: CapabilitySet {
                present: Capability::ALL.to_vec(),
                ..CapabilitySet::default()
            },
            has_image: Some(has_image),
        }
    }

    #[test]
    fn an_engine_is_described_and_its_image_looked_for() {
        let found = report(Ok(status(false)));
        assert!(found.level().whole);
        let checks = found.checks();
        let expected = "Docker 27.5 (API 1.47) at /run/docker.sock: storage overlay2, cgroup v2, \
                        without root";
        assert_eq!(checks[0].detail, expected);
        assert!(checks[0].ok && !checks[1].ok);
        assert!(checks[1].detail.contains("ostler image pull work"));
        assert!(report(Ok(status(true))).checks()[1].ok);
    }

    #[test]
    fn no_engine_is_a_problem_where_settings_need_one() {
        let mut missing = report(Err("tried /run/docker.sock".to_owned()));
        assert!(!missing.level().whole);
        assert_eq!(
            missing.level().problem.as_deref(),
            Some("tried /run/docker.sock")
        );
        assert!(!missing.checks()[0].ok);
        missing.expected = false;
        assert!(missing.checks()[0].ok);
        assert_eq!(missing.checks().len(), 1);
    }
}
