//! Commands in jails, and a directory to work in.

use std::ffi::CString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, Limits, SandboxSpec};
use ostler_sandbox::{OverlayDirs, Sandbox, SandboxCommand, SandboxError, SandboxStdio};

pub(crate) const SHELL: &str = "/bin/sh";

pub(crate) struct JailFixture {
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) outside: PathBuf,
}

impl JailFixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("done");
        let base = dir.path().canonicalize().expect("done");
        let [workspace, home, outside] = ["work space\nof mine", "home", "outside"].map(|name| {
            let path = base.join(name);
            std::fs::create_dir(&path).expect("done");
            path
        });
        std::fs::create_dir(home.join(".ssh")).expect("done");
        std::fs::write(home.join(".ssh/id"), "secret").expect("done");
        std::fs::write(outside.join("file"), "host").expect("done");
        Self {
            _dir: dir,
            workspace,
            home,
            outside,
        }
    }

    pub(crate) fn confinement(&self) -> SandboxSpec {
        SandboxSpec {
            workspace: Some(ByteString::from(self.workspace.as_path())),
            home: Some(ByteString::from(self.home.as_path())),
            ..SandboxSpec::default()
        }
    }

    pub(crate) fn sh(&self, script: &str) -> Ran {
        self.sh_in(self.confinement(), script)
    }

    pub(crate) fn sh_in(&self, confinement: SandboxSpec, script: &str) -> Ran {
        self.try_sh(confinement, script).expect("done")
    }

    pub(crate) fn try_sh(
        &self,
        confinement: SandboxSpec,
        script: &str,
    ) -> Result<Ran, SandboxError> {
        run(confinement, script, &self.workspace, &self.home)
    }
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.output);
        self.output
    }

    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        self.output
    }
}

pub(crate) fn run(
    confinement: SandboxSpec,
    script: &str,
    cwd: &Path,
    home: &Path,
) -> Result<Ran, SandboxError> {
    run_with(confinement, script, cwd, home, None)
}

pub(crate) fn run_with(
    confinement: SandboxSpec,
    script: &str,
    cwd: &Path,
    home: &Path,
    overlay: Option<OverlayDirs<'_>>,
) -> Result<Ran, SandboxError> {
    let argv = ["sh", "-c", script].map(|it| CString::new(it).expect("no null"));
    let env = environment(home);
    let command = SandboxCommand {
        program: Path::new(SHELL),
        argv: &argv,
        env: &env,
        cwd,
        stdio: SandboxStdio::Pipe,
        overlay,
    };
    let mut child = Sandbox::new(confinement, Limits::default()).spawn(&command)?;
    let mut output = Vec::new();
    child
        .output
        .take()
        .expect("done")
        .read_to_end(&mut output)
        .expect("done");
    let (status, _usage) = child.wait().expect("done");
    Ok(Ran {
        code: match status {
            WaitStatus::Code(code) => Some(code),
            WaitStatus::Signal(_) => None,
        },
        output: String::from_utf8_lossy(&output).into_owned(),
    })
}

pub(crate) fn environment(home: &Path) -> Vec<CString> {
    let home = [b"HOME=", home.as_os_str().as_bytes()].concat();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    vec![
        CString::new(home).expect("done"),
        CString::new(path).expect("done"),
    ]
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn has(program: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists())
}

pub(crate) fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("done");
}

/// Descriptors of a process's descendants, once its init and two sleepers are among them.
pub(crate) fn until_sleepers(builder: u32) -> Vec<std::os::fd::OwnedFd> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let all = descendants(builder);
        let sleeping = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "sleep\n")
        };
        if all.iter().filter(|pid| sleeping(pid)).count() == 2 {
            let open = |pid: &u32| {
                let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).ok()?)?;
                rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
            };
            return all.iter().filter_map(open).collect();
        }
        assert!(std::time::Instant::now() < deadline, "{all:?}");
        std::thread::yield_now();
    }
}

fn descendants(of: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let threads = std::fs::read_dir(format!("/proc/{of}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for thread in threads {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|it| it.parse().ok()) {
            all.push(child);
            all.extend(descendants(child));
        }
    }
    all
}
