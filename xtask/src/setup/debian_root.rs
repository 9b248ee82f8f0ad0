//! The root file system of a container image for the tests: a small Debian, made by debootstrap from
//! the archive that apt uses. The tests import it and need no image registry.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::apt;
use super::servers::servers;
use crate::console::print_line;
use crate::shell;
use crate::workspace::Workspace;

/// What it has besides the required packages of the distribution.
const PACKAGES: &str = "--include=procps,python3";
/// Its user: the one of the execution image, and its directories.
const SCRIPT: &str = "useradd --uid 1000 --create-home --shell /bin/bash claude && \
                      install --directory --owner claude --group claude /workspace";
/// What the archive does not contain: a third of the files' size, which nothing in a test reads.
const EXCLUDED: &[&str] = &[
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/*",
    "./var/lib/apt/lists/*",
    "./var/log/*",
];

/// Makes the archive unless there is one of these contents. Without root or debootstrap it is left out: then no container
/// engine can be started either, and the tests of containers say so.
pub(super) fn ensure(workspace: &Workspace) {
    let archive = servers(workspace).join("debian-root.tar");
    let stamp = archive.with_extension("stamp");
    let contents = format!("{PACKAGES}\n{SCRIPT}\n{}\n", EXCLUDED.join(" "));
    if archive.exists() && fs::read_to_string(&stamp).is_ok_and(|has| has == contents) {
        return;
    }
    let built = build(workspace.root(), &archive)
        .and_then(|()| fs::write(&stamp, contents).context("the stamp"));
    if let Err(error) = built {
        print_line(format_args!(
            "setup: {} is left out: {error:#}",
            archive.display()
        ));
    }
}

fn build(dir: &Path, archive: &Path) -> Result<()> {
    let prefix = apt::privilege(dir).context("debootstrap needs the rights of root")?;
    let suite = release()?;
    let site = site(dir, &suite)?;
    let root = archive.with_extension("new");
    let debootstrap = ["debootstrap", "--variant=minbase", PACKAGES, &suite];
    let tree = root.to_string_lossy();
    let result = remove(dir, prefix, &tree)
        .and_then(|()| run(dir, prefix, &[&debootstrap[..], &[&tree, &site]].concat()))
        .and_then(|()| run(dir, prefix, &["chroot", &tree, "sh", "-c", SCRIPT]))
        .and_then(|()| pack(dir, prefix, &tree, archive));
    remove(dir, prefix, &tree)?;
    result
}

/// Writes the archive; a partial one is not left under its name.
fn pack(dir: &Path, prefix: &[&str], tree: &str, archive: &Path) -> Result<()> {
    let partial = archive.with_extension("part");
    let excluded = EXCLUDED.iter().map(|it| format!("--exclude={it}"));
    let file = format!("--file={}", partial.display());
    let options: Vec<String> = excluded.chain([file]).collect();
    let mut words = vec!["tar", "--create", "--numeric-owner", "--one-file-system"];
    words.extend(options.iter().map(String::as_str));
    words.extend(["--directory", tree, "."]);
    run(dir, prefix, &words)?;
    fs::rename(&partial, archive).with_context(|| archive.display().to_string())
}

fn remove(dir: &Path, prefix: &[&str], tree: &str) -> Result<()> {
    run(dir, prefix, &["rm", "-rf", "--one-file-system", tree])
}

/// Runs a command as root.
fn run(dir: &Path, prefix: &[&str], words: &[&str]) -> Result<()> {
    let words = [prefix, words].concat();
    shell::run(shell::command(words[0], dir).args(&words[1..]))
}

/// The release of the distribution, by its code name.
fn release() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = line.context("/etc/os-release has no VERSION_CODENAME")?;
    Ok(name.trim_matches('"').to_owned())
}

/// The archive that apt takes the packages of a release from.
fn site(dir: &Path, release: &str) -> Result<String> {
    let fields = ["--format", "$(CODENAME) $(COMPONENT) $(SITE)"];
    let mut apt_get = shell::command("apt-get", dir);
    apt_get.arg("indextargets").args(fields);
    let targets = shell::capture(apt_get.arg("Created-By: Packages"))?;
    let main = format!("{release} main ");
    let site = targets.lines().find_map(|line| line.strip_prefix(&main));
    site.map(str::to_owned)
        .with_context(|| format!("apt knows no archive of {release}"))
}
