//! The whole sandbox on a kernel older than the one it is developed on.

use std::ffi::CString;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, Limits, SandboxSpec};
use ostler_sandbox::{OverlayDirs, Sandbox, SandboxCommand, SandboxStdio};

use crate::report::{Outcome, Report, holds};

/// On ext4, owned by root.
const WORK: &str = "/data/work";
/// On ext4, owned by the user.
const USER_WORK: &str = "/data/user";
/// On a tmpfs, which this kernel cannot mount with mapped ids.
const UNMAPPABLE: &str = "/srv/work";

/// Scripts that succeed in a jail if the property holds.
const HOLDS: [(&str, &str); 14] = [
    ("it writes to its workspace", "echo x >made && test -s made"),
    ("it has a private /tmp", "echo x >/tmp/private"),
    (
        "it has devices",
        "echo x >/dev/null && head -c 8 /dev/urandom >/dev/shm/x",
    ),
    (
        "its system is read-only",
        "! echo x >/etc/new && ! echo x >/bin/new",
    ),
    (
        "it reads no secret",
        "! cat /data/secret && ! cat /etc/shadow",
    ),
    (
        "it sees its own processes only",
        "test $(ls -d /proc/[0-9]* | wc -l) -lt 8",
    ),
    (
        "it signals nobody outside",
        "! kill -9 -1 || true; test $$ -lt 20",
    ),
    ("it mounts nothing", "! mount -t tmpfs none /tmp"),
    (
        "it makes no namespaces",
        "! unshare -U true && ! unshare -m true",
    ),
    (
        "it has no capability",
        "grep -q 'CapEff:.0000000000000000' /proc/self/status",
    ),
    (
        "it gains no rights",
        "grep -q 'NoNewPrivs:.1' /proc/self/status",
    ),
    ("it is filtered", "grep -q 'Seccomp:.2' /proc/self/status"),
    (
        "it makes no setuid file",
        "cp /bin/busybox b && ! chmod u+s b && rm b",
    ),
    (
        "its loopback is up and alone",
        "ping -c 1 -w 5 127.0.0.1 || ip addr show lo | grep -q 'UP'",
    ),
];

pub(crate) fn as_root(report: &mut Report) {
    scripts(report, WORK);
    report.that("what root's command made belongs to root", owner(WORK, 0));
    report.that(
        "nothing it did to /tmp is seen outside",
        absent("/tmp/private"),
    );
    report.that("an overlay keeps the workspace as it was", overlay());
    report.that("a workspace that cannot be mapped is refused", unmappable());
    report.that("the end of its init is the end of a cell", killed());
}

pub(crate) fn as_user(report: &mut Report) {
    scripts(report, USER_WORK);
    report.that(
        "what a user's command made belongs to the user",
        owner(USER_WORK, 1_000),
    );
    report.that(
        "nothing it did to /tmp is seen outside",
        absent("/tmp/private"),
    );
}

fn scripts(report: &mut Report, workspace: &str) {
    for (what, script) in HOLDS {
        report.that(
            what,
            run(&confinement(workspace), None, script).and_then(succeeded),
        );
    }
}

fn confinement(workspace: &str) -> SandboxSpec {
    SandboxSpec {
        workspace: Some(ByteString::from(workspace.to_owned())),
        ..SandboxSpec::default()
    }
}

/// How a script ended, and its output.
type Ran = (WaitStatus, String);

fn succeeded((status, said): Ran) -> Outcome {
    holds(status == WaitStatus::Code(0), || {
        format!("{status:?}, {}", said.trim())
    })
}

fn run(
    wanted: &SandboxSpec,
    overlay: Option<OverlayDirs<'_>>,
    script: &str,
) -> Result<Ran, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let workspace = wanted
        .workspace
        .as_ref()
        .map(ByteString::as_bytes)
        .unwrap_or(b"/tmp");
    let cwd = std::str::from_utf8(workspace).map_err(|error| text(&error))?;
    let argv = [c"sh", c"-c"].map(CString::from).into_iter();
    let script = CString::new(script).map_err(|error| text(&error))?;
    let argv: Vec<CString> = argv.chain([script]).collect();
    let command = SandboxCommand {
        program: Path::new("/bin/sh"),
        argv: &argv,
        env: &[CString::from(c"PATH=/bin")],
        cwd: Path::new(cwd),
        stdio: SandboxStdio::Pipe,
        overlay,
    };
    let mut child = Sandbox::new(wanted.clone(), Limits::default())
        .spawn(&command)
        .map_err(|error| text(&error))?;
    let mut said = String::new();
    if let Some(mut output) = child.output.take() {
        output
            .read_to_string(&mut said)
            .map_err(|error| text(&error))?;
    }
    let (status, _) = child.wait().map_err(|error| text(&error))?;
    Ok((status, said))
}

fn owner(workspace: &str, uid: u32) -> Outcome {
    let made = Path::new(workspace).join("made");
    let facts = fs::metadata(made).map_err(|error| error.to_string())?;
    holds(facts.uid() == uid, || facts.uid().to_string())
}

fn absent(path: &str) -> Outcome {
    holds(!Path::new(path).exists(), || format!("{path} is there"))
}

fn overlay() -> Outcome {
    let [upper, work] = ["/data/store/upper", "/data/store/work"].map(Path::new);
    for side in [upper, work] {
        fs::create_dir_all(side).map_err(|error| error.to_string())?;
    }
    fs::write("/data/work/kept", "before").map_err(|error| error.to_string())?;
    let wanted = SandboxSpec {
        overlay: true,
        ..confinement(WORK)
    };
    let script = "test $(cat kept) = before && echo after >kept && echo new >added && rm made";
    run(&wanted, Some(OverlayDirs { upper, work }), script).and_then(succeeded)?;
    let kept = fs::read_to_string("/data/work/kept").map_err(|error| error.to_string())?;
    let added = fs::metadata(upper.join("added")).map_err(|error| error.to_string())?;
    absent("/data/work/added")?;
    let made = Path::new("/data/work/made").exists();
    holds(kept == "before" && made && added.uid() == 0, || {
        format!("{kept}, {made}, owner {}", added.uid())
    })
}

fn unmappable() -> Outcome {
    match run(&confinement(UNMAPPABLE), None, "true") {
        Ok((status, _)) => Err(format!("it ran: {status:?}")),
        Err(why) => holds(why.contains(UNMAPPABLE), || why.clone()),
    }
}

fn killed() -> Outcome {
    let argv = [c"sh", c"-c", c"setsid sleep 1000 & sleep 1000"].map(CString::from);
    let command = SandboxCommand {
        program: Path::new("/bin/sh"),
        argv: &argv,
        env: &[CString::from(c"PATH=/bin")],
        cwd: Path::new(WORK),
        stdio: SandboxStdio::Pipe,
        overlay: None,
    };
    let sandbox = Sandbox::new(confinement(WORK), Limits::default());
    let mut child = sandbox.spawn(&command).map_err(|error| error.to_string())?;
    child.kill();
    let (status, _) = child.wait().map_err(|error| error.to_string())?;
    // The pipe's other end is closed when the last process has ended.
    let mut said = String::new();
    let output = child.output.take().ok_or("no output")?;
    let mut output = std::io::BufReader::new(output);
    output
        .read_to_string(&mut said)
        .map_err(|error| error.to_string())?;
    let signal = matches!(status, WaitStatus::Signal(_));
    holds(signal && said.is_empty(), || format!("{status:?}, {said}"))
}
