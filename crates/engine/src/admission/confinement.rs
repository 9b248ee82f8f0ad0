//! What level high shows of this machine: the request's wishes and the settings made into one
//! [`Confinement`] (D8). Looks at the file system to resolve links; changes nothing.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ostler_model::confinement::{FORWARDS_MAX, HOSTS_MAX, PATHS_MAX};
use ostler_model::{Confinement, IsolationLevel, Network, Text};

use super::writable::{self, Grounds};
use super::{credentials, environment, path_facts};
use crate::error::Error;
use crate::request::{Confine, StartRequest};
use crate::settings::{IsolationSettings, Settings};
use crate::shell;

/// Shown read-only to everybody: what of the search path lies there needs no showing.
const SHOWN: [&str; 17] = [
    "/bin", "/boot", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt",
    "/proc", "/run", "/sbin", "/snap", "/sys", "/usr",
];
/// Private inside: a command that works there has no workspace.
const PRIVATE: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// Names of directories that hold programs to be run by name.
const PROGRAM_DIRS: [&str; 4] = ["bin", "sbin", "shims", "Scripts"];

/// The level that holds for a request.
///
/// # Errors
/// When it asks for less than the settings' minimum.
pub fn level(
    settings: &IsolationSettings,
    request: &StartRequest,
) -> Result<IsolationLevel, Error> {
    let level = request
        .level
        .unwrap_or(settings.default.max(settings.minimum));
    if level < settings.minimum {
        let problem = format!("the settings allow no level below '{}'", settings.minimum);
        return Err(wrong("isolation level", &level.to_string(), &problem));
    }
    Ok(level)
}

/// The walls of a request at level high; none at the others.
///
/// # Errors
/// For paths and hosts that cannot be, wishes that only level high can grant, and wishes that
/// loosen what the settings hold tight.
pub fn draft(settings: &Settings, request: &StartRequest) -> Result<Option<Confinement>, Error> {
    let isolation = &settings.isolation;
    let wishes = &request.confine;
    match level(isolation, request)? {
        low @ (IsolationLevel::Basic | IsolationLevel::Medium) => {
            only_high(low, wishes)?;
            return Ok(None);
        }
        IsolationLevel::High => {}
        IsolationLevel::Container => return Ok(None),
    }
    if isolation.minimum >= IsolationLevel::High {
        held_tight(isolation, wishes)?;
    }
    at_most("network hosts", hosts(wishes.network.as_ref()), HOSTS_MAX)?;
    let inherit = request.inherit_env.unwrap_or(settings.inherit_env);
    let env = environment::build(settings, request, inherit);
    // What is hidden and what is shown of the host follows from settings alone where they hold
    // requests to level high.
    let tight = isolation.minimum >= IsolationLevel::High;
    let judged = if tight { &settings.base_env } else { &env };
    let ground = Ground::of(settings, judged);
    let workspace = ground.workspace(&request.cwd, wishes.workspace.as_ref())?;
    let mut read = given("read", &wishes.read)?;
    read.extend(isolation.read.iter().cloned());
    read.extend(ground.visible());
    read.extend(ground.search_path(judged, workspace.as_deref()));
    let mut write = given("write", &wishes.write)?;
    for path in &write {
        ground.may_be_written("write", path.as_path())?;
    }
    write.extend(isolation.write.iter().cloned());
    let mut hide = ground.hidden(workspace.as_deref());
    let named = [
        &wishes.read,
        &isolation.read,
        &wishes.write,
        &isolation.write,
    ];
    let named: Vec<&Path> = named.into_iter().flatten().map(Text::as_path).collect();
    let shown = read.iter().chain(&write).map(Text::as_path).collect();
    hide.extend(ground.credentials(workspace.as_deref(), (shown, &named)));
    let home = ground.home;
    Ok(Some(Confinement {
        overlay: wishes.overlay && workspace.is_some(),
        workspace: workspace.map(Text::from),
        home: home.map(Text::from),
        read: distinct(read),
        write: distinct(write),
        hide: distinct(hide),
        scripts: scripts(settings, request),
        protect: isolation.protect.clone(),
        network: wishes
            .network
            .clone()
            .unwrap_or_else(|| isolation.network.clone()),
        forwards: wishes.forwards.clone(),
        without: Vec::new(),
    }))
    .and_then(|draft| overlay_has_ground(wishes, draft))
    .and_then(forwards_lead_inside)
}

