//! Isolation: the flags of every verb that starts a command, and what is reported about isolation
//! on standard error.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use ostler_api::ExecutionBody;
use ostler_model::{
    BackendName, ByteString, Capability, IsolationLevel, Limits, NetworkAccess, PortForward,
    SandboxOptions, StartOptions,
};
use ostler_render::isolation;

use super::container_args::{ContainerArgs, absolute_path};
use super::value_parsers;
use crate::config::Config;
use crate::error::CommandError;

/// The flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Isolation")]
pub(crate) struct IsolationArgs {
    /// Isolation level: basic, medium, high, container; unless given, high or container where a
    /// flag below needs it, else `isolation.default`
    #[arg(long, value_name = "LEVEL", value_parser = value_parsers::ISOLATION_LEVEL, hide_possible_values = true)]
    isolation: Option<IsolationLevel>,
    /// What it reaches, at level high: none, full, or the only hosts it reaches, as in example.org,10.0.0.5:22;
    /// repeatable. In a container: bridge, none, or another network by name
    #[arg(long, value_name = "HOSTS")]
    network: Vec<String>,
    /// At level high and in a container: the directory it may write to; its working directory unless
    /// given
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// At level high: keep its writes apart, to be committed or discarded afterwards
    #[arg(long)]
    overlay: bool,
    /// At level high: show this path too, read-only; repeatable
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// At level high: show this path too, writable; repeatable
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// At level high: this port of 127.0.0.1 leads to one inside, as in 8080 or 8080:80; repeatable
    #[arg(long, value_name = "PORT[:INSIDE]")]
    forward: Vec<PortForward>,
    /// Run also where this restriction or limit cannot be had, such as landlock or memory_limit; repeatable
    #[arg(long, value_name = "CAPABILITY", value_delimiter = ',', value_parser = value_parsers::CAPABILITY, hide_possible_values = true)]
    allow_degraded: Vec<Capability>,
    /// A secret to hand over as a variable of this name; repeatable
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// The approval a person gave, where a rule asked for one
    #[arg(long, value_name = "ID")]
    approval: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    container: ContainerArgs,
}

/// Limits of a command and all it starts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Memory, for example 512M
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,
    /// Cores, for example 0.5
    #[arg(long, value_name = "CORES")]
    cpus: Option<String>,
    /// Processes and threads
    #[arg(long, value_name = "N")]
    pids: Option<String>,
    /// Growth of its workspace, for example 1G
    #[arg(long, value_name = "BYTES")]
    disk: Option<String>,
    /// Open files of each process
    #[arg(long, value_name = "N")]
    files: Option<String>,
    /// The largest file it may write, for example 100M
    #[arg(long, value_name = "BYTES")]
    file_size: Option<String>,
}

impl IsolationArgs {
    /// Parses the flags; paths may be relative to the working directory.
    ///
    /// # Errors
    /// For a text that is not a host or not an amount, and a path to be shown that is not there.
    pub(crate) fn into_options(self, config: &Config) -> Result<StartOptions, CommandError> {
        if self.is_for_container(config)? {
            return self.into_container_options();
        }
        let network = match self.network[..] {
            [] => None,
            _ => Some(value_parsers::network(&self.network.join(","))?),
        };
        let level = self.effective_level(network.as_ref())?;
        let absolute = absolute_path;
        Ok(StartOptions {
            level: level.or(config.client_policy().isolation),
            backend: self.container.backend().cloned(),
            sandbox: SandboxOptions {
                workspace: self.workspace.map(absolute),
                overlay: self.overlay,
                network,
                read: existing_paths("--read", self.read)?,
                write: existing_paths("--write", self.write)?,
                forwards: self.forward,
                allow_degraded: self.allow_degraded,
            },
            limits: self.limits.into_limits()?,
            secrets: self.secret,
            approval: self.approval,
            ..StartOptions::default()
        })
    }
}

impl IsolationArgs {
    /// Whether the command is to run in a container: by its level, its backend, a flag that only a
    /// container has a meaning for, or the setting.
    ///
    /// # Errors
    /// For such a flag with another level or backend.
    fn is_for_container(&self, config: &Config) -> Result<bool, CommandError> {
        let is_container = *BackendName::container().0 == *self.backend_name();
        if let Some(flag) = self.container.first_flag() {
            let other_level = self.isolation.filter(|it| *it != IsolationLevel::Container);
            let other_backend = self.container.backend().is_some() && !is_container;
            if other_level.is_some() || other_backend {
                return Err(CommandError::value(format!(
                    "{flag}: it has a meaning only at isolation level container"
                ))
                .with_hint(format!(
                    "write --isolation container; {flag} alone means that too"
                )));
            }
            return Ok(true);
        }
        Ok(match (self.isolation, self.container.backend()) {
            (Some(level), _) => level == IsolationLevel::Container,
            (None, Some(_)) => is_container,
            (None, None) => self.high_only_flag().is_none() && config.defaults_to_containers(),
        })
    }

