//! Third-party servers that tests start as a developer does: from npm, PyPI and the distribution,
//! below the target directory. One set for each tier, so that the quick one stays small.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::steps::Tier;
use super::{npm, python};
use crate::shell;
use crate::workspace::Workspace;

/// The definitions of the sets, below the repository's root.
const SETS: &str = "tests/python/servers";

/// Packages of the distribution of which only files are used: installed, each would start a system
/// service on a well-known port. Their libraries come with what `apt.rs` installs.
const UNPACKED: &[(&str, &str)] = &[
    ("nginx", "usr/sbin/nginx"),
    ("redis-tools", "usr/bin/redis-check-rdb"),
    // a link to the previous file
    ("redis-server", "usr/bin/redis-server"),
    ("apache2-bin", "usr/sbin/apache2"),
    ("beanstalkd", "usr/bin/beanstalkd"),
    ("caddy", "usr/bin/caddy"),
    ("dropbear-bin", "usr/sbin/dropbear"),
    ("etcd-server", "usr/bin/etcd"),
    ("haproxy", "usr/sbin/haproxy"),
    ("hugo", "usr/bin/hugo"),
    ("lighttpd", "usr/sbin/lighttpd"),
    ("memcached", "usr/bin/memcached"),
    ("mosquitto", "usr/sbin/mosquitto"),
    ("nats-server", "usr/sbin/nats-server"),
    ("ngircd", "usr/sbin/ngircd"),
    ("postgresql-15", "usr/lib/postgresql/15/bin/postgres"),
    ("webfs", "usr/bin/webfsd"),
];

/// The directory of the servers: one for each set with `node_modules` and `venv`, and `debian`.
pub(crate) fn servers(workspace: &Workspace) -> PathBuf {
    workspace.target().join("servers")
}

/// Installs the missing servers of the tier.
pub(super) fn ensure(workspace: &Workspace, tier: Tier) -> Result<()> {
    install(workspace, tier).context(
        "the servers that tests start cannot be installed; npm and pip need a network for it once",
    )
}

fn install(workspace: &Workspace, tier: Tier) -> Result<()> {
    set(workspace, "quick")?;
    if tier == Tier::Full {
        set(workspace, "full")?;
        unpack(&servers(workspace).join("debian"))?;
    }
    Ok(())
}

/// Installs one set by its lock file and its requirements.
fn set(workspace: &Workspace, name: &str) -> Result<()> {
    let source_dir = workspace.root().join(SETS).join(name);
    let dir = servers(workspace).join(name);
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    for file in ["package.json", "package-lock.json", ".npmrc"] {
        let from = source_dir.join(file);
        fs::copy(&from, dir.join(file)).with_context(|| from.display().to_string())?;
    }
    // Without the steps that compile or download during installation.
    npm::renew(&dir, &["--ignore-scripts"])?;
    python::renew(
        workspace,
        &source_dir.join("requirements.txt"),
        &dir.join("venv"),
    )
}

/// Unpacks the files of packages that are not installed.
fn unpack(dir: &Path) -> Result<()> {
    let missing: Vec<&str> = UNPACKED
        .iter()
        .filter(|(_, file)| !dir.join(file).exists())
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !shell::is_on_path("apt-get") || !shell::is_on_path("dpkg-deb") {
        bail!("nginx, redis and others come as Debian packages; there is no apt-get here");
    }
    let fetched = dir.join("packages");
    fs::create_dir_all(&fetched).with_context(|| fetched.display().to_string())?;
    shell::run(
        shell::command("apt-get", &fetched)
            .args(["download", "-q"])
            .args(missing),
    )?;
    for package in fs::read_dir(&fetched)? {
        let package = package?.path();
        shell::run(
            shell::command("dpkg-deb", dir)
                .arg("-x")
                .args([&package, dir]),
        )?;
    }
    fs::remove_dir_all(&fetched).with_context(|| fetched.display().to_string())
}