/// Where the scripts of the shell lie that is asked for: its own, and no other's.
fn scripts(settings: &Settings, request: &StartRequest) -> Option<Text> {
    let session = request.shell.as_ref()?;
    shell::scripts(&settings.state_dir, session.kind).ok()
}

/// Where the command begins: at level high without links, since what they point to may not be
/// shown.
#[must_use]
pub fn directory(cwd: &Text, confinement: Option<&Confinement>) -> Text {
    match confinement {
        Some(_) => real(cwd.as_path()).map_or_else(|| cwd.clone(), Text::from),
        None => cwd.clone(),
    }
}

/// In the host's own network every port is the host's already.
fn forwards_lead_inside(draft: Option<Confinement>) -> Result<Option<Confinement>, Error> {
    let Some(walls) = &draft else {
        return Ok(draft);
    };
    at_most("forwarded ports", walls.forwards.len(), FORWARDS_MAX)?;
    match walls.forwards.first() {
        Some(first) if walls.network == Network::Full => {
            let problem = "with network full its ports are the host's own";
            Err(wrong("forward", &first.to_string(), problem))
        }
        Some(_) | None => Ok(draft),
    }
}

fn overlay_has_ground(
    wishes: &Confine,
    draft: Option<Confinement>,
) -> Result<Option<Confinement>, Error> {
    let kept_apart = draft.as_ref().is_some_and(|it| it.overlay);
    if wishes.overlay && !kept_apart {
        let problem = "the working directory is private at level high: nothing would be kept";
        return Err(wrong("workspace", "overlay", problem));
    }
    Ok(draft)
}

/// Directories that matter to where a workspace may be; all of them without links.
struct Ground<'a> {
    settings: &'a IsolationSettings,
    /// The home directory of the engine's own environment.
    own_home: Option<PathBuf>,
    /// The command's, which is private inside.
    home: Option<PathBuf>,
    /// The engine's own directories, and what the settings hide.
    hidden: Vec<PathBuf>,
    /// The settings' permitted workspaces.
    workspaces: Option<Vec<PathBuf>>,
}

impl<'a> Ground<'a> {
    fn of(settings: &'a Settings, env: &[(Text, Text)]) -> Self {
        let isolation = &settings.isolation;
        let home = |env| environment::value(env, b"HOME").and_then(|it| real_home(it.as_path()));
        let listed = &isolation.workspaces;
        let state = std::iter::once(settings.state_dir.as_path());
        let hidden = isolation.hide.iter().map(Text::as_path).chain(state);
        Self {
            settings: isolation,
            own_home: home(&settings.base_env),
            home: home(env),
            hidden: hidden.map(real_or).collect(),
            workspaces: (!listed.is_empty())
                .then(|| listed.iter().map(|it| real_or(it.as_path())).collect()),
        }
    }

    /// The engine's directories and what the settings hide; and the home directory of the
    /// engine's user, where a command has another one and does not work below it.
    fn hidden(&self, workspace: Option<&Path>) -> Vec<Text> {
        let own_home = self.own_home.iter().filter(|own| {
            self.home.as_ref() != Some(*own) && !workspace.is_some_and(|it| it.starts_with(own))
        });
        let all = self.hidden.iter().chain(own_home);
        all.map(|path| Text::from(path.as_path())).collect()
    }

    /// The writable directory: the one asked for, else the working directory.
    fn workspace(&self, cwd: &Text, asked: Option<&Text>) -> Result<Option<PathBuf>, Error> {
        let named = asked.unwrap_or(cwd);
        let path = existing("workspace", named)?;
        if !path.is_dir() {
            return Err(wrong(
                "workspace",
                &named.to_string(),
                "it is not a directory",
            ));
        }
        if PRIVATE.iter().any(|private| Path::new(private) == path) {
            return Ok(None);
        }
        self.may_be_written("workspace", &path)?;
        if asked.is_some() && !existing("working directory", cwd)?.starts_with(&path) {
            let problem = format!("it is not below the workspace {}", path.display());
            return Err(wrong("working directory", &cwd.to_string(), &problem));
        }
        Ok(Some(path))
    }

    /// What is shown writable is the caller's own, or the settings permit it.
    fn may_be_written(&self, what: &'static str, path: &Path) -> Result<(), Error> {
        let told = || path.display().to_string();
        let facts = path_facts::look_up(path)
            .map_err(|error| wrong(what, &told(), &format!("it cannot be looked at: {error}")))?;
        let paths = |list: &'a [Text]| list.iter().map(Text::as_path).collect();
        let grounds = Grounds {
            uid: rustix::process::geteuid().as_raw(),
            own_home: self.own_home.as_deref(),
            other_homes: self.home.iter().map(PathBuf::as_path).collect(),
            toolchains: paths(&self.settings.home_visible),
            hidden: self.hidden.iter().map(PathBuf::as_path).collect(),
            workspaces: self
                .workspaces
                .as_ref()
                .map(|listed| listed.iter().map(PathBuf::as_path).collect()),
        };
        writable::check(&facts, &grounds)
            .map_err(|refusal| wrong(what, &told(), &refusal.to_string()))
    }

