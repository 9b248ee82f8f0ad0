//! From a confinement to steps: a pure function.

mod guard;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use ostler_model::{Ability, Confinement, Network, Text};
use rustix::io::Errno;

use super::CellError;
use super::host::{DEVICES, Entry, Host, MACHINE, RESOLVER, STATE, SYSTEM};
use super::paths::{below_root, c_path, plain};
use super::step::{Access, Source, Step};

/// Where names are answered inside when only listed hosts may be reached: the gate's.
pub const GATE_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Directories that are the command's own and empty, with their modes.
const PRIVATE: &[(&str, u32)] = &[
    ("/tmp", 0o1777),
    ("/var/tmp", 0o1777),
    ("/dev/shm", 0o1777),
    ("/run", 0o755),
];
/// Names that lead into /proc.
const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];
/// What covers hidden directories and files.
pub(super) const EMPTY_DIRECTORY: &std::ffi::CStr = c"dev/.empty-directory";
pub(super) const EMPTY_FILE: &std::ffi::CStr = c"dev/.empty-file";
/// What covers the hidden directory that the scripts of a shell lie in: nothing but the way to
/// them.
const AROUND_SCRIPTS: &str = "/dev/.around-scripts";
/// Where a replaced resolver configuration lies.
const OWN_RESOLVER: &str = "/dev/.resolv.conf";
/// Where a home lies that would be within a tree of the host.
const OWN_HOME: &str = "/dev/.home";
/// The terminal's name where ttyname(3) finds it.
const CONSOLE: &str = "/dev/console";
/// Private directories a view can have: those above and the home.
pub(super) const SLOTS_MAX: usize = 8;

/// A confinement, compiled: what a warden does, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellPlan {
    pub(super) sources: Vec<Source>,
    pub(super) steps: Vec<Step>,
    /// Whether it has a network of its own.
    pub(super) own_network: bool,
    /// Whether writes go to an overlay.
    pub(super) overlay: bool,
    /// Whether its paths are shown under the cell's ids where the caller is root.
    pub(super) mapped: bool,
    /// Whose ids the command takes where the caller is root.
    pub(super) workspace: Option<PathBuf>,
}

impl CellPlan {
    /// Compiles. Paths that do not exist are left out, but the workspace must.
    ///
    /// # Errors
    /// A path that cannot be shown: not absolute, with `..`, or hidden although the workspace
    /// lies in it.
    pub fn compile(confinement: &Confinement, host: &Host) -> Result<Self, CellError> {
        let mut draft = Draft::new(host, confinement);
        draft.skeleton()?;
        draft.system()?;
        draft.devices()?;
        draft.shown()?;
        draft.resolver()?;
        draft.protected()?;
        draft.hidden()?;
        draft.scripts()?;
        draft.finish()
    }
}

/// A plan in the making: what is made before the seal, what is put on top after it.
struct Draft<'a> {
    host: &'a Host,
    confinement: &'a Confinement,
    sources: Vec<Source>,
    before: Vec<Step>,
    after: Vec<Step>,
    made: BTreeSet<PathBuf>,
    /// Trees of the host that stand where they stand there.
    bound: Vec<PathBuf>,
    links: Vec<PathBuf>,
    slots: usize,
    workspace: Option<PathBuf>,
}

impl<'a> Draft<'a> {
    fn new(host: &'a Host, confinement: &'a Confinement) -> Self {
        Self {
            host,
            confinement,
            sources: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            made: BTreeSet::from([PathBuf::from("/")]),
            bound: Vec::new(),
            links: Vec::new(),
            slots: 0,
            workspace: None,
        }
    }

    fn without(&self, ability: Ability) -> bool {
        self.confinement.without.contains(&ability)
    }

    /// Directories above and at `path`, where nothing of the host stands already.
    fn directories(&mut self, path: &Path, mode: u32, own: bool) -> Result<(), CellError> {
        if self.covered(path) || self.made.contains(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.directories(above, 0o755, own && self.is_private(above))?;
        }
        self.before.push(Step::Directory {
            at: below_root(path)?,
            mode,
            own,
        });
        self.made.insert(path.to_owned());
        Ok(())
    }

    fn covered(&self, path: &Path) -> bool {
        self.bound.iter().any(|bound| path.starts_with(bound))
    }

    fn is_private(&self, path: &Path) -> bool {
        let home = self.confinement.home.as_ref().map(Text::as_path);
        let fixed = PRIVATE.iter().map(|(path, _)| Path::new(*path));
        fixed.chain(home).any(|it| path.starts_with(it))
    }

    fn source(
        &mut self,
        path: &Path,
        access: Access,
        required: bool,
        mapped: bool,
    ) -> Result<usize, CellError> {
        self.sources.push(Source {
            path: c_path(path)?,
            access,
            required,
            mapped,
        });
        Ok(self.sources.len() - 1)
    }

