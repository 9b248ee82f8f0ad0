//! Isolation: the flags of every verb that starts a command, and what is reported about isolation
//! on standard error.

use std::path::PathBuf;

use clap::Args;
use ostler_api::ExecutionBody;
use ostler_model::{
    ByteString, Capability, IsolationLevel, Limits, NetworkAccess, PortForward, SandboxOptions,
    StartOptions,
};
use ostler_render::isolation;

use super::value_parsers;
use crate::config::Config;
use crate::error::CommandError;

/// The flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Isolation")]
pub(crate) struct IsolationArgs {
    /// How far to wall it off: basic, medium, high; unless given high where a flag below needs
    /// it, else `isolation.default`
    #[arg(long, value_name = "LEVEL", value_parser = value_parsers::isolation_level)]
    isolation: Option<IsolationLevel>,
    /// What it reaches, at level high: none, full, or the only hosts it reaches, as in example.org,10.0.0.5:22;
    /// repeatable
    #[arg(long, value_name = "HOSTS")]
    network: Vec<String>,
    /// At level high: the directory it may write to; its working directory unless given
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
    /// Run also where this wall or limit cannot be had, such as landlock or memory_limit; repeatable
    #[arg(long, value_name = "WALL", value_delimiter = ',', value_parser = value_parsers::capability)]
    allow_degraded: Vec<Capability>,
    /// A secret to hand over as a variable of this name; repeatable
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// The approval a person gave, where a rule asked for one
    #[arg(long, value_name = "ID")]
    approval: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
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
    /// For a text that is not a host or not an amount.
    pub(crate) fn into_options(self, config: &Config) -> Result<StartOptions, CommandError> {
        let network = match self.network[..] {
            [] => None,
            _ => Some(value_parsers::network(&self.network.join(","))?),
        };
        let level = self.effective_level(network.as_ref())?;
        let absolute = |path: PathBuf| ByteString::from(std::path::absolute(&path).unwrap_or(path));
        Ok(StartOptions {
            level: level.or(config.client_policy().isolation),
            sandbox: SandboxOptions {
                workspace: self.workspace.map(absolute),
                overlay: self.overlay,
                network,
                read: self.read.into_iter().map(absolute).collect(),
                write: self.write.into_iter().map(absolute).collect(),
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
    /// The requested level; restrictions that only level high has imply it.
    ///
    /// # Errors
    /// For such a restriction with a lower level.
    fn effective_level(
        &self,
        network: Option<&NetworkAccess>,
    ) -> Result<Option<IsolationLevel>, CommandError> {
        let high_only = [
            (
                network.is_some_and(|it| *it != NetworkAccess::Full),
                "--network",
            ),
            (self.workspace.is_some(), "--workspace"),
            (self.overlay, "--overlay"),
            (!self.read.is_empty(), "--read"),
            (!self.write.is_empty(), "--write"),
            (!self.forward.is_empty(), "--forward"),
        ];
        let Some((_, flag)) = high_only.iter().find(|(is, _)| *is) else {
            return Ok(self.isolation);
        };
        match self.isolation {
            Some(level) if level < IsolationLevel::High => Err(CommandError::value(format!(
                "{flag}: there are walls for it only at isolation level high, not at {level}"
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
