//! Definitions as they are stored and hashed: the fields and their order are older than
//! [`StartOptions`], and a stored fingerprint that no longer matched would restart services.

use ostler_model::{
    ByteString, Capability, Command, Dependency, HealthRule, IsolationLevel, Limits, NetworkAccess,
    PortForward, PortRequest, ReadyCondition, RestartPolicy, SandboxOptions, StartOptions,
    TermSize,
};
use serde::{Deserialize, Serialize};

use super::definition::ServiceDefinition;

/// A stored definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DefinitionForm {
    name: String,
    command: Command,
    cwd: ByteString,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<(ByteString, ByteString)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inherit_env: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<IsolationLevel>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    confine: SandboxForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terminal: Option<TermSize>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready_when: Option<ReadyCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready_pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fail_pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready_timeout_ms: Option<u64>,
    restart: RestartPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    health: Option<HealthRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<Dependency>,
    #[serde(default)]
    port: PortRequest,
    /// The options that have no field of their own above.
    #[serde(flatten)]
    further: StartOptions,
}

/// Sandbox options as definitions store them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct SandboxForm {
    workspace: Option<ByteString>,
    overlay: bool,
    network: Option<NetworkAccess>,
    read: Vec<ByteString>,
    write: Vec<ByteString>,
    forwards: Vec<PortForward>,
    allow_degraded: Vec<Capability>,
}

impl From<ServiceDefinition> for DefinitionForm {
    fn from(definition: ServiceDefinition) -> Self {
        let mut further = definition.options;
        Self {
            name: definition.name,
            command: definition.command,
            cwd: definition.cwd,
            env: std::mem::take(&mut further.set_env),
            inherit_env: further.inherit_env.take(),
            secrets: std::mem::take(&mut further.secrets),
            level: further.level.take(),
            limits: std::mem::take(&mut further.limits),
            confine: std::mem::take(&mut further.sandbox).into(),
            terminal: further.pty.take(),
            description: std::mem::take(&mut further.description),
            ready_when: definition.ready_when,
            ready_pattern: definition.ready_pattern,
            fail_pattern: definition.fail_pattern,
            ready_timeout_ms: definition.ready_timeout_ms,
            restart: definition.restart,
            health: definition.health,
            depends_on: definition.depends_on,
            port: definition.port,
            further,
        }
    }
}

impl From<DefinitionForm> for ServiceDefinition {
    fn from(form: DefinitionForm) -> Self {
        Self {
            name: form.name,
            command: form.command,
            cwd: form.cwd,
            options: StartOptions {
                set_env: form.env,
                inherit_env: form.inherit_env,
                secrets: form.secrets,
                level: form.level,
                limits: form.limits,
                sandbox: form.confine.into(),
                pty: form.terminal,
                description: form.description,
                ..form.further
            },
            ready_when: form.ready_when,
            ready_pattern: form.ready_pattern,
            fail_pattern: form.fail_pattern,
            ready_timeout_ms: form.ready_timeout_ms,
            restart: form.restart,
            health: form.health,
            depends_on: form.depends_on,
            port: form.port,
        }
    }
}

impl From<SandboxOptions> for SandboxForm {
    fn from(options: SandboxOptions) -> Self {
        Self {
            workspace: options.workspace,
            overlay: options.overlay,
            network: options.network,
            read: options.read,
            write: options.write,
            forwards: options.forwards,
            allow_degraded: options.allow_degraded,
        }
    }
}

impl From<SandboxForm> for SandboxOptions {
    fn from(form: SandboxForm) -> Self {
        Self {
            workspace: form.workspace,
            overlay: form.overlay,
            network: form.network,
            read: form.read,
            write: form.write,
            forwards: form.forwards,
            allow_degraded: form.allow_degraded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As versions before `StartOptions` stored them.
    const PLAIN: &str = r#"{"name":"web","command":{"argv":{"program":"npm","args":["start"]}},"cwd":"/srv","limits":{},"confine":{"workspace":null,"overlay":false,"network":null,"read":[],"write":[],"forwards":[],"allow_degraded":[]},"restart":"never","port":"own"}"#;
    const FULL: &str = r#"{"name":"web","command":{"shell":{"shell":"/bin/sh","script":"npm start"}},"cwd":"/srv","env":[["A","1"]],"inherit_env":true,"secrets":["TOKEN"],"level":"high","limits":{"pids":5},"confine":{"workspace":"/srv","overlay":true,"network":{"allow_list":{"hosts":[]}},"read":["/a"],"write":[],"forwards":[{"host":8080,"inside":80}],"allow_degraded":["landlock"]},"terminal":{"cols":120,"rows":40},"description":"the web","ready_when":"listening","ready_timeout_ms":5000,"restart":{"always":{"max":3}},"depends_on":[{"name":"db","condition":"ready"}],"port":{"fixed":3000}}"#;

    #[test]
    fn stored_definitions_of_before_are_read_and_written_the_same() {
        for stored in [PLAIN, FULL] {
            let definition: ServiceDefinition = serde_json::from_str(stored).expect("readable");
            let written = serde_json::to_string(&definition).expect("writable");
            assert_eq!(written, stored);
        }
    }

    #[test]
    fn further_options_are_stored_beside_the_old_fields() {
        let mut definition: ServiceDefinition = serde_json::from_str(FULL).expect("readable");
        definition.options.encoding = Some("auto".to_owned());
        let written = serde_json::to_string(&definition).expect("writable");
        let read: ServiceDefinition = serde_json::from_str(&written).expect("readable");
        assert_eq!(read, definition);
    }
}