    fn skeleton(&mut self) -> Result<(), CellError> {
        for path in ["/proc", "/dev", "/dev/pts"] {
            self.directories(Path::new(path), 0o755, false)?;
        }
        if !self.without(Ability::FreshProc) {
            self.after.push(Step::Proc { at: c"proc".into() });
            let quotas = self.host.quotas.iter().map(|quota| Step::Quota {
                at: quota.file.clone(),
                most: quota.most.to_string().into_bytes(),
            });
            self.after.extend(quotas);
        }
        self.after.push(Step::Terminals {
            at: c"dev/pts".into(),
        });
        for (path, mode) in PRIVATE {
            self.private(Path::new(path), *mode)?;
        }
        for (path, to) in LINKS {
            self.before.push(Step::Link {
                at: below_root(Path::new(path))?,
                to: c_path(Path::new(to))?,
            });
        }
        Ok(())
    }

    /// A directory of the command's own, writable after the seal.
    fn private(&mut self, path: &Path, mode: u32) -> Result<(), CellError> {
        // Over a tree of the host, what is held must be a directory of ours all the same.
        let own = if self.covered(path) {
            Path::new(OWN_HOME)
        } else {
            path
        };
        self.directories(own, mode, true)?;
        let slot = self.slots;
        self.slots += 1;
        self.before.push(Step::Hold {
            slot,
            at: below_root(own)?,
        });
        self.after.push(Step::Release {
            slot,
            at: below_root(path)?,
        });
        Ok(())
    }

    /// The home, unless it is the root or a system directory, as some services have it.
    fn home(&mut self, path: &Path) -> Result<(), CellError> {
        let mut system = SYSTEM.iter().chain(STATE).map(Path::new);
        if system.any(|it| it.starts_with(path))
            || PRIVATE
                .iter()
                .any(|(it, _)| Path::new(it).starts_with(path))
        {
            return Ok(());
        }
        self.private(path, 0o700)
    }

    fn system(&mut self) -> Result<(), CellError> {
        for path in SYSTEM.iter().chain(MACHINE).chain(STATE).map(Path::new) {
            match self.host.entries.get(path) {
                Some(Entry::Directory) => self.before_the_seal(path)?,
                Some(Entry::Link(to)) => self.link(path, to)?,
                Some(Entry::File) | None => {}
            }
        }
        Ok(())
    }

    fn before_the_seal(&mut self, path: &Path) -> Result<(), CellError> {
        self.directories(path, 0o755, false)?;
        let source = self.source(path, Access::Read, false, false)?;
        let at = below_root(path)?;
        // What lies in private directories is put there after they are.
        let steps = if self.is_private(path) {
            &mut self.after
        } else {
            &mut self.before
        };
        steps.push(Step::Attach { source, at });
        self.bound.push(path.to_owned());
        Ok(())
    }

    fn link(&mut self, path: &Path, to: &Path) -> Result<(), CellError> {
        if self.made.contains(path) || self.covered(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.directories(above, 0o755, self.is_private(above))?;
        }
        self.before.push(Step::Link {
            at: below_root(path)?,
            to: c_path(to)?,
        });
        self.made.insert(path.to_owned());
        self.links.push(path.to_owned());
        Ok(())
    }

    fn file(&mut self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), CellError> {
        if let Some(above) = path.parent() {
            self.directories(above, 0o755, self.is_private(above))?;
        }
        if self.made.insert(path.to_owned()) {
            self.before.push(Step::File {
                at: below_root(path)?,
                bytes: bytes.to_vec(),
                mode,
            });
        }
        Ok(())
    }

    fn devices(&mut self) -> Result<(), CellError> {
        for path in DEVICES.iter().map(Path::new) {
            if self.host.entries.contains_key(path) {
                self.file(path, b"", 0o666)?;
                let source = self.source(path, Access::Device, false, false)?;
                let at = below_root(path)?;
                self.after.push(Step::Attach { source, at });
            }
        }
        self.file(Path::new(CONSOLE), b"", 0o600)?;
        self.after.push(Step::Console {
            at: below_root(Path::new(CONSOLE))?,
        });
        self.before.push(Step::Directory {
            at: EMPTY_DIRECTORY.into(),
            mode: 0o555,
            own: false,
        });
        self.before.push(Step::File {
            at: EMPTY_FILE.into(),
            bytes: Vec::new(),
            mode: 0o444,
        });
        Ok(())
    }

