//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// Names the binary to be used instead of one built here.
const BINARY: &str = "OSTLER_BIN";

/// How the binary is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// With the tests, and checked at run time for overflows.
    Dev,
    /// As it ships, and as it is measured.
    Dist,
}

impl Profile {
    /// Where cargo puts what it builds, below the target directory.
    const fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Dist => "dist",
        }
    }
}

/// The workspace this binary was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// What cargo says of it, without third-party packages' own dependencies.
    pub(crate) metadata: Metadata,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .no_deps()
            .exec()
            .context("cargo metadata does not answer")?;
        Ok(Self { metadata })
    }

    /// The repository's root.
    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// Where setup puts what it installs.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target().join("tools")
    }

    /// The Python interpreter with the tests' packages.
    pub(crate) fn python(&self) -> PathBuf {
        self.target().join("venv/bin/python")
    }

    /// Where the MCP clients and suites from npm are.
    pub(crate) fn clients(&self) -> PathBuf {
        self.root().join("tests/clients")
    }

    /// Whether the binary to be used was built by somebody else.
    pub(crate) fn is_binary_named(&self) -> bool {
        std::env::var_os(BINARY).is_some()
    }

    /// The binary of a profile, or the one that `OSTLER_BIN` names.
    pub(crate) fn ostler(&self, profile: Profile) -> PathBuf {
        let named = std::env::var_os(BINARY).map(PathBuf::from);
        named.unwrap_or_else(|| self.target().join(profile.directory()).join("ostler"))
    }
}
