//! The container engine of a [`FakeBackend`](crate::fake_backend::FakeBackend): there is none until a
//! test says so.

use ostler_backend::ContainerError;
use ostler_model::{Capability, CapabilitySet, ContainerSpec, LimitBackend};
use parking_lot::Mutex;

/// What is known of containers.
#[derive(Debug, Default)]
pub(crate) struct FakeContainers {
    capabilities: Mutex<Option<CapabilitySet>>,
    problem: Mutex<Option<ContainerError>>,
    checked: Mutex<Vec<ContainerSpec>>,
}

/// What containers of an ordinary engine enforce.
#[must_use]
pub fn container_capabilities() -> CapabilitySet {
    CapabilitySet {
        root: false,
        present: vec![
            Capability::CleanEnvironment,
            Capability::OwnGroup,
            Capability::TreeKill,
            Capability::OwnCgroup,
            Capability::PidsLimit,
            Capability::MemoryLimit,
            Capability::CpuLimit,
            Capability::ProcessLimits,
            Capability::DiskLimit,
            Capability::Durable,
            Capability::NoNewPrivileges,
            Capability::Namespaces,
            Capability::OwnRoot,
            Capability::FreshProc,
            Capability::NoCapabilities,
            Capability::Seccomp,
            Capability::NetworkNamespace,
        ],
        missing: Vec::new(),
        backend: LimitBackend::CgroupV2,
    }
}

impl FakeContainers {
    pub(crate) fn set_capabilities(&self, capabilities: Option<CapabilitySet>) {
        *self.capabilities.lock() = capabilities;
    }

    pub(crate) fn capabilities(&self) -> Option<CapabilitySet> {
        self.capabilities.lock().clone()
    }

    pub(crate) fn set_problem(&self, problem: Option<ContainerError>) {
        *self.problem.lock() = problem;
    }

    pub(crate) fn checked(&self) -> Vec<ContainerSpec> {
        self.checked.lock().clone()
    }

    pub(crate) fn check(&self, spec: &ContainerSpec) -> Result<(), ContainerError> {
        self.checked.lock().push(spec.clone());
        match self.problem.lock().clone() {
            Some(problem) => Err(problem),
            None if self.capabilities.lock().is_none() => Err(ContainerError::NoEngine {
                tried: vec!["/run/docker.sock (no such file)".to_owned()],
            }),
            None => Ok(()),
        }
    }
}
