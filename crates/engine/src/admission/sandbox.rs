//! What isolation level high exposes of this machine: merges the request's sandbox options with the
//! settings. Reads the file system to resolve links; changes nothing.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ostler_model::sandbox_spec::{FORWARDS_MAX, HOSTS_MAX, PATHS_MAX};
use ostler_model::{ByteString, IsolationLevel, NetworkAccess, SandboxSpec};

use super::isolation_level::effective_level;
use super::sandbox_bounds::{
    check_count, check_within_settings, host_count, invalid, require_level_high,
};
use super::writable_paths::{self, WritableRules};
use super::{credentials, environment, path_facts};
use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::{IsolationSettings, Settings};
use crate::shell_script_dir::script_dir;
use ostler_model::SandboxOptions;

/// Directories that every sandbox shows read-only: entries of the search path there need no
/// exposure.
const SYSTEM_DIRS_VISIBLE: [&str; 17] = [
    "/bin", "/boot", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt",
    "/proc", "/run", "/sbin", "/snap", "/sys", "/usr",
];
/// Directories that are private in a sandbox: a command that works there has no workspace.
const PRIVATE_DIRS: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// Directories of the kernel's file systems, where no home can be.
const KERNEL_DIRS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Names of directories that hold programs to be run by name.
const PROGRAM_DIRS: [&str; 4] = ["bin", "sbin", "shims", "Scripts"];

/// The sandbox of a request at level high; none at other levels.
///
/// # Errors
/// For invalid paths and hosts, options that only level high can grant, and options that loosen
/// strict settings.
pub fn resolve(settings: &Settings, request: &StartRequest) -> Result<Option<SandboxSpec>, Error> {
    let isolation = &settings.isolation;
    let options = &request.options.sandbox;
    match effective_level(isolation, request)? {
        other @ (IsolationLevel::Basic | IsolationLevel::Medium | IsolationLevel::Container) => {
            require_level_high(other, options)?;
            return Ok(None);
        }
        IsolationLevel::High => {}
    }
    if isolation.minimum >= IsolationLevel::High {
        check_within_settings(isolation, options)?;
    }
    check_count(
        "network hosts",
        host_count(options.network.as_ref()),
        HOSTS_MAX,
    )?;
    let inherit = request.options.inherit_env.unwrap_or(settings.inherit_env);
    let env = environment::build(settings, request, inherit);
    // Where the settings require level high, they alone decide what of the host is hidden and
    // exposed.
    let tight = isolation.minimum >= IsolationLevel::High;
    let env_source = if tight { &settings.base_env } else { &env };
    let paths = PathContext::of(settings, request, env_source);
    let workspace = paths.workspace(&request.cwd, options.workspace.as_ref())?;
    let mut read = canonical_paths("read", &options.read)?;
    for path in &read {
        check_readable(path.as_path())?;
    }
    read.extend(isolation.read.iter().cloned());
    read.extend(paths.visible());
    read.extend(paths.search_path(env_source, workspace.as_deref()));
    let mut write = canonical_paths("write", &options.write)?;
    for path in &write {
        paths.check_writable("write", path.as_path())?;
    }
    write.extend(isolation.write.iter().cloned());
    let mut hide = paths.hidden(workspace.as_deref());
    let named = [
        &options.read,
        &isolation.read,
        &options.write,
        &isolation.write,
    ];
    let named: Vec<&Path> = named
        .into_iter()
        .flatten()
        .map(ByteString::as_path)
        .collect();
    let visible = read.iter().chain(&write).map(ByteString::as_path);
    let visible: Vec<&Path> = visible.collect();
    hide.extend(paths.credentials_to_hide(workspace.as_deref(), &visible, &named));
    let home = paths.home;
    Ok(Some(SandboxSpec {
        overlay: options.overlay && workspace.is_some(),
        workspace: workspace.map(ByteString::from),
        home: home.map(ByteString::from),
        read: dedup(read),
        write: dedup(write),
        hide: dedup(hide),
        scripts: shell_scripts(settings, request),
        protect: isolation.protect.clone(),
        network: options
            .network
            .clone()
            .unwrap_or_else(|| isolation.network.clone()),
        forwards: options.forwards.clone(),
        without: Vec::new(),
    }))
    .and_then(|draft| check_overlay_workspace(options, draft))
    .and_then(check_forwards)
}

/// The directory of the requested shell's integration scripts, and of no other shell's.
fn shell_scripts(settings: &Settings, request: &StartRequest) -> Option<ByteString> {
    let session = request.shell.as_ref()?;
    script_dir(&settings.state_dir, session.kind).ok()
}

