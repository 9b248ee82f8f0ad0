//! Paths of the workspace.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The environment variable with the binary to be used instead of one built here.
const BINARY: &str = "OSTLER_BIN";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// With debug assertions and overflow checks, as the tests are built.
    Dev,
    /// As it ships, and as it is measured.
    Dist,
}

impl Profile {
    /// The directory of its artifacts below the target directory.
    const fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Dist => "dist",
        }
    }
}

/// The workspace that this program was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Its metadata, without dependencies of third-party packages.
    pub(crate) metadata: Metadata,
}

impl Workspace {
    /// Queries cargo.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .no_deps()
            .exec()
            .context("cargo metadata does not answer")?;
        Ok(Self { metadata })
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    pub(crate) fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// The directory where setup installs tools.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target().join("tools")
    }

    /// The Python interpreter with the packages of the tests.
    pub(crate) fn python(&self) -> PathBuf {
        self.target().join("venv/bin/python")
    }

    /// The directory of the MCP clients and suites from npm.
    pub(crate) fn clients(&self) -> PathBuf {
        self.root().join("tests/clients")
    }

    /// The source of the web interface.
    pub(crate) fn web(&self) -> PathBuf {
        self.root().join("web")
    }

    /// Whether `OSTLER_BIN` names the binary.
    pub(crate) fn is_binary_named(&self) -> bool {
        std::env::var_os(BINARY).is_some()
    }

    /// The binary of a profile, or the one that `OSTLER_BIN` names.
    pub(crate) fn ostler(&self, profile: Profile) -> PathBuf {
        let named = std::env::var_os(BINARY).map(PathBuf::from);
        named.unwrap_or_else(|| self.target().join(profile.directory()).join("ostler"))
    }
}