    /// Home, workspace, and what `read` and `write` name; what contains comes first.
    fn shown(&mut self) -> Result<(), CellError> {
        let confinement = self.confinement;
        let mut wanted: Vec<(&Path, Shown)> = Vec::new();
        wanted.extend(
            confinement
                .home
                .iter()
                .map(|it| (it.as_path(), Shown::Home)),
        );
        wanted.extend(
            confinement
                .workspace
                .iter()
                .map(|it| (it.as_path(), Shown::Workspace)),
        );
        wanted.extend(
            confinement
                .write
                .iter()
                .map(|it| (it.as_path(), Shown::Write)),
        );
        wanted.extend(
            confinement
                .read
                .iter()
                .map(|it| (it.as_path(), Shown::Read)),
        );
        if let Some((path, _)) = wanted.iter().find(|(path, _)| !plain(path)) {
            return Err(CellError::on("path", Errno::INVAL, *path));
        }
        wanted.sort_by_key(|(path, shown)| (path.components().count(), *shown));
        for (path, shown) in wanted {
            self.show(path, shown)?;
        }
        Ok(())
    }

    fn show(&mut self, named: &Path, shown: Shown) -> Result<(), CellError> {
        let Some(resolved) = self.host.resolved.get(named) else {
            return match shown {
                Shown::Workspace => Err(CellError::on("workspace", Errno::NOENT, named)),
                // A home that is not there is empty all the same.
                Shown::Home => self.home(named),
                Shown::Write | Shown::Read => Ok(()),
            };
        };
        let (path, directory) = (resolved.path.clone(), resolved.directory);
        if shown == Shown::Home {
            self.alias(named, &path)?;
            return self.home(&path);
        }
        if shown == Shown::Read && self.covered(&path) {
            return self.alias(named, &path);
        }
        if !self.covered(&path) {
            if directory {
                self.directories(&path, 0o755, self.is_private(&path))?;
            } else {
                self.file(&path, b"", 0o600)?;
            }
        }
        let access = if shown == Shown::Read {
            Access::Read
        } else {
            Access::Write
        };
        let source = self.source(&path, access, shown == Shown::Workspace, true)?;
        let at = below_root(&path)?;
        if shown == Shown::Workspace && self.confinement.overlay {
            self.before.push(Step::Layer { lower: source });
            self.after.push(Step::AttachOverlay { at });
        } else {
            self.after.push(Step::Attach { source, at });
        }
        if shown == Shown::Workspace {
            self.workspace = Some(path.clone());
        }
        self.bound.push(path.clone());
        self.alias(named, &path)
    }

    /// A name that reaches its path through symbolic links does so inside too.
    fn alias(&mut self, named: &Path, path: &Path) -> Result<(), CellError> {
        let reached = self.links.iter().any(|link| named.starts_with(link));
        if named == path || reached || self.covered(named) {
            return Ok(());
        }
        self.link(named, path)
    }

    /// Names: the host's configuration where it lies elsewhere, the gate's for allow lists.
    fn resolver(&mut self) -> Result<(), CellError> {
        let real = self.host.resolved.get(Path::new(RESOLVER));
        let real = real.map(|it| it.path.clone());
        match &self.confinement.network {
            Network::None => Ok(()),
            Network::Full => match real {
                Some(path) if !self.covered(&path) => {
                    self.file(&path, b"", 0o444)?;
                    let source = self.source(&path, Access::Read, false, false)?;
                    let at = below_root(&path)?;
                    self.after.push(Step::Attach { source, at });
                    Ok(())
                }
                Some(_) | None => Ok(()),
            },
            Network::AllowList { .. } => {
                let text = format!("nameserver {GATE_ADDRESS}\n");
                match real {
                    Some(path) if !self.covered(&path) => self.file(&path, text.as_bytes(), 0o444),
                    Some(path) => {
                        self.file(Path::new(OWN_RESOLVER), text.as_bytes(), 0o444)?;
                        let from = below_root(Path::new(OWN_RESOLVER))?;
                        let at = below_root(&path)?;
                        self.after.push(Step::Over { from, at });
                        Ok(())
                    }
                    None => Ok(()),
                }
            }
        }
    }

    fn finish(mut self) -> Result<CellPlan, CellError> {
        let own_network =
            self.confinement.network != Network::Full && !self.without(Ability::NetworkNamespace);
        if own_network {
            self.before.insert(0, Step::Loopback);
        }
        if self.slots > SLOTS_MAX {
            return Err(CellError::new("private directory", Errno::TOOBIG));
        }
        let mapped = !self.without(Ability::MappedWorkspace);
        let mut steps = self.before;
        steps.push(Step::Seal);
        steps.extend(self.after);
        Ok(CellPlan {
            sources: self.sources,
            steps,
            own_network,
            overlay: self.confinement.overlay,
            mapped,
            workspace: self.workspace,
        })
    }
}

/// Why a path is shown, in the order in which one takes precedence at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Home,
    Workspace,
    Write,
    Read,
}
