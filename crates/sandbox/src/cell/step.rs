//! What a warden does, as data: no step asks anything that was not known before.

use std::ffi::{CStr, CString};

/// A host tree to be taken while the caller's ids still hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// Absolute; no component may be a symbolic link.
    pub(super) path: CString,
    /// What the command may do with it.
    pub(super) access: Access,
    /// Whether its absence is a failure.
    pub(super) required: bool,
    /// Whether a root caller shows it under the cell's ids (an idmapped mount).
    pub(super) mapped: bool,
}

/// How a mount is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read-only, no devices, nothing setuid.
    Read,
    /// Writable, no devices, nothing setuid.
    Write,
    /// A device.
    Device,
}

/// One step; paths are relative to the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
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
    Attach { source: usize, at: CString },
    /// Make the overlay from this source and the layers given at the build.
    Layer { lower: usize },
    /// Put the overlay there.
    AttachOverlay { at: CString },
    /// Put the command's terminal there, where it has one.
    Console { at: CString },
    /// Keep a directory of the new root writable through the seal.
    Hold { slot: usize, at: CString },
    /// Everything so far becomes read-only, without devices, without setuid.
    Seal,
    /// Put a held directory back over itself.
    Release { slot: usize, at: CString },
    /// A fresh /proc.
    Proc { at: CString },
    /// No more than this of what the kernel counts per user, through the fresh /proc.
    Quota { at: CString, most: Vec<u8> },
    /// Terminals of its own.
    Terminals { at: CString },
    /// Make it a mount point, so that nobody renames it away; `closed` read-only, and where
    /// `make` says so it is made when it is missing.
    Fence {
        at: CString,
        closed: bool,
        make: bool,
    },
    /// Cover it with nothing.
    Mask { at: CString },
    /// Show one path of the new root at another.
    Over { from: CString, at: CString },
    /// Loopback up.
    Loopback,
}

impl Step {
    /// Its name in errors.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Directory { .. } | Self::Link { .. } | Self::File { .. } => "new root",
            Self::Attach { .. } | Self::Console { .. } => "bind mount",
            Self::Layer { .. } | Self::AttachOverlay { .. } => "overlay",
            Self::Hold { .. } | Self::Release { .. } => "private directory",
            Self::Seal => "read-only root",
            Self::Proc { .. } => "fresh /proc",
            Self::Quota { .. } => "quota of the kernel",
            Self::Terminals { .. } => "devpts",
            Self::Fence { .. } => "protected path",
            Self::Mask { .. } => "hidden path",
            Self::Over { .. } => "replaced file",
            Self::Loopback => "loopback",
        }
    }

    /// The path it is about.
    pub(super) fn path(&self) -> Option<&CStr> {
        match self {
            Self::Directory { at, .. }
            | Self::Link { at, .. }
            | Self::File { at, .. }
            | Self::Attach { at, .. }
            | Self::AttachOverlay { at }
            | Self::Console { at }
            | Self::Hold { at, .. }
            | Self::Release { at, .. }
            | Self::Proc { at }
            | Self::Quota { at, .. }
            | Self::Terminals { at }
            | Self::Fence { at, .. }
            | Self::Mask { at }
            | Self::Over { at, .. } => Some(at),
            Self::Layer { .. } | Self::Seal | Self::Loopback => None,
        }
    }
}
