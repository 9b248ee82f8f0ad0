//! Compiles a sandbox specification into mount operations: a pure function.

mod masks;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use ostler_model::{ByteString, Capability, NetworkAccess, SandboxSpec};
use rustix::io::Errno;

use super::JailError;
use super::host_facts::{
    DEVICES, HOSTS, HostEntry, HostFacts, RESOLV_CONF, SYS_PATHS, SYSTEM_PATHS, VAR_PATHS,
};
use super::mount_op::{BindSource, MountAccess, MountOp};
use super::paths::{c_path, is_plain, relative_to_root};

/// The name server inside when only listed hosts may be reached: the egress proxy.
pub const EGRESS_PROXY_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Directories that are private to the command and empty, with their modes.
const PRIVATE_DIRS: &[(&str, u32)] = &[
    ("/tmp", 0o1777),
    ("/var/tmp", 0o1777),
    ("/dev/shm", 0o1777),
    ("/run", 0o755),
];
/// Symbolic links into /proc.
const PROC_LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];
/// The directory that covers hidden directories; hidden files are covered likewise.
pub(super) const EMPTY_DIRECTORY: &std::ffi::CStr = c"dev/.empty-directory";
pub(super) const EMPTY_FILE: &std::ffi::CStr = c"dev/.empty-file";
/// The directory that covers a hidden directory containing a shell's scripts: it holds only the
/// path to them.
const AROUND_SCRIPTS: &str = "/dev/.around-scripts";
/// The path of a replaced table of names.
const OWN_HOSTS: &str = "/dev/.hosts";
/// The names of the loopback address, which programs expect in hosts(5).
const LOOPBACK_NAMES: &str = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
/// The path of a replaced resolver configuration.
const OWN_RESOLVER: &str = "/dev/.resolv.conf";
/// The path of a private home that would otherwise lie within a host mount.
const OWN_HOME: &str = "/dev/.home";
/// The terminal's name where ttyname(3) finds it.
const CONSOLE: &str = "/dev/console";
/// The most private directories of a view: those above and the home.
pub(super) const SLOTS_MAX: usize = 8;

/// A compiled sandbox specification: what an init does, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailPlan {
    pub(super) sources: Vec<BindSource>,
    pub(super) ops: Vec<MountOp>,
    /// Whether it has its own network namespace.
    pub(super) own_network: bool,
    /// Whether writes go to an overlay.
    pub(super) overlay: bool,
    /// Whether its paths are mapped to the jail's ids where the caller is root.
    pub(super) idmapped: bool,
    /// The directory whose owner's ids the command takes where the caller is root.
    pub(super) workspace: Option<PathBuf>,
}

impl JailPlan {
    /// Compiles a specification. Paths that do not exist are left out, except that the workspace
    /// must exist.
    ///
    /// # Errors
    /// A path that cannot be shown: not absolute, with `..`, or hidden although the workspace is
    /// below it.
    pub fn compile(spec: &SandboxSpec, host: &HostFacts) -> Result<Self, JailError> {
        let mut builder = JailPlanBuilder::new(host, spec);
        builder.add_skeleton()?;
        builder.add_system_dirs()?;
        builder.add_devices()?;
        builder.add_visible_paths()?;
        builder.add_resolver()?;
        builder.protect_paths()?;
        builder.keep_ways_to_hidden_paths()?;
        builder.mask_hidden_paths()?;
        builder.add_scripts()?;
        builder.build()
    }
}

/// A plan under construction: operations before the seal, and those after it.
struct JailPlanBuilder<'a> {
    host: &'a HostFacts,
    spec: &'a SandboxSpec,
    sources: Vec<BindSource>,
    before_seal: Vec<MountOp>,
    after_seal: Vec<MountOp>,
    created: BTreeSet<PathBuf>,
    /// Host paths that are mounted at the same path inside.
    bind_mounted: Vec<PathBuf>,
    /// Those of them that the command may write to.
    writable: Vec<PathBuf>,
    links: Vec<PathBuf>,
    slots: usize,
    workspace: Option<PathBuf>,
}

