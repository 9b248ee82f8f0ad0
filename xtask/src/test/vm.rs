//! Tests the sandbox in a virtual machine: a kernel with cgroup version 2 only and an older
//! Landlock, and the same kernel with isolation features disabled. Without KVM: it boots in
//! seconds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::plan::StepContext;
use crate::console::print_line;
use crate::shell;
use crate::test_counts::TestCounts;
use crate::workspace::Workspace;

/// The only architecture whose kernel setup installs for this.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Seconds until a guest that does not exit is killed.
const GUEST_WAIT_S: &str = "300";
/// The memory of the guest in megabytes.
const GUEST_MEMORY_MB: &str = "768";

/// A boot of the guest.
struct VmBoot {
    /// What distinguishes it.
    what: &'static str,
    parameters: &'static str,
    /// The roles in which its tests run.
    roles: &'static [&'static str],
}

const BOOTS: &[VmBoot] = &[
    VmBoot {
        what: "cgroups of version 2, an older Landlock",
        parameters: "",
        roles: &["root", "user", "no-namespaces"],
    },
    VmBoot {
        what: "without Landlock",
        parameters: "lsm=lockdown,yama",
        roles: &["no-landlock"],
    },
];

/// Kernel modules, below the kernel's module directory.
const MODULES: [&str; 2] = [
    "kernel/drivers/block/brd.ko",
    "kernel/fs/overlayfs/overlay.ko",
];

/// Files of the guest's file system.
const FILES: [(&str, &str); 3] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n",
    ),
    ("etc/group", "root:x:0:\nuser:x:1000:\n"),
    ("etc/shadow", "root:*:::::::\nuser:*:::::::\n"),
];

pub(super) fn run(context: StepContext<'_>) -> Result<TestCounts> {
    let workspace = context.workspace;
    ensure!(
        std::env::consts::ARCH == "x86_64",
        "only x86_64 guests are prepared for"
    );
    let kernel = kernel()?;
    let program = build(workspace)?;
    let image = image(workspace, &kernel, &program)?;
    let mut tally = TestCounts::default();
    for config in BOOTS {
        tally += boot(workspace, &kernel, &image, config)?;
    }
    Ok(tally)
}

/// The newest kernel for virtual machines that is installed.
fn kernel() -> Result<PathBuf> {
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz-") && name.contains("-cloud-")
    };
    let entries = fs::read_dir("/boot")?.flatten().map(|entry| entry.path());
    let newest = entries.filter(is_kernel).max();
    newest.context("no cloud kernel in /boot; `cargo xtask setup --full` installs one")
}

/// Builds the tests as one static program.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = shell::command("cargo", workspace.root());
    cargo.args(["build", "--quiet", "--package", "ostler-sandbox"]);
    cargo.args(["--example", "guest", "--target", TARGET]);
    shell::run(cargo.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;
    Ok(workspace.target().join(TARGET).join("debug/examples/guest"))
}

/// The initramfs of the guest.
fn image(workspace: &Workspace, kernel: &Path, program: &Path) -> Result<PathBuf> {
    let dir = workspace.target().join("guest");
    let root = dir.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for directory in ["bin", "etc", "new", "modules", "dev", "proc"] {
        fs::create_dir_all(root.join(directory))?;
    }
    for (path, text) in FILES {
        fs::write(root.join(path), text)?;
    }
    fs::copy(program, root.join("guest"))?;
    let init = workspace
        .root()
        .join("crates/sandbox/examples/guest/init.sh");
    fs::copy(init, root.join("init"))?;
    busybox(workspace, &root)?;
    modules(kernel, &root)?;
    let image = dir.join("image.gz");
    let pack =
        "chmod 755 init guest && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1 >../image.gz";
    shell::run(shell::command("sh", &root).args(["-e", "-c", pack]))?;
    Ok(image)
}