/// The initial working directory: at level high without symbolic links, since their targets may not
/// be exposed.
#[must_use]
pub fn effective_cwd(cwd: &ByteString, sandbox: Option<&SandboxSpec>) -> ByteString {
    match sandbox {
        Some(_) => canonical(cwd.as_path()).map_or_else(|| cwd.clone(), ByteString::from),
        None => cwd.clone(),
    }
}

/// In the host's network namespace every port is the host's already.
fn check_forwards(sandbox: Option<SandboxSpec>) -> Result<Option<SandboxSpec>, Error> {
    let Some(resolved) = &sandbox else {
        return Ok(sandbox);
    };
    check_count("forwarded ports", resolved.forwards.len(), FORWARDS_MAX)?;
    match resolved.forwards.first() {
        Some(first) if resolved.network == NetworkAccess::Full => {
            let problem = "with network full its ports are the host's own";
            Err(invalid("forward", &first.to_string(), problem))
        }
        Some(_) | None => Ok(sandbox),
    }
}

fn check_overlay_workspace(
    options: &SandboxOptions,
    sandbox: Option<SandboxSpec>,
) -> Result<Option<SandboxSpec>, Error> {
    let has_overlay = sandbox.as_ref().is_some_and(|it| it.overlay);
    if options.overlay && !has_overlay {
        let problem = "the working directory is private at level high: nothing would be kept";
        return Err(invalid("workspace", "overlay", problem));
    }
    Ok(sandbox)
}

/// Directories that decide where a workspace may be; all without symbolic links.
pub(super) struct PathContext<'a> {
    settings: &'a IsolationSettings,
    /// The home directory of the engine's own environment.
    own_home: Option<PathBuf>,
    /// The command's home directory, which is private in the sandbox.
    home: Option<PathBuf>,
    /// The engine's own directories, and those that the settings hide.
    hidden: Vec<PathBuf>,
    /// The workspaces that the settings permit.
    workspaces: Option<Vec<PathBuf>>,
    /// Where the directories of contexts are created.
    contexts: PathBuf,
    /// Whether workspaces of other users are permitted.
    any_owner: bool,
    /// The directory that was created for the context of this start.
    context: Option<PathBuf>,
}

/// A path that is hidden: where its name has symbolic links, by that name as well, so that a command
/// does not make them lead elsewhere.
fn given_and_canonical(path: &Path) -> impl Iterator<Item = PathBuf> {
    let canonical = canonical_or_self(path);
    let given = (is_plain(path) && path != canonical).then(|| path.to_owned());
    given.into_iter().chain([canonical])
}

impl<'a> PathContext<'a> {
    fn of(
        settings: &'a Settings,
        request: &StartRequest,
        env: &[(ByteString, ByteString)],
    ) -> Self {
        let contexts = &settings.contexts.directory;
        let context = request.context.as_ref();
        let isolation = &settings.isolation;
        let home =
            |env| environment::value(env, b"HOME").and_then(|it| canonical_home(it.as_path()));
        let listed = &isolation.workspaces;
        let state = std::iter::once(settings.state_dir.as_path());
        let hidden = isolation.hide.iter().map(ByteString::as_path).chain(state);
        Self {
            any_owner: false,
            contexts: canonical_or_self(contexts),
            context: context.map(|id| canonical_or_self(&contexts.join(id.as_str()))),
            settings: isolation,
            own_home: home(&settings.base_env),
            home: home(env),
            hidden: hidden.flat_map(given_and_canonical).collect(),
            workspaces: (!listed.is_empty()).then(|| {
                listed
                    .iter()
                    .map(|it| canonical_or_self(it.as_path()))
                    .collect()
            }),
        }
    }

    /// The same for a container. Root may let one write where another user owns it: of that user are
    /// the commands of images that bring no root.
    pub(super) fn of_container(
        settings: &'a Settings,
        request: &StartRequest,
        env: &[(ByteString, ByteString)],
    ) -> Self {
        Self {
            any_owner: rustix::process::geteuid().is_root(),
            ..Self::of(settings, request, env)
        }
    }

    /// The engine's directories and those that the settings hide; those of contexts, unless it works
    /// in one of them; and the home directory of the
    /// engine's user, where a command has another one and does not work below it.
    fn hidden(&self, workspace: Option<&Path>) -> Vec<ByteString> {
        let own_home = self.own_home.iter().filter(|own| {
            self.home.as_ref() != Some(*own) && !workspace.is_some_and(|it| it.starts_with(own))
        });
        let contexts = std::iter::once(&self.contexts)
            .filter(|contexts| !workspace.is_some_and(|it| it.starts_with(contexts)))
            .filter(|contexts| contexts.symlink_metadata().is_ok());
        let all = self.hidden.iter().chain(own_home).chain(contexts);
        all.map(|path| ByteString::from(path.as_path())).collect()
    }