impl<'a> JailPlanBuilder<'a> {
    fn new(host: &'a HostFacts, spec: &'a SandboxSpec) -> Self {
        Self {
            host,
            spec,
            sources: Vec::new(),
            before_seal: Vec::new(),
            after_seal: Vec::new(),
            created: BTreeSet::from([PathBuf::from("/")]),
            bind_mounted: Vec::new(),
            writable: Vec::new(),
            links: Vec::new(),
            slots: 0,
            workspace: None,
        }
    }

    fn is_excluded(&self, capability: Capability) -> bool {
        self.spec.without.contains(&capability)
    }

    /// Creates directories above and at `path`, where no host path is mounted already.
    fn add_directories(&mut self, path: &Path, mode: u32, own: bool) -> Result<(), JailError> {
        if self.is_covered(path) || self.created.contains(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.add_directories(above, 0o755, own && self.is_private(above))?;
        }
        self.before_seal.push(MountOp::Directory {
            at: relative_to_root(path)?,
            mode,
            own,
        });
        self.created.insert(path.to_owned());
        Ok(())
    }

    fn is_covered(&self, path: &Path) -> bool {
        self.bind_mounted
            .iter()
            .any(|bound| path.starts_with(bound))
    }

    fn is_private(&self, path: &Path) -> bool {
        let home = self.spec.home.as_ref().map(ByteString::as_path);
        let fixed = PRIVATE_DIRS.iter().map(|(path, _)| Path::new(*path));
        fixed.chain(home).any(|it| path.starts_with(it))
    }

    fn add_source(
        &mut self,
        path: &Path,
        access: MountAccess,
        required: bool,
        idmapped: bool,
    ) -> Result<usize, JailError> {
        self.sources.push(BindSource {
            path: c_path(path)?,
            access,
            required,
            idmapped,
        });
        Ok(self.sources.len() - 1)
    }

    fn add_skeleton(&mut self) -> Result<(), JailError> {
        for path in ["/proc", "/dev", "/dev/pts"] {
            self.add_directories(Path::new(path), 0o755, false)?;
        }
        if !self.is_excluded(Capability::FreshProc) {
            self.after_seal.push(MountOp::Proc { at: c"proc".into() });
            let quotas = self.host.quotas.iter().map(|quota| MountOp::Quota {
                at: quota.file.clone(),
                limit: quota.limit.to_string().into_bytes(),
            });
            self.after_seal.extend(quotas);
        }
        self.after_seal.push(MountOp::Devpts {
            at: c"dev/pts".into(),
        });
        for (path, mode) in PRIVATE_DIRS {
            self.add_private_dir(Path::new(path), *mode)?;
        }
        for (path, to) in PROC_LINKS {
            self.before_seal.push(MountOp::Link {
                at: relative_to_root(Path::new(path))?,
                to: c_path(Path::new(to))?,
            });
        }
        Ok(())
    }

    /// A directory private to the command, writable after the seal.
    fn add_private_dir(&mut self, path: &Path, mode: u32) -> Result<(), JailError> {
        // Over a host mount, the saved directory must still be private.
        let own = if self.is_covered(path) {
            Path::new(OWN_HOME)
        } else {
            path
        };
        self.add_directories(own, mode, true)?;
        let slot = self.slots;
        self.slots += 1;
        self.before_seal.push(MountOp::SaveDirectory {
            slot,
            at: relative_to_root(own)?,
        });
        self.after_seal.push(MountOp::RestoreDirectory {
            slot,
            at: relative_to_root(path)?,
        });
        Ok(())
    }

    /// The home, unless it is the root or a system directory, as some services have it.
    fn add_home(&mut self, path: &Path) -> Result<(), JailError> {
        let mut system = SYSTEM_PATHS.iter().chain(VAR_PATHS).map(Path::new);
        if system.any(|it| it.starts_with(path))
            || PRIVATE_DIRS
                .iter()
                .any(|(it, _)| Path::new(it).starts_with(path))
        {
            return Ok(());
        }
        self.add_private_dir(path, 0o700)
    }

    fn add_system_dirs(&mut self) -> Result<(), JailError> {
        for path in SYSTEM_PATHS
            .iter()
            .chain(SYS_PATHS)
            .chain(VAR_PATHS)
            .map(Path::new)
        {
            match self.host.entries.get(path) {
                Some(HostEntry::Directory) => self.bind_system_dir(path)?,
                Some(HostEntry::Link(to)) => self.add_link(path, to)?,
                Some(HostEntry::File) | None => {}
            }
        }
        Ok(())
    }