/// Installs every applet of busybox that the guest may need.
fn busybox(workspace: &Workspace, root: &Path) -> Result<()> {
    let mut list = shell::command("busybox", workspace.root());
    let tools = shell::capture(list.arg("--list")).context("busybox-static is not installed")?;
    let found = ["/bin/busybox", "/usr/bin/busybox"];
    let found = found.iter().find(|path| Path::new(path).exists());
    fs::copy(
        found.context("no busybox in its usual place")?,
        root.join("bin/busybox"),
    )?;
    for tool in tools.lines().filter(|tool| *tool != "busybox") {
        symlink("busybox", root.join("bin").join(tool))?;
    }
    Ok(())
}

fn modules(kernel: &Path, root: &Path) -> Result<()> {
    let name = kernel.file_name().unwrap_or_default().to_string_lossy();
    let version = name.trim_start_matches("vmlinuz-");
    let from = Path::new("/lib/modules").join(version);
    for module in MODULES {
        let path = from.join(module);
        let name = path.file_name().unwrap_or_default();
        fs::copy(&path, root.join("modules").join(name))
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Boots the guest once, and counts its results.
fn boot(workspace: &Workspace, kernel: &Path, image: &Path, boot: &VmBoot) -> Result<TestCounts> {
    print_line(format_args!("guest: {}", boot.what));
    let mut lines = VmOutput::default();
    let mut emulator = shell::command("timeout", workspace.root());
    emulator.args(["--kill-after=5", GUEST_WAIT_S, "qemu-system-x86_64"]);
    emulator.args(["-M", "q35", "-accel", "tcg", "-cpu", "max"]);
    emulator.args(["-m", GUEST_MEMORY_MB, "-smp", "1"]);
    emulator.args(["-nographic", "-no-reboot", "-nodefaults"]);
    emulator.args(["-serial", "stdio", "-kernel"]).arg(kernel);
    emulator.arg("-initrd").arg(image);
    let (parameters, roles) = (boot.parameters, boot.roles.join(" "));
    let append = format!("console=ttyS0 quiet panic=-1 {parameters} OSTLER_ROLES=\"{roles}\"");
    emulator.args(["-append", &append]);
    shell::watch(&mut emulator, |line| lines.read(line))?;
    lines.into_counts(boot)
}

/// The console output of a guest.
#[derive(Debug, Default)]
struct VmOutput {
    tally: TestCounts,
    finished_roles: Vec<String>,
    is_complete: bool,
}

impl VmOutput {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with("PASS ") {
            self.tally.passed += 1;
        } else if line.starts_with("FAIL ") {
            self.tally.failed += 1;
        } else if line == "GUEST END" {
            self.is_complete = true;
        } else if let Some((role, _)) = line
            .strip_prefix("GUEST ")
            .and_then(|rest| rest.split_once(':'))
        {
            self.finished_roles.push(role.to_owned());
        }
    }

    /// The counts. A guest that did not finish counts as failed, whatever it printed before.
    fn into_counts(self, boot: &VmBoot) -> Result<TestCounts> {
        let Self {
            tally,
            finished_roles: closed,
            is_complete: ended,
        } = self;
        if !ended {
            bail!("the guest '{}' did not come to its end", boot.what);
        }
        for role in boot.roles {
            ensure!(
                closed.iter().any(|it| it == role),
                "the guest '{}' did not finish as {role}",
                boot.what
            );
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> Result<TestCounts> {
        let mut output = VmOutput::default();
        lines.iter().for_each(|line| output.read(line));
        output.into_counts(&BOOTS[1])
    }

    #[test]
    fn a_guest_counts_only_when_it_came_to_its_end() {
        let role = "GUEST no-landlock: 1 passed, 1 failed";
        let output = ["[ 1.2] noise", "PASS x", "FAIL y: z", role, "GUEST END\r"];
        let tally = said(&output).expect("it ended");
        assert_eq!((tally.passed, tally.failed), (1, 1));
        assert!(said(&output[..4]).is_err(), "cut off");
        assert!(said(&["GUEST END"]).is_err(), "nothing ran");
    }
}
