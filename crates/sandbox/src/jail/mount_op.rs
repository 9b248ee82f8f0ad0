//! What an init does, as data: no step asks anything that was not known before.

use std::ffi::{CStr, CString};

/// A host tree to be taken while the caller's ids still hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BindSource {
    /// Absolute; no component may be a symbolic link.
    pub(super) path: CString,
    /// What the command may do with it.
    pub(super) access: MountAccess,
    /// Whether its absence is a failure.
    pub(super) required: bool,
    /// Whether a root caller shows it under the jail's ids (an idmapped mount).
    pub(super) idmapped: bool,
}

/// How a mount is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountAccess {
    /// Read-only, no devices, nothing setuid.
    Read,
    /// Writable, no devices, nothing setuid.
    Write,
    /// A device.
    Device,
}

/// One step; paths are relative to the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MountOp {
    /// Make a directory; the command's own where `own` says so.
    Directory { at: CString, mode: u32, own: bool },
    /// Make a symbolic link.
    Link { at: CString, to: CString },
    /// Make a file.
    File {
        at: CString,
        bytes: Vec<u8>,
        mode: u32,
    },
    /// Put a taken source there. Before the seal, it is sealed like everything else.
    Bind { source: usize, at: CString },
    /// Make the overlay from this source and the layers given at the build.
    MountOverlay { lower: usize },
    /// Put the overlay there.
    BindOverlay { at: CString },
    /// Put the command's terminal there, where it has one.
    Console { at: CString },
    /// Keep a directory of the new root writable through the seal.
    SaveDirectory { slot: usize, at: CString },
    /// Everything so far becomes read-only, without devices, without setuid.
    Seal,
    /// Put a held directory back over itself.
    RestoreDirectory { slot: usize, at: CString },
    /// A fresh /proc.
    Proc { at: CString },
    /// No more than this of what the kernel counts per user, through the fresh /proc.
    Quota { at: CString, limit: Vec<u8> },
    /// Terminals of its own.
    Devpts { at: CString },
    /// Make it a mount point, so that nobody renames it away; `read_only` read-only, and where
    /// `create` says so it is made when it is missing.
    Protect {
        at: CString,
        read_only: bool,
        create: bool,
    },
    /// Cover it with nothing.
    Mask { at: CString },
    /// Show one path of the new root at another.
    BindWithin { from: CString, at: CString },
    /// Loopback up.
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

    /// The path it is about.
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