    fn bind_system_dir(&mut self, path: &Path) -> Result<(), JailError> {
        self.add_directories(path, 0o755, false)?;
        let source = self.add_source(path, MountAccess::Read, false, false)?;
        let at = relative_to_root(path)?;
        // Paths within private directories are attached after them.
        let ops = if self.is_private(path) {
            &mut self.after_seal
        } else {
            &mut self.before_seal
        };
        ops.push(MountOp::Bind { source, at });
        self.bind_mounted.push(path.to_owned());
        Ok(())
    }

    fn add_link(&mut self, path: &Path, to: &Path) -> Result<(), JailError> {
        if self.created.contains(path) || self.is_covered(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.add_directories(above, 0o755, self.is_private(above))?;
        }
        self.before_seal.push(MountOp::Link {
            at: relative_to_root(path)?,
            to: c_path(to)?,
        });
        self.created.insert(path.to_owned());
        self.links.push(path.to_owned());
        Ok(())
    }

    fn add_file(&mut self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), JailError> {
        if let Some(above) = path.parent() {
            self.add_directories(above, 0o755, self.is_private(above))?;
        }
        if self.created.insert(path.to_owned()) {
            self.before_seal.push(MountOp::File {
                at: relative_to_root(path)?,
                bytes: bytes.to_vec(),
                mode,
            });
        }
        Ok(())
    }

    fn add_devices(&mut self) -> Result<(), JailError> {
        for path in DEVICES.iter().map(Path::new) {
            if self.host.entries.contains_key(path) {
                self.add_file(path, b"", 0o666)?;
                let source = self.add_source(path, MountAccess::Device, false, false)?;
                let at = relative_to_root(path)?;
                self.after_seal.push(MountOp::Bind { source, at });
            }
        }
        self.add_file(Path::new(CONSOLE), b"", 0o600)?;
        self.after_seal.push(MountOp::Console {
            at: relative_to_root(Path::new(CONSOLE))?,
        });
        self.before_seal.push(MountOp::Directory {
            at: EMPTY_DIRECTORY.into(),
            mode: 0o555,
            own: false,
        });
        self.before_seal.push(MountOp::File {
            at: EMPTY_FILE.into(),
            bytes: Vec::new(),
            mode: 0o444,
        });
        Ok(())
    }

    /// Home, workspace, and the paths that `read` and `write` name, containing paths first.
    fn add_visible_paths(&mut self) -> Result<(), JailError> {
        let spec = self.spec;
        let mut paths: Vec<(&Path, PathRole)> = Vec::new();
        paths.extend(spec.home.iter().map(|it| (it.as_path(), PathRole::Home)));
        paths.extend(
            spec.workspace
                .iter()
                .map(|it| (it.as_path(), PathRole::Workspace)),
        );
        paths.extend(spec.write.iter().map(|it| (it.as_path(), PathRole::Write)));
        paths.extend(spec.read.iter().map(|it| (it.as_path(), PathRole::Read)));
        if let Some((path, _)) = paths.iter().find(|(path, _)| !is_plain(path)) {
            return Err(JailError::on("path", Errno::INVAL, *path));
        }
        paths.sort_by_key(|(path, shown)| (path.components().count(), *shown));
        for (path, shown) in paths {
            self.add_visible_path(path, shown)?;
        }
        Ok(())
    }

