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
const UNPACKED: &[UnpackedPackage] = &[
    // the history in a server
    unpacked(
        "postgresql-15",
        "usr/lib/postgresql/15/bin/postgres",
        Tier::Quick,
    ),
    unpacked(
        "postgresql-client-15",
        "usr/lib/postgresql/15/bin/psql",
        Tier::Quick,
    ),
    // the container engine: client and server, the supervisor of containers, the runtime
    unpacked("docker.io", "usr/sbin/dockerd", Tier::Quick),
    unpacked("containerd", "usr/bin/containerd", Tier::Quick),
    unpacked("runc", "usr/sbin/runc", Tier::Quick),
    unpacked("nginx", "usr/sbin/nginx", Tier::Full),
    unpacked("redis-tools", "usr/bin/redis-check-rdb", Tier::Full),
    // a link to the previous file
    unpacked("redis-server", "usr/bin/redis-server", Tier::Full),
    unpacked("apache2-bin", "usr/sbin/apache2", Tier::Full),
    unpacked("beanstalkd", "usr/bin/beanstalkd", Tier::Full),
    unpacked("caddy", "usr/bin/caddy", Tier::Full),
    unpacked("dropbear-bin", "usr/sbin/dropbear", Tier::Full),
    unpacked("etcd-server", "usr/bin/etcd", Tier::Full),
    unpacked("haproxy", "usr/sbin/haproxy", Tier::Full),
    unpacked("hugo", "usr/bin/hugo", Tier::Full),
    unpacked("lighttpd", "usr/sbin/lighttpd", Tier::Full),
    unpacked("memcached", "usr/bin/memcached", Tier::Full),
    unpacked("mosquitto", "usr/sbin/mosquitto", Tier::Full),
    unpacked("nats-server", "usr/bin/nats-server", Tier::Full),
    unpacked("ngircd", "usr/sbin/ngircd", Tier::Full),
    unpacked("webfs", "usr/bin/webfsd", Tier::Full),
];

/// A package of which the files are used.
struct UnpackedPackage {
    /// The Debian name.
    name: &'static str,
    /// One of its files, below the directory.
    file: &'static str,
    /// The first tier that needs it.
    tier: Tier,
}

const fn unpacked(name: &'static str, file: &'static str, tier: Tier) -> UnpackedPackage {
    UnpackedPackage { name, file, tier }
}

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
    }
    unpack(&servers(workspace).join("debian"), tier)
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
fn unpack(dir: &Path, tier: Tier) -> Result<()> {
    let missing: Vec<&str> = UNPACKED
        .iter()
        .filter(|package| package.tier <= tier && !dir.join(package.file).exists())
        .map(|package| package.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !shell::is_on_path("apt-get") || !shell::is_on_path("dpkg-deb") {
        bail!(
            "PostgreSQL, Docker, nginx and others come as Debian packages; there is no apt-get here"
        );
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
