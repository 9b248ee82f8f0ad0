//! Landlock and seccomp by themselves, each installed on one thread: Debian 12's kernel has the
//! second version of Landlock.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use ostler_model::{ByteString, Capability, SandboxSpec};
use ostler_sandbox::fs_probe::FsProbe;
use ostler_sandbox::landlock::{self, LandlockRuleset, rights};
use ostler_sandbox::seccomp;

use crate::report::{Outcome, Report, holds};

/// On ext4.
const MAPPABLE: &str = "/data/work";
/// On a tmpfs, which this kernel cannot mount with mapped ids.
const UNMAPPABLE: &str = "/srv/work";

pub(crate) fn check(report: &mut Report) {
    let abi = landlock::abi();
    report.that(
        "Landlock is an older one",
        holds((2..6).contains(&abi), || abi.to_string()),
    );
    let lacking = rights::missing_rights(abi);
    report.that(
        "what it lacks is said",
        holds(lacking.contains(&"signals and abstract sockets"), || {
            format!("{lacking:?}")
        }),
    );
    report.that(
        "the rules of its version are taken and hold",
        behind(landlocked),
    );
    report.that(
        "rules of a newer version are not taken",
        behind(|| {
            let newer = LandlockRuleset::new(&confinement(MAPPABLE), rights::ABI_MAX);
            let error = newer.install().err().ok_or("taken")?;
            holds(error.raw_os_error() != 0, String::new)
        }),
    );
    report.that("the filter is taken and holds", behind(filtered));
    survey(report);
}

/// Runs a check on a thread of its own with no_new_privs set.
fn behind(check: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let behind = thread::spawn(|| {
        rustix::thread::set_no_new_privs(true).map_err(|errno| errno.to_string())?;
        check()
    });
    behind
        .join()
        .unwrap_or_else(|_| Err("the check panicked".to_owned()))
}

fn confinement(workspace: &str) -> SandboxSpec {
    SandboxSpec {
        workspace: Some(ByteString::from(workspace.to_owned())),
        ..SandboxSpec::default()
    }
}

fn landlocked() -> Outcome {
    let work = Path::new(MAPPABLE);
    fs::create_dir_all(work.join("deep")).map_err(|error| error.to_string())?;
    let rules = LandlockRuleset::new(&confinement(MAPPABLE), landlock::abi());
    rules.install().map_err(|errno| errno.to_string())?;
    let allowed = fs::write(work.join("file"), "x")
        .and_then(|()| fs::rename(work.join("file"), work.join("deep/file")))
        .and_then(|()| fs::read("/bin/busybox").map(drop));
    allowed.map_err(|error| format!("refused: {error}"))?;
    for path in ["/data/outside", "/etc/new", "/bin/new"] {
        let seen = fs::write(path, "x").map_err(|error| error.raw_os_error());
        holds(seen == Err(Some(libc::EACCES)), || {
            format!("{path}: {seen:?}")
        })?;
    }
    let seen = fs::read("/data/secret").map_err(|error| error.raw_os_error());
    holds(seen == Err(Some(libc::EACCES)), || {
        format!("secret: {seen:?}")
    })
}

fn filtered() -> Outcome {
    let program = seccomp::build_filter(&SandboxSpec::default());
    seccomp::supported().map_err(|errno| errno.to_string())?;
    program.install().map_err(|errno| errno.to_string())?;
    let seen = rustix::net::socket(
        rustix::net::AddressFamily::from_raw(40),
        rustix::net::SocketType::STREAM,
        None,
    );
    holds(
        seen.as_ref().err() == Some(&rustix::io::Errno::PERM),
        || format!("a vsock: {seen:?}"),
    )?;
    let flags = fs::Permissions::from_mode(0o4755);
    let seen = fs::set_permissions("/data/secret", flags).map_err(|error| error.kind());
    holds(seen == Err(io::ErrorKind::PermissionDenied), || {
        format!("setuid: {seen:?}")
    })?;
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", "exit 3"])
        .status();
    let code = status.map_err(|error| error.to_string())?.code();
    holds(code == Some(3), || format!("{code:?}"))
}

fn survey(report: &mut Report) {
    for (workspace, state, misses) in [
        (MAPPABLE, "/data", None),
        (UNMAPPABLE, "/srv", Some(Capability::MappedWorkspace)),
    ] {
        let wanted = SandboxSpec {
            overlay: true,
            ..confinement(workspace)
        };
        let missing = FsProbe::new(state.into()).missing(&wanted);
        let first = missing.first().map(|it| it.ability);
        report.that(
            &format!("the survey of {workspace} is right"),
            holds(first == misses, || format!("{missing:?}")),
        );
    }
}
