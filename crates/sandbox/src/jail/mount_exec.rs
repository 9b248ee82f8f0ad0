//! Executes the mount operations by descriptor: no path is ever looked up from outside the new
//! root, so no symbolic link under a command's control leads out of it.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

use super::init::InitTask;
use super::mount_op::{BindSource, MountAccess, MountOp};
use super::plan::{EMPTY_DIRECTORY, EMPTY_FILE, SLOTS_MAX};
use super::sys::{self, ATTR_NO_DEVICES, ATTR_NO_SETUID, ATTR_READ_ONLY};

/// The most mounts one plan may clone, with room for the terminal and the overlay's layers.
pub(super) const SOURCES_MAX: usize = 640;
/// The size of the private tmpfs in bytes: it is memory, so it counts against a memory limit.
const TMPFS_BYTES: &CStr = c"2147483648";
/// The most files of the private tmpfs.
const TMPFS_INODES: &CStr = c"1048576";
/// Where the overlay's layers are attached while it is mounted.
const LOWER: &CStr = c".lower";
const UPPER_LAYERS: &CStr = c".layers";
/// The longest `/proc/self/fd/N/NAME`, in bytes.
const OPTION_BYTES: usize = 300;

/// The stage at which the init failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum InitStage {
    Ids = 1,
    Source,
    Root,
    Mount,
    Pivot,
    Capabilities,
}

/// What an init can report: stage, index within it, errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InitFailure {
    stage: i32,
    pub(super) index: usize,
    pub(super) errno: Errno,
}

impl InitFailure {
    pub(super) const fn new(stage: InitStage, index: usize, errno: Errno) -> Self {
        Self {
            stage: stage as i32,
            index,
            errno,
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 12] {
        let index = i32::try_from(self.index).unwrap_or(i32::MAX);
        let numbers = [self.stage, index, self.errno.raw_os_error()];
        let mut bytes = [0; 12];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Decodes a report; none for success.
    pub(super) fn from_bytes(bytes: [u8; 12]) -> Option<Self> {
        let number = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            i32::from_ne_bytes(four)
        };
        let stage = number(0);
        (stage != 0).then(|| Self {
            stage,
            index: usize::try_from(number(4)).unwrap_or(0),
            errno: Errno::from_raw_os_error(number(8).max(1)),
        })
    }

    pub(super) fn stage(&self) -> Option<InitStage> {
        [
            InitStage::Ids,
            InitStage::Source,
            InitStage::Root,
            InitStage::Mount,
            InitStage::Pivot,
            InitStage::Capabilities,
        ]
        .into_iter()
        .find(|stage| *stage as i32 == self.stage)
    }
}

/// A detached clone of a host mount, looked up without symbolic links.
pub(super) fn clone_tree(path: &CStr, recursive: bool) -> Result<OwnedFd, Errno> {
    let path_fd = rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )?;
    open_tree_clone(path_fd.as_fd(), recursive)
}

fn open_tree_clone(path_fd: BorrowedFd<'_>, recursive: bool) -> Result<OwnedFd, Errno> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(path_fd, c"", flags)
}

/// The mount attributes of an access mode.
pub(super) const fn attributes(access: MountAccess) -> u64 {
    match access {
        MountAccess::Read => ATTR_READ_ONLY | ATTR_NO_SETUID | ATTR_NO_DEVICES,
        MountAccess::Write => ATTR_NO_SETUID | ATTR_NO_DEVICES,
        MountAccess::Device => ATTR_NO_SETUID,
    }
}

/// The file system view under construction.
pub(super) struct MountExecutor<'a> {
    task: &'a InitTask<'a>,
    trees: [Option<OwnedFd>; SOURCES_MAX],
    slots: [Option<OwnedFd>; SLOTS_MAX],
    overlay: Option<OwnedFd>,
    root: Option<OwnedFd>,
    sealed: bool,
}

