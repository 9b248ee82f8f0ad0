//! System packages, by apt.

use std::path::Path;

use anyhow::{Result, bail};

use super::steps::Tier;
use crate::shell;

/// One package of the distribution.
struct AptPackage {
    /// The Debian name.
    name: &'static str,
    /// A program of it, searched on the path where there is no dpkg.
    program: &'static str,
    /// The first tier that needs it.
    tier: Tier,
}

const fn package(name: &'static str, program: &'static str, tier: Tier) -> AptPackage {
    AptPackage {
        name,
        program,
        tier,
    }
}

const PACKAGES: &[AptPackage] = &[
    package("python3", "python3", Tier::Quick),
    package("python3-venv", "python3", Tier::Quick),
    // setpriv, unshare, mount
    package("util-linux", "setpriv", Tier::Quick),
    // counts the system calls of an idle daemon
    package("strace", "strace", Tier::Quick),
    // programs that tests run in terminals, each with a screen or a dialogue of its own
    package("bash", "bash", Tier::Quick),
    package("zsh", "zsh", Tier::Quick),
    package("fish", "fish", Tier::Quick),
    package("vim", "vim", Tier::Quick),
    package("nano", "nano", Tier::Quick),
    package("less", "less", Tier::Quick),
    package("procps", "top", Tier::Quick),
    package("htop", "htop", Tier::Quick),
    package("git", "git", Tier::Quick),
    package("gdb", "gdb", Tier::Quick),
    package("irb", "irb", Tier::Quick),
    // programs that must work in a sandbox
    package("gcc", "cc", Tier::Quick),
    package("libc6-dev", "cc", Tier::Quick),
    package("make", "make", Tier::Quick),
    package("openssl", "openssl", Tier::Quick),
    package("sqlite3", "sqlite3", Tier::Quick),
    package("bsdutils", "script", Tier::Quick),
    package("ca-certificates", "update-ca-certificates", Tier::Quick),
    // creates an unprivileged user for the tests
    package("passwd", "useradd", Tier::Quick),
    package("openssh-client", "ssh-keygen", Tier::Quick),
    // reference for screens
    package("tmux", "tmux", Tier::Quick),
    // libraries of PostgreSQL, which is unpacked: the history in a server
    package("libldap-2.5-0", "postgres", Tier::Quick),
    package("libpq5", "postgres", Tier::Quick),
    package("libxml2", "postgres", Tier::Quick),
    // libraries and programs of the container engine, which is unpacked, and what its images are made of
    package("iptables", "iptables", Tier::Quick),
    package("iproute2", "ip", Tier::Quick),
    package("libdevmapper1.02.1", "dockerd", Tier::Quick),
    package("libsystemd0", "dockerd", Tier::Quick),
    package("busybox-static", "busybox", Tier::Quick),
    package("debootstrap", "debootstrap", Tier::Quick),
    package("debian-archive-keyring", "debootstrap", Tier::Quick),
    // the browser that the web interface is tested with
    package("chromium", "chromium", Tier::Quick),
    // reference for grep in benchmarks
    package("ripgrep", "rg", Tier::Full),
    // reference for the sandbox in benchmarks
    package("bubblewrap", "bwrap", Tier::Full),
    // a virtual machine to test the sandbox on: emulator, kernel, and all of its programs
    package("qemu-system-x86", "qemu-system-x86_64", Tier::Full),
    package("linux-image-cloud-amd64", "qemu-system-x86_64", Tier::Full),
    package("cpio", "cpio", Tier::Full),
    // servers to start, and the libraries of one that is unpacked
    package("php-cli", "php", Tier::Full),
    package("redis-tools", "redis-cli", Tier::Full),
    package("libmojolicious-perl", "morbo", Tier::Full),
    package("puma", "puma", Tier::Full),
    package("ruby-sinatra", "rackup", Tier::Full),
    package("ruby-webrick", "ruby", Tier::Full),
    package("thin", "thin", Tier::Full),
    package("libapr1", "apache2", Tier::Full),
    package("libaprutil1", "apache2", Tier::Full),
    package("libcjson1", "mosquitto", Tier::Full),
    package("libdlt2", "mosquitto", Tier::Full),
    package("libevent-2.1-7", "memcached", Tier::Full),
    package("libident", "ngircd", Tier::Full),
    package("libwrap0", "ngircd", Tier::Full),
    package("liblua5.3-0", "haproxy", Tier::Full),
    package("libopentracing-c-wrapper0", "haproxy", Tier::Full),
    package("libsass1", "hugo", Tier::Full),
    package("libtomcrypt1", "dropbear", Tier::Full),
];

/// Installs missing packages as root or by `sudo -n`; otherwise prints what to install.
pub(super) fn ensure(dir: &Path, tier: Tier) -> Result<()> {
    let selected = PACKAGES.iter().filter(|package| package.tier <= tier);
    let missing: Vec<&str> = selected
        .filter(|package| !is_installed(dir, package))
        .map(|package| package.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let Some(prefix) = privilege(dir).filter(|_| shell::is_on_path("apt-get")) else {
        bail!("please install: {}", missing.join(" "));
    };
    apt_get(dir, prefix, &["update", "-q"])?;
    let install = ["install", "-q", "-y", "--no-install-recommends"];
    apt_get(dir, prefix, &[&install, missing.as_slice()].concat())
}

fn is_installed(dir: &Path, package: &AptPackage) -> bool {
    if !shell::is_on_path("dpkg-query") {
        return shell::is_on_path(package.program);
    }
    let mut query = shell::command("dpkg-query", dir);
    query.args(["-W", "-f=${db:Status-Status}", package.name]);
    shell::capture(&mut query).is_ok_and(|status| status == "installed")
}

/// The prefix of a command that needs root; `None` if there is no way.
pub(super) fn privilege(dir: &Path) -> Option<&'static [&'static str]> {
    if rustix::process::geteuid().is_root() {
        return Some(&[]);
    }
    let may = shell::capture(shell::command("sudo", dir).args(["-n", "true"]));
    may.is_ok().then_some(&["sudo", "-n"])
}

fn apt_get(dir: &Path, prefix: &[&str], args: &[&str]) -> Result<()> {
    let words = [prefix, &["apt-get"], args].concat();
    let mut command = shell::command(words[0], dir);
    shell::run(
        command
            .args(&words[1..])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