    /// The writable directory: the requested one, else the working directory.
    pub(super) fn workspace(
        &self,
        cwd: &ByteString,
        requested: Option<&ByteString>,
    ) -> Result<Option<PathBuf>, Error> {
        let path_text = requested.unwrap_or(cwd);
        let path = canonical_path("workspace", path_text)?;
        if !path.is_dir() {
            return Err(invalid(
                "workspace",
                &path_text.to_string(),
                "it is not a directory",
            ));
        }
        let mut private = PRIVATE_DIRS.iter().map(Path::new);
        if private.any(|private| private == path) {
            return match requested {
                Some(_) => {
                    let problem = "it is private at level high: nothing of the host's is there";
                    Err(invalid("workspace", &path_text.to_string(), problem))
                }
                None => Ok(None),
            };
        }
        self.check_writable("workspace", &path)?;
        if requested.is_some() && !canonical_path("working directory", cwd)?.starts_with(&path) {
            let problem = format!("it is not below the workspace {}", path.display());
            return Err(invalid("working directory", &cwd.to_string(), &problem));
        }
        Ok(Some(path))
    }

    /// A writable directory must be the caller's own, or permitted by the settings.
    fn check_writable(&self, what: &'static str, path: &Path) -> Result<(), Error> {
        let path_text = || path.display().to_string();
        let facts = path_facts::read_path_facts(path).map_err(|error| {
            invalid(
                what,
                &path_text(),
                &format!("it cannot be looked at: {error}"),
            )
        })?;
        let paths = |list: &'a [ByteString]| list.iter().map(ByteString::as_path).collect();
        let rules = WritableRules {
            uid: rustix::process::geteuid().as_raw(),
            own_home: self.own_home.as_deref(),
            any_owner: self.any_owner,
            other_homes: self.home.iter().map(PathBuf::as_path).collect(),
            toolchains: paths(&self.settings.home_visible),
            hidden: self.hidden.iter().map(PathBuf::as_path).collect(),
            workspaces: self
                .workspaces
                .as_ref()
                .map(|listed| listed.iter().map(PathBuf::as_path).collect()),
            context: self.context.as_deref(),
        };
        writable_paths::check(&facts, &rules)
            .map_err(|refusal| invalid(what, &path_text(), &refusal.to_string()))
    }

    /// Existing paths of the home directory that stay visible.
    fn visible(&self) -> Vec<ByteString> {
        let Some(home) = &self.home else {
            return Vec::new();
        };
        let candidates = self
            .settings
            .home_visible
            .iter()
            .filter(|it| !credentials::is_within(it.as_path()))
            .map(|it| home.join(it.as_path()));
        candidates
            .filter(|path| path.symlink_metadata().is_ok())
            .map(ByteString::from)
            .collect()
    }

    /// Directories of the search path that nothing else exposes; of a virtual environment or a
    /// toolchain the whole of it, since its programs need the files beside `bin`.
    fn search_path(
        &self,
        env: &[(ByteString, ByteString)],
        workspace: Option<&Path>,
    ) -> Vec<ByteString> {
        let path = environment::value(env, b"PATH");
        let parts = path
            .map_or(&[] as &[u8], ByteString::as_bytes)
            .split(|it| *it == b':');
        let is_visible = |path: &Path| {
            SYSTEM_DIRS_VISIBLE
                .iter()
                .any(|shown| path.starts_with(shown))
                || workspace.is_some_and(|workspace| path.starts_with(workspace))
        };
        parts
            .map(|part| ByteString::from(part).as_path().to_owned())
            .filter(|path| is_plain(path) && path.is_dir() && !is_visible(path))
            .filter_map(|path| self.toolchain_root(path))
            .map(ByteString::from)
            .collect()
    }

    fn toolchain_root(&self, bin: PathBuf) -> Option<PathBuf> {
        let whole = bin.parent().filter(|prefix| {
            let named = bin.file_name().is_some_and(|name| name == "bin");
            let beside = prefix.join("lib").is_dir() || prefix.join("pyvenv.cfg").is_file();
            named && beside && self.is_showable(prefix)
        });
        let root = whole.map_or(bin.clone(), Path::to_owned);
        self.is_showable(&root).then_some(root)
    }

