//! What an init does, as data: no operation needs a decision at run time.

use std::ffi::{CStr, CString};

/// A host path to be cloned while the caller's ids still hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BindSource {
    /// Absolute; no component may be a symbolic link.
    pub(super) path: CString,
    /// What the command may do with it.
    pub(super) access: MountAccess,
    /// Whether a missing path is a failure.
    pub(super) required: bool,
    /// Whether a root caller shows it under the jail's ids (an idmapped mount).
    pub(super) idmapped: bool,
}

/// The access a mount gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountAccess {
    /// Read-only, without devices and setuid.
    Read,
    /// Writable, without devices and setuid.
    Write,
    /// A device node.
    Device,
}

/// One operation; paths are relative to the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MountOp {
    /// Create a directory; owned by the command where `own` is set.
    Directory { at: CString, mode: u32, own: bool },
    /// Create a symbolic link.
    Link { at: CString, to: CString },
    /// Create a file.
    File {
        at: CString,
        bytes: Vec<u8>,
        mode: u32,
    },
    /// Attach a cloned source. Before the seal, it is sealed like everything else.
    Bind { source: usize, at: CString },
    /// Mount the overlay from this source and the layers given to the build.
    MountOverlay { lower: usize },
    /// Attach the overlay.
    BindOverlay { at: CString },
    /// Attach the command's terminal, where it has one.
    Console { at: CString },
    /// Clone a directory of the new root, so that it stays writable after the seal.
    SaveDirectory { slot: usize, at: CString },
    /// Make everything so far read-only, without devices and setuid.
    Seal,
    /// Attach a saved directory over itself.
    RestoreDirectory { slot: usize, at: CString },
    /// Mount a new /proc.
    Proc { at: CString },
    /// Limit what the kernel counts per user, through the new /proc.
    Quota { at: CString, limit: Vec<u8> },
    /// Mount a new devpts.
    Devpts { at: CString },
    /// Make the path a mount point, so that it cannot be renamed away; read-only with `read_only`,
    /// and created where it is missing with `create`.
    Protect {
        at: CString,
        read_only: bool,
        create: bool,
    },
    /// Cover the path with an empty file or directory.
    Mask { at: CString },
    /// Attach one path of the new root at another.
    BindWithin { from: CString, at: CString },
    /// Bring up the loopback interface.
    Loopback,
}

impl MountOp {
    /// Its name in errors.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Directory { .. } | Self::Link { .. } | Self::File { .. } => "new root",
            Self::Bind { .. } | Self::Console { .. } => "bind mount",
            Self::MountOverlay { .. } | Self::BindOverlay { .. } => "overlay",
            Self::SaveDirectory { .. } | Self::RestoreDirectory { .. } => "private directory",
            Self::Seal => "read-only root",
            Self::Proc { .. } => "fresh /proc",
            Self::Quota { .. } => "quota of the kernel",
            Self::Devpts { .. } => "devpts",
            Self::Protect { .. } => "protected path",
            Self::Mask { .. } => "hidden path",
            Self::BindWithin { .. } => "replaced file",
            Self::Loopback => "loopback",
        }
    }

    /// The path it concerns.
    pub(super) fn path(&self) -> Option<&CStr> {
        match self {
            Self::Directory { at, .. }
            | Self::Link { at, .. }
            | Self::File { at, .. }
            | Self::Bind { at, .. }
            | Self::BindOverlay { at }
            | Self::Console { at }
            | Self::SaveDirectory { at, .. }
            | Self::RestoreDirectory { at, .. }
            | Self::Proc { at }
            | Self::Quota { at, .. }
            | Self::Devpts { at }
            | Self::Protect { at, .. }
            | Self::Mask { at }
            | Self::BindWithin { at, .. } => Some(at),
            Self::MountOverlay { .. } | Self::Seal | Self::Loopback => None,
        }
    }
}