    /// Paths of the home directory that stay visible and are there.
    fn visible(&self) -> Vec<Text> {
        let Some(home) = &self.home else {
            return Vec::new();
        };
        let there = self
            .settings
            .home_visible
            .iter()
            .filter(|it| !credentials::is_within(it.as_path()))
            .map(|it| home.join(it.as_path()));
        there
            .filter(|path| path.symlink_metadata().is_ok())
            .map(Text::from)
            .collect()
    }

    /// Directories of the search path that nothing else shows; of a virtual environment or a
    /// toolchain the whole of it, since its programs need what stands beside `bin`.
    fn search_path(&self, env: &[(Text, Text)], workspace: Option<&Path>) -> Vec<Text> {
        let path = environment::value(env, b"PATH");
        let parts = path
            .map_or(&[] as &[u8], Text::as_bytes)
            .split(|it| *it == b':');
        let shown = |path: &Path| {
            SHOWN.iter().any(|shown| path.starts_with(shown))
                || workspace.is_some_and(|workspace| path.starts_with(workspace))
        };
        parts
            .map(|part| Text::from(part).as_path().to_owned())
            .filter(|path| is_plain(path) && path.is_dir() && !shown(path))
            .filter_map(|path| self.toolchain(path))
            .map(Text::from)
            .collect()
    }

    fn toolchain(&self, bin: PathBuf) -> Option<PathBuf> {
        let whole = bin.parent().filter(|prefix| {
            let named = bin.file_name().is_some_and(|name| name == "bin");
            let beside = prefix.join("lib").is_dir() || prefix.join("pyvenv.cfg").is_file();
            named && beside && self.may_be_shown(prefix)
        });
        let shown = whole.map_or(bin.clone(), Path::to_owned);
        self.may_be_shown(&shown).then_some(shown)
    }

    /// Whether showing it shows nothing that level high hides: of a home directory only what
    /// programs are run from.
    fn may_be_shown(&self, path: &Path) -> bool {
        let Some(real) = real(path) else {
            return false;
        };
        let homes = || self.own_home.iter().chain(&self.home);
        let holds = |dir: &PathBuf| dir.starts_with(&real);
        let inside = |dir: &PathBuf| real.starts_with(dir);
        let hides = self.hidden.iter().any(|dir| holds(dir) || inside(dir));
        let settings = |home: &PathBuf| {
            let below = real.strip_prefix(home).ok();
            let first = below.and_then(|below| below.components().next());
            first.is_some_and(|it| it.as_os_str().as_encoded_bytes().starts_with(b"."))
        };
        let programs = || {
            let named = |bin: &&str| real.ends_with(bin) || real.join(bin).is_dir();
            PROGRAM_DIRS.iter().any(named)
        };
        let credentials = |home: &PathBuf| {
            let below = real.strip_prefix(home).ok();
            below.is_some_and(credentials::is_within)
        };
        !hides
            && !homes().any(holds)
            && !homes().any(credentials)
            && (!homes().any(settings) || programs())
    }

    /// Credentials that lie within what is shown. What a request or the settings name by itself
    /// is shown, and what a workspace lies in.
    fn credentials(
        &self,
        workspace: Option<&Path>,
        (mut shown, named): (Vec<&Path>, &[&Path]),
    ) -> Vec<Text> {
        shown.extend(workspace);
        let shown: Vec<(PathBuf, bool)> = shown
            .into_iter()
            .flat_map(|path| [path.to_owned(), real_or(path)].map(|it| (it, named.contains(&path))))
            .collect();
        let homes: BTreeSet<&PathBuf> = self.own_home.iter().chain(&self.home).collect();
        let stores = homes.into_iter().flat_map(|home| credentials::found(home));
        let meant = |store: &PathBuf| {
            let both = [store.clone(), real_or(store)];
            let is_shown = |path: &Path| {
                let mut all = shown.iter();
                all.any(|(it, named)| path.starts_with(it) && !(*named && path == it))
            };
            let holds_workspace = |path: &PathBuf| workspace.is_some_and(|it| it.starts_with(path));
            both.iter().any(|it| is_shown(it)) && !both.iter().any(holds_workspace)
        };
        stores.filter(meant).map(Text::from).collect()
    }
}