    /// Whether exposing it reveals nothing that level high hides: of a home directory, only
    /// directories that programs are run from.
    fn is_showable(&self, path: &Path) -> bool {
        let Some(real) = canonical(path) else {
            return false;
        };
        let homes = || self.own_home.iter().chain(&self.home);
        let is_above = |dir: &PathBuf| dir.starts_with(&real);
        let is_below = |dir: &PathBuf| real.starts_with(dir);
        let overlaps_hidden = self.hidden.iter().any(|dir| is_above(dir) || is_below(dir));
        let is_in_dot_dir = |home: &PathBuf| {
            let below = real.strip_prefix(home).ok();
            let first = below.and_then(|below| below.components().next());
            first.is_some_and(|it| it.as_os_str().as_encoded_bytes().starts_with(b"."))
        };
        let is_program_dir = || {
            let named = |bin: &&str| real.ends_with(bin) || real.join(bin).is_dir();
            PROGRAM_DIRS.iter().any(named)
        };
        let is_credential = |home: &PathBuf| {
            let below = real.strip_prefix(home).ok();
            below.is_some_and(credentials::is_within)
        };
        !overlaps_hidden
            && !homes().any(is_above)
            && !homes().any(is_credential)
            && (!homes().any(is_in_dot_dir) || is_program_dir())
    }

    /// Credentials within the exposed directories. Paths that a request or the settings name
    /// explicitly stay exposed, and so do parents of a workspace.
    fn credentials_to_hide(
        &self,
        workspace: Option<&Path>,
        shown: &[&Path],
        named: &[&Path],
    ) -> Vec<ByteString> {
        let shown = shown.iter().copied().chain(workspace);
        let visible: Vec<(PathBuf, bool)> = shown
            .flat_map(|path| {
                [path.to_owned(), canonical_or_self(path)].map(|it| (it, named.contains(&path)))
            })
            .collect();
        let homes: BTreeSet<&PathBuf> = self.own_home.iter().chain(&self.home).collect();
        let stores = homes
            .into_iter()
            .flat_map(|home| credentials::find_stores(home));
        let is_exposed = |store: &PathBuf| {
            let both = [store.clone(), canonical_or_self(store)];
            let is_visible = |path: &Path| {
                let mut all = visible.iter();
                all.any(|(it, named)| path.starts_with(it) && !(*named && path == it))
            };
            let holds_workspace = |path: &PathBuf| workspace.is_some_and(|it| it.starts_with(path));
            both.iter().any(|it| is_visible(it)) && !both.iter().any(holds_workspace)
        };
        stores.filter(is_exposed).map(ByteString::from).collect()
    }
}

/// A command sees no processes but its own: nothing that has the kernel's list of all is shown.
fn check_readable(path: &Path) -> Result<(), Error> {
    let refused = |problem: &str| Err(invalid("read", &path.display().to_string(), problem));
    if path == Path::new("/") {
        return refused("it holds everything; name the directories that are needed");
    }
    match path_facts::procfs_mounts() {
        Ok(mounts) if mounts.iter().any(|mount| path.starts_with(mount)) => {
            refused("it is of the host's processes (proc), which level high does not show")
        }
        Ok(mounts) if mounts.iter().any(|mount| mount.starts_with(path)) => {
            refused("the host's processes (proc) are below it, which level high does not show")
        }
        Ok(_) => Ok(()),
        Err(error) => refused(&format!(
            "the mounts of this machine cannot be read: {error}"
        )),
    }
}

/// Validates paths of a request: few, absolute, existing.
fn canonical_paths(what: &'static str, paths: &[ByteString]) -> Result<Vec<ByteString>, Error> {
    check_count(what, paths.len(), PATHS_MAX)?;
    paths
        .iter()
        .map(|path| canonical_path(what, path).map(ByteString::from))
        .collect()
}

pub(super) fn canonical_path(what: &'static str, path: &ByteString) -> Result<PathBuf, Error> {
    let path_text = || path.to_string();
    if path.has_nul() {
        return Err(invalid(what, &path_text(), "it contains a NUL byte"));
    }
    if !path.as_path().is_absolute() {
        return Err(invalid(what, &path_text(), "it is not absolute"));
    }
    std::fs::canonicalize(path.as_path())
        .map_err(|error| invalid(what, &path_text(), &format!("it cannot be found: {error}")))
}

fn canonical(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

pub(super) fn canonical_or_self(path: &Path) -> PathBuf {
    canonical(path).unwrap_or_else(|| path.to_owned())
}

/// The home directory without symbolic links; none where the variable names no directory of its
/// own.
fn canonical_home(home: &Path) -> Option<PathBuf> {
    let home = home.is_absolute().then(|| canonical(home)).flatten()?;
    let mut kernel = KERNEL_DIRS.iter();
    let is_kernels = kernel.any(|it| home.starts_with(it));
    (home != Path::new("/") && !is_kernels).then_some(home)
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.components().all(|part| part != Component::ParentDir)
}

fn dedup(paths: Vec<ByteString>) -> Vec<ByteString> {
    let mut unique: Vec<ByteString> = Vec::with_capacity(paths.len());
    for path in paths {
        if !unique.contains(&path) {
            unique.push(path);
        }
    }
    unique
}
