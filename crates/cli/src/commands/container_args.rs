//! Containers: the flags of every verb that starts a command.

use std::path::PathBuf;

use clap::Args;
use ostler_model::{BackendName, ByteString, ContainerOptions, VolumeMount};

use super::value_parsers;

/// The flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Containers")]
pub(crate) struct ContainerArgs {
    /// What runs it: local, or container, which is isolation level container
    #[arg(long, value_name = "NAME", value_parser = value_parsers::BACKEND, hide_possible_values = true)]
    backend: Option<BackendName>,
    /// Run it in a container of this image, which must be here; else that of container.image
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Mount this too, as in /srv/data:/data, or /srv/data:/data:rw for writing; repeatable
    #[arg(long, value_name = "HOST:CONTAINER[:rw]")]
    volume: Vec<VolumeMount>,
    /// Who it runs as in its container: name, uid, name:group or uid:gid
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// A capability that it keeps, such as NET_RAW; repeatable
    #[arg(long, value_name = "CAPABILITY")]
    cap_add: Vec<String>,
    /// A name server of its container; repeatable
    #[arg(long, value_name = "ADDRESS")]
    dns: Vec<String>,
    /// The proxy of its container, as in http://proxy.example:3128
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Let it write nowhere but to its workspace, volumes and /tmp, whatever the settings say
    #[arg(long, conflicts_with = "writable_root")]
    read_only: bool,
    /// Let it write to the file system of its container
    #[arg(long)]
    writable_root: bool,
    /// Hand secrets over as files in /run/secrets
    #[arg(long)]
    secret_files: bool,
    /// Give it a container that nothing else runs in
    #[arg(long)]
    no_reuse: bool,
}

impl ContainerArgs {
    /// The backend that was named.
    pub(super) const fn backend(&self) -> Option<&BackendName> {
        self.backend.as_ref()
    }

    /// The first flag that only a container has a meaning for.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        let flags = [
            (self.image.is_some(), "--image"),
            (!self.volume.is_empty(), "--volume"),
            (self.user.is_some(), "--user"),
            (!self.cap_add.is_empty(), "--cap-add"),
            (!self.dns.is_empty(), "--dns"),
            (self.proxy.is_some(), "--proxy"),
            (self.read_only, "--read-only"),
            (self.writable_root, "--writable-root"),
            (self.secret_files, "--secret-files"),
            (self.no_reuse, "--no-reuse"),
        ];
        flags.into_iter().find(|(is, _)| *is).map(|(_, flag)| flag)
    }

    /// The options, with the network and the workspace that flags of every level name.
    pub(super) fn into_options(
        self,
        network: Option<String>,
        workspace: Option<ByteString>,
    ) -> ContainerOptions {
        let read_only = self.read_only.then_some(true);
        let absolute = |volume: VolumeMount| VolumeMount {
            host: absolute_path(volume.host.as_path().to_owned()),
            ..volume
        };
        ContainerOptions {
            image: self.image,
            workspace,
            network,
            dns: self.dns,
            proxy: self.proxy,
            read_only_root: read_only.or_else(|| self.writable_root.then_some(false)),
            user: self.user,
            cap_add: self.cap_add,
            volumes: self.volume.into_iter().map(absolute).collect(),
            secret_files: self.secret_files.then_some(true),
            reuse: self.no_reuse.then_some(false),
            ..ContainerOptions::default()
        }
    }
}

/// A path, which may be relative to the working directory.
pub(super) fn absolute_path(path: PathBuf) -> ByteString {
    ByteString::from(std::path::absolute(&path).unwrap_or(path))
}