impl<'a> MountExecutor<'a> {
    pub(super) const fn new(task: &'a InitTask<'a>) -> Self {
        Self {
            task,
            trees: [const { None }; SOURCES_MAX],
            slots: [const { None }; SLOTS_MAX],
            overlay: None,
            root: None,
            sealed: false,
        }
    }

    /// Clones the sources the builder did not clone, with the caller's ids.
    pub(super) fn clone_sources(&mut self) -> Result<(), InitFailure> {
        for (index, source) in self.task.sources.iter().enumerate() {
            if self.builder_tree(index).is_some() {
                continue;
            }
            match clone_tree(&source.path, true) {
                Ok(tree) => self.trees[index] = Some(tree),
                Err(errno) if may_be_absent(source, errno) => {}
                Err(errno) => return Err(InitFailure::new(InitStage::Source, index, errno)),
            }
        }
        Ok(())
    }

    fn builder_tree(&self, index: usize) -> Option<BorrowedFd<'a>> {
        let task: &'a InitTask<'a> = self.task;
        task.trees.get(index)?.as_ref().map(AsFd::as_fd)
    }

    /// Mounts one tmpfs for everything private, on top of the old root.
    pub(super) fn create_root(&mut self) -> Result<(), InitFailure> {
        let failed = |errno| InitFailure::new(InitStage::Root, 0, errno);
        sys::make_all_private().map_err(failed)?;
        self.root = Some(create_tmpfs().map_err(failed)?);
        let root = self.root().map_err(failed)?;
        rustix::mount::move_mount(
            root,
            c"",
            CWD,
            c"/",
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .map_err(failed)
    }

    fn root(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.root.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    fn open_path(&self, at: &CStr) -> Result<OwnedFd, Errno> {
        rustix::fs::openat2(
            self.root()?,
            at,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
    }

    pub(super) fn execute(&mut self, op: &MountOp) -> Result<(), Errno> {
        match op {
            MountOp::Directory { at, mode, own } => self.directory(at, *mode, *own),
            MountOp::Link { at, to } => {
                rustix::fs::symlinkat(to.as_c_str(), self.root()?, at.as_c_str())
            }
            MountOp::File { at, bytes, mode } => self.file(at, bytes, *mode),
            MountOp::Bind { source, at } => self.bind_source(*source, at),
            MountOp::MountOverlay { lower } => self.mount_overlay(*lower),
            MountOp::BindOverlay { at } => self.bind_overlay(at),
            MountOp::Console { at } => match self.task.terminal {
                Some(source) => self.bind_source(source, at),
                None => Ok(()),
            },
            MountOp::SaveDirectory { slot, at } => {
                self.slots[*slot] = Some(open_tree_clone(self.open_path(at)?.as_fd(), false)?);
                Ok(())
            }
            MountOp::Seal => {
                self.sealed = true;
                sys::set_attributes(self.root()?, attributes(MountAccess::Read), None)
            }
            MountOp::RestoreDirectory { slot, at } => {
                let saved = self.slots[*slot].take().ok_or(Errno::BADF)?;
                self.bind(saved.as_fd(), at)
            }
            MountOp::Proc { at } => self.bind(create_proc()?.as_fd(), at),
            MountOp::Quota { at, limit: most } => self.quota(at, most),
            MountOp::Devpts { at } => self.bind(create_devpts()?.as_fd(), at),
            MountOp::Protect {
                at,
                read_only: closed,
                create: make,
            } => self.protect(at, *closed, *make),
            MountOp::Mask { at } => self.mask(at),
            MountOp::BindWithin { from, at } => self.bind(
                open_tree_clone(self.open_path(from)?.as_fd(), false)?.as_fd(),
                at,
            ),
            MountOp::Loopback => sys::bring_up_loopback(),
        }
    }

    fn bind(&self, tree: BorrowedFd<'_>, at: &CStr) -> Result<(), Errno> {
        move_onto(tree, self.open_path(at)?.as_fd())
    }

    fn bind_source(&mut self, index: usize, at: &CStr) -> Result<(), Errno> {
        let (Some(source), sealed) = (self.task.sources.get(index), self.sealed) else {
            return Err(Errno::BADF);
        };
        if let Some(tree) = self.builder_tree(index) {
            return self.bind(tree, at);
        }
        let Some(tree) = self.trees[index].take() else {
            return Ok(());
        };
        self.bind(tree.as_fd(), at)?;
        if sealed && source.access != MountAccess::Device {
            sys::set_attributes(tree.as_fd(), attributes(source.access), None)?;
        }
        Ok(())
    }

    fn directory(&self, at: &CStr, mode: u32, own: bool) -> Result<(), Errno> {
        let root = self.root()?;
        match rustix::fs::mkdirat(root, at, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let owner = self.task.command_ids;
        if own && self.task.become_ids.is_some_and(|ids| ids != owner) {
            let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            rustix::fs::chownat(root, at, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    fn file(&self, at: &CStr, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.root()?, at, flags, Mode::from_raw_mode(mode))?;
        if !bytes.is_empty() {
            rustix::io::write(&file, bytes)?;
        }
        Ok(())
    }

    /// The file applies to the user namespace of the process that opens it: the jail's own.
    fn quota(&self, at: &CStr, limit: &[u8]) -> Result<(), Errno> {
        let file = rustix::fs::openat2(
            self.root()?,
            at,
            OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        rustix::io::write(&file, limit).map(drop)
    }

    /// A path that was missing, or replaced by a link meanwhile, needs no protection and is no
    /// failure.
    fn protect(&self, at: &CStr, read_only: bool, create: bool) -> Result<(), Errno> {
        let path_fd = match self.open_path(at) {
            Err(Errno::NOENT) if create => {
                match self.create_directory(at) {
                    Ok(()) => {}
                    // The parent is missing, not a directory, a link, or read-only.
                    Err(
                        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ROFS | Errno::ACCESS,
                    ) => return Ok(()),
                    Err(errno) => return Err(errno),
                }
                self.open_path(at)?
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            other => other?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&path_fd)?.st_mode);
        if kind == FileType::Symlink {
            // A link that is a mount point cannot be replaced; where a kernel refuses that, its
            // target is still protected.
            let _refused = open_tree_clone(path_fd.as_fd(), false)
                .and_then(|link| move_onto(link.as_fd(), path_fd.as_fd()));
            return Ok(());
        }
        let tree = open_tree_clone(path_fd.as_fd(), true)?;
        move_onto(tree.as_fd(), path_fd.as_fd())?;
        if read_only || kind != FileType::Directory {
            sys::set_attributes(tree.as_fd(), attributes(MountAccess::Read), None)?;
        }
        Ok(())
    }

    /// Creates the last component in its parent, which must be a directory reached without links.
    fn create_directory(&self, at: &CStr) -> Result<(), Errno> {
        let bytes = at.to_bytes_with_nul();
        let cut = bytes
            .iter()
            .rposition(|byte| *byte == b'/')
            .ok_or(Errno::NOENT)?;
        let mut above = [0_u8; libc::PATH_MAX as usize];
        above
            .get_mut(..cut)
            .ok_or(Errno::NAMETOOLONG)?
            .copy_from_slice(&bytes[..cut]);
        let above = CStr::from_bytes_until_nul(&above).map_err(|_| Errno::NAMETOOLONG)?;
        let name = CStr::from_bytes_with_nul(&bytes[cut + 1..]).map_err(|_| Errno::INVAL)?;
        let above = self.open_path(above)?;
        rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755))
    }

    fn mask(&self, at: &CStr) -> Result<(), Errno> {
        let path_fd = match self.open_path(at) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Ok(()),
            other => other?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&path_fd)?.st_mode);
        let cover = match kind {
            FileType::Symlink => return Ok(()),
            FileType::Directory => EMPTY_DIRECTORY,
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => EMPTY_FILE,
        };
        move_onto(
            open_tree_clone(self.open_path(cover)?.as_fd(), false)?.as_fd(),
            path_fd.as_fd(),
        )
    }

    /// Mounts the overlay, detached, from layers that are attached in the new root only meanwhile.
    fn mount_overlay(&mut self, lower: usize) -> Result<(), Errno> {
        let Some(layers) = self.task.layers else {
            return Err(Errno::INVAL);
        };
        for (name, source) in [(LOWER, lower), (UPPER_LAYERS, layers.source)] {
            rustix::fs::mkdirat(self.root()?, name, Mode::RWXU)?;
            self.bind_source(source, name)?;
        }
        let (below, above) = (self.open_path(LOWER)?, self.open_path(UPPER_LAYERS)?);
        let context = rustix::mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let context = context.as_fd();
        rustix::mount::fsconfig_set_flag(context, c"userxattr")?;
        for (key, place, name) in [
            (c"lowerdir", &below, c""),
            (c"upperdir", &above, layers.upper),
            (c"workdir", &above, layers.work),
        ] {
            let mut space = [0_u8; OPTION_BYTES];
            let value = proc_fd_path(&mut space, place.as_fd(), name)?;
            rustix::mount::fsconfig_set_string(context, key, value)?;
        }
        rustix::mount::fsconfig_create(context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        self.overlay = Some(rustix::mount::fsmount(
            context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?);
        for (place, name) in [(below, LOWER), (above, UPPER_LAYERS)] {
            let mut space = [0_u8; OPTION_BYTES];
            let path = proc_fd_path(&mut space, place.as_fd(), c"")?;
            rustix::mount::unmount(path, UnmountFlags::DETACH)?;
            drop(place);
            rustix::fs::unlinkat(self.root()?, name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    fn bind_overlay(&mut self, at: &CStr) -> Result<(), Errno> {
        let overlay = self.overlay.take().ok_or(Errno::BADF)?;
        self.bind(overlay.as_fd(), at)
    }

    /// Makes the new root the root and detaches the old one.
    pub(super) fn pivot(&mut self) -> Result<(), InitFailure> {
        let pivot = || {
            rustix::process::fchdir(self.root()?)?;
            rustix::process::pivot_root(c".", c".")?;
            rustix::mount::unmount(c".", UnmountFlags::DETACH)?;
            rustix::process::chdir(c"/")
        };
        pivot().map_err(|errno| InitFailure::new(InitStage::Pivot, 0, errno))
    }
}

fn move_onto(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", target, c"", flags)
}

pub(super) fn may_be_absent(source: &BindSource, errno: Errno) -> bool {
    !source.required
        && matches!(
            errno,
            Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM | Errno::LOOP
        )
}

fn create_tmpfs() -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    rustix::mount::fsconfig_set_string(context, c"size", TMPFS_BYTES)?;
    rustix::mount::fsconfig_set_string(context, c"nr_inodes", TMPFS_INODES)?;
    rustix::mount::fsconfig_set_string(context, c"mode", c"0755")?;
    rustix::mount::fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Mounts /proc so that it hides processes that may not be traced, including the init.
fn create_proc() -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    rustix::mount::fsconfig_set_string(context, c"hidepid", c"2")?;
    rustix::mount::fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn create_devpts() -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    rustix::mount::fsconfig_set_string(context, c"ptmxmode", c"0666")?;
    rustix::mount::fsconfig_set_string(context, c"mode", c"0620")?;
    rustix::mount::fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A path through one of our descriptors, so that its real name does not matter.
fn proc_fd_path<'b>(
    space: &'b mut [u8; OPTION_BYTES],
    path_fd: BorrowedFd<'_>,
    name: &CStr,
) -> Result<&'b CStr, Errno> {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let mut rest = &mut space[..OPTION_BYTES - 1];
    let written = write!(rest, "/proc/self/fd/{}", path_fd.as_raw_fd());
    written.map_err(|_| Errno::NAMETOOLONG)?;
    if !name.is_empty() {
        let name = name.to_bytes();
        rest.write_all(b"/")
            .and_then(|()| rest.write_all(name))
            .map_err(|_| Errno::NAMETOOLONG)?;
    }
    CStr::from_bytes_until_nul(space).map_err(|_| Errno::NAMETOOLONG)
}