    fn add_visible_path(&mut self, named: &Path, role: PathRole) -> Result<(), JailError> {
        let Some(resolved) = self.host.resolved.get(named) else {
            return match role {
                PathRole::Workspace => Err(JailError::on("workspace", Errno::NOENT, named)),
                // A home that does not exist is an empty directory inside.
                PathRole::Home => self.add_home(named),
                PathRole::Write | PathRole::Read => Ok(()),
            };
        };
        let (path, directory) = (resolved.path.clone(), resolved.directory);
        if role == PathRole::Home {
            self.add_alias(named, &path)?;
            return self.add_home(&path);
        }
        if role == PathRole::Read && self.is_covered(&path) {
            return self.add_alias(named, &path);
        }
        if !self.is_covered(&path) {
            if directory {
                self.add_directories(&path, 0o755, self.is_private(&path))?;
            } else {
                self.add_file(&path, b"", 0o600)?;
            }
        }
        let access = if role == PathRole::Read {
            MountAccess::Read
        } else {
            MountAccess::Write
        };
        let source = self.add_source(&path, access, role == PathRole::Workspace, true)?;
        let at = relative_to_root(&path)?;
        if role == PathRole::Workspace && self.spec.overlay {
            self.before_seal
                .push(MountOp::MountOverlay { lower: source });
            self.after_seal.push(MountOp::BindOverlay { at });
        } else {
            self.after_seal.push(MountOp::Bind { source, at });
        }
        if role == PathRole::Workspace {
            self.workspace = Some(path.clone());
        }
        self.bind_mounted.push(path.clone());
        if access == MountAccess::Write {
            self.writable.push(path.clone());
        }
        self.add_alias(named, &path)
    }

    /// Recreates inside the symbolic links through which a name reaches its path.
    fn add_alias(&mut self, named: &Path, path: &Path) -> Result<(), JailError> {
        let reached = self.links.iter().any(|link| named.starts_with(link));
        if named == path || reached || self.is_covered(named) {
            return Ok(());
        }
        self.add_link(named, path)
    }

    /// The resolver: the host's configuration where it is outside the shown paths, the egress
    /// proxy's for allow lists, to which no name of the host's table may be preferred.
    fn add_resolver(&mut self) -> Result<(), JailError> {
        let real = self.host.resolved.get(Path::new(RESOLV_CONF));
        let real = real.map(|it| it.path.clone());
        match &self.spec.network {
            NetworkAccess::None => Ok(()),
            NetworkAccess::Full => match real {
                Some(path) if !self.is_covered(&path) => {
                    self.add_file(&path, b"", 0o444)?;
                    let source = self.add_source(&path, MountAccess::Read, false, false)?;
                    let at = relative_to_root(&path)?;
                    self.after_seal.push(MountOp::Bind { source, at });
                    Ok(())
                }
                Some(_) | None => Ok(()),
            },
            NetworkAccess::AllowList { .. } => {
                let hosts = self.host.resolved.get(Path::new(HOSTS));
                let hosts = hosts.map(|it| it.path.clone());
                if let Some(path) = hosts {
                    self.replace_file(&path, OWN_HOSTS, LOOPBACK_NAMES)?;
                }
                let text = format!("nameserver {EGRESS_PROXY_ADDRESS}\n");
                real.map_or(Ok(()), |path| self.replace_file(&path, OWN_RESOLVER, &text))
            }
        }
    }

    /// Shows this text at the path of a host's file; `own` is where it is where the path is mounted.
    fn replace_file(&mut self, path: &Path, own: &str, text: &str) -> Result<(), JailError> {
        if !self.is_covered(path) {
            return self.add_file(path, text.as_bytes(), 0o444);
        }
        self.add_file(Path::new(own), text.as_bytes(), 0o444)?;
        let from = relative_to_root(Path::new(own))?;
        let at = relative_to_root(path)?;
        self.after_seal.push(MountOp::BindWithin { from, at });
        Ok(())
    }

    fn build(mut self) -> Result<JailPlan, JailError> {
        let own_network = self.spec.network != NetworkAccess::Full
            && !self.is_excluded(Capability::NetworkNamespace);
        if own_network {
            self.before_seal.insert(0, MountOp::Loopback);
        }
        if self.slots > SLOTS_MAX {
            return Err(JailError::new("private directory", Errno::TOOBIG));
        }
        let idmapped = !self.is_excluded(Capability::MappedWorkspace);
        let mut ops = self.before_seal;
        ops.push(MountOp::Seal);
        ops.extend(self.after_seal);
        Ok(JailPlan {
            sources: self.sources,
            ops,
            own_network,
            overlay: self.spec.overlay,
            idmapped,
            workspace: self.workspace,
        })
    }
}

/// Why a path is shown, in order of precedence at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathRole {
    Home,
    Workspace,
    Write,
    Read,
}