    fn backend_name(&self) -> &str {
        self.container.backend().map_or("", |it| it.0.as_str())
    }

    /// The options of a command in a container.
    ///
    /// # Errors
    /// For a flag that only level high has a meaning for.
    fn into_container_options(self) -> Result<StartOptions, CommandError> {
        if let Some(flag) = self.high_only_flag() {
            return Err(CommandError::value(format!(
                "{flag}: it is enforced only at isolation level high, not at container"
            )));
        }
        let network = (!self.network.is_empty()).then(|| self.network.join(","));
        let backend = self.container.backend().cloned();
        let workspace = self.workspace.map(absolute_path);
        Ok(StartOptions {
            level: Some(IsolationLevel::Container),
            backend,
            container: Box::new(self.container.into_options(network, workspace)),
            sandbox: SandboxOptions {
                allow_degraded: self.allow_degraded,
                ..SandboxOptions::default()
            },
            limits: self.limits.into_limits()?,
            secrets: self.secret,
            approval: self.approval,
            ..StartOptions::default()
        })
    }

    /// The first flag that level high has a meaning for, and no other level.
    fn high_only_flag(&self) -> Option<&'static str> {
        let flags = [
            (self.overlay, "--overlay"),
            (!self.read.is_empty(), "--read"),
            (!self.write.is_empty(), "--write"),
            (!self.forward.is_empty(), "--forward"),
        ];
        flags.into_iter().find(|(is, _)| *is).map(|(_, flag)| flag)
    }

    /// The requested level; restrictions that only level high has imply it.
    ///
    /// # Errors
    /// For such a restriction with a lower level.
    fn effective_level(
        &self,
        network: Option<&NetworkAccess>,
    ) -> Result<Option<IsolationLevel>, CommandError> {
        let is_restricted = network.is_some_and(|it| *it != NetworkAccess::Full);
        let flag = if is_restricted {
            Some("--network")
        } else if self.workspace.is_some() {
            Some("--workspace")
        } else {
            self.high_only_flag()
        };
        let Some(flag) = flag else {
            return Ok(self.isolation);
        };
        match self.isolation {
            Some(level) if level < IsolationLevel::High => Err(CommandError::value(format!(
                "{flag}: it is enforced only at isolation level high, not at {level}"
            ))
            .with_hint(format!(
                "write --isolation high; {flag} alone means that too"
            ))),
            requested => Ok(requested.or(Some(IsolationLevel::High))),
        }
    }
}

impl LimitArgs {
    fn into_limits(self) -> Result<Limits, CommandError> {
        let arguments = [
            ("memory", "--memory", self.memory),
            ("cpus", "--cpus", self.cpus),
            ("pids", "--pids", self.pids),
            ("disk", "--disk", self.disk),
            ("files", "--files", self.files),
            ("file_size", "--file-size", self.file_size),
        ];
        let mut limits = Limits::default();
        for (name, flag, value) in arguments {
            let Some(value) = value else { continue };
            limits.set(name, &value).map_err(|error| {
                CommandError::value(format!("{flag} {value}: allowed are {}", error.allowed))
            })?;
        }
        Ok(limits)
    }
}

/// Absolute paths of what is to be shown; what is not there would be left out in silence.
fn existing_paths(flag: &str, paths: Vec<PathBuf>) -> Result<Vec<ByteString>, CommandError> {
    let missing = paths.iter().find(|path| {
        let error = path.symlink_metadata().err().map(|error| error.kind());
        matches!(error, Some(ErrorKind::NotFound | ErrorKind::NotADirectory))
    });
    if let Some(path) = missing {
        let message = format!("{flag} '{}': no such file or directory", path.display());
        return Err(CommandError::value(message).with_hint("give a path that is there"));
    }
    Ok(paths.into_iter().map(absolute_path).collect())
}

/// Warns about missing restrictions at once, before there is output.
pub(crate) fn warn_missing(info: &ExecutionBody) {
    let isolation = &info.isolation;
    if !isolation.warnings.is_empty() {
        crate::print_note(&format!(
            "{}: isolation {} is in force WITHOUT {}",
            info.id,
            isolation.requested,
            isolation::describe_missing(&isolation.warnings)
        ));
    }
}