/// Paths of a request: few, absolute, there.
fn given(what: &'static str, paths: &[Text]) -> Result<Vec<Text>, Error> {
    at_most(what, paths.len(), PATHS_MAX)?;
    paths
        .iter()
        .map(|path| existing(what, path).map(Text::from))
        .collect()
}

fn existing(what: &'static str, path: &Text) -> Result<PathBuf, Error> {
    let told = || path.to_string();
    if path.has_nul() {
        return Err(wrong(what, &told(), "it contains a NUL byte"));
    }
    if !path.as_path().is_absolute() {
        return Err(wrong(what, &told(), "it is not absolute"));
    }
    std::fs::canonicalize(path.as_path())
        .map_err(|error| wrong(what, &told(), &format!("it cannot be found: {error}")))
}

fn real(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

fn real_or(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|| path.to_owned())
}

/// The home directory without links; none where the variable names no directory of its own.
fn real_home(home: &Path) -> Option<PathBuf> {
    let home = home.is_absolute().then(|| real(home)).flatten()?;
    (home != Path::new("/")).then_some(home)
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.components().all(|part| part != Component::ParentDir)
}

/// Wishes that mean nothing below level high would be granted silently by doing nothing.
fn only_high(level: IsolationLevel, wishes: &Confine) -> Result<(), Error> {
    let Confine {
        workspace,
        overlay,
        network,
        read,
        write,
        forwards,
        allow_degraded,
    } = wishes;
    // To reach all of the network and to do without walls is what lower levels do.
    let _granted = allow_degraded;
    let asked = [
        (workspace.is_some(), "workspace"),
        (*overlay, "overlay"),
        (
            network.as_ref().is_some_and(|it| *it != Network::Full),
            "network",
        ),
        (!read.is_empty(), "read"),
        (!write.is_empty(), "write"),
        (!forwards.is_empty(), "forward"),
    ];
    match asked.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(wrong(
            "request for",
            what,
            &format!("there are walls for it only at isolation level high, not at {level}"),
        )),
        None => Ok(()),
    }
}

/// Where level high is the minimum, requests show and reach nothing beyond the settings.
fn held_tight(settings: &IsolationSettings, wishes: &Confine) -> Result<(), Error> {
    let tight = "the settings hold requests to level high as they define it";
    if let Some(path) = wishes.read.iter().chain(&wishes.write).next() {
        return Err(wrong("path", &path.to_string(), tight));
    }
    if let Some(forward) = wishes
        .forwards
        .iter()
        .find(|it| !settings.forwards.contains(it))
    {
        return Err(wrong("forward", &forward.to_string(), tight));
    }
    if let Some(ability) = wishes
        .allow_degraded
        .iter()
        .find(|it| !settings.allow_degraded.contains(it))
    {
        return Err(wrong("allow_degraded", ability.as_str(), tight));
    }
    match &wishes.network {
        Some(network) if !within(network, &settings.network) => {
            Err(wrong("network", "beyond the setting", tight))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether one network reaches nothing that the other does not.
fn within(asked: &Network, allowed: &Network) -> bool {
    match (asked, allowed) {
        (Network::None, _) | (_, Network::Full) => true,
        (Network::AllowList { hosts }, Network::AllowList { hosts: allowed }) => {
            hosts.iter().all(|host| allowed.contains(host))
        }
        (Network::Full | Network::AllowList { .. }, Network::None)
        | (Network::Full, Network::AllowList { .. }) => false,
    }
}

fn hosts(network: Option<&Network>) -> usize {
    match network {
        Some(Network::AllowList { hosts }) => hosts.len(),
        Some(Network::None | Network::Full) | None => 0,
    }
}

fn at_most(what: &'static str, count: usize, limit: usize) -> Result<(), Error> {
    if count <= limit {
        return Ok(());
    }
    let problem = format!("at most {limit} are allowed");
    Err(wrong(what, &count.to_string(), &problem))
}

fn distinct(paths: Vec<Text>) -> Vec<Text> {
    let mut kept: Vec<Text> = Vec::with_capacity(paths.len());
    for path in paths {
        if !kept.contains(&path) {
            kept.push(path);
        }
    }
    kept
}

fn wrong(what: &'static str, given: &str, problem: &str) -> Error {
    Error::Confinement {
        what,
        given: given.to_owned(),
        problem: problem.to_owned(),
    }
}
