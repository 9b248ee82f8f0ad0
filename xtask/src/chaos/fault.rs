//! Faults of the host, made and mended.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use super::plan::Fault;
use crate::console::print_line;
use crate::test_env::{McpClient, ProcessHandle, TestEnv};

/// The size of the file system that can be filled: room for the rounds, quickly full.
const STATE_FS_OPTIONS: &str = "size=192m,nr_inodes=60000,mode=0700";
/// Descriptors that are left to a daemon which had far more.
const DESCRIPTORS: u64 = 64;
/// What fills the disk.
const FILLER: &str = "filler";
/// The directory of what takes the inodes.
const INODES: &str = "inodes";
const PIECE_BYTES: usize = 1024 * 1024;
/// The depth below the mount point of a hierarchy at which our cgroups lie, at most.
const CGROUP_DEPTH: u32 = 6;

/// Gives the lab's state directory a file system of its own, where we may mount; whether it has
/// one. Without it no round fills a disk.
pub(super) fn mount_state(env: &TestEnv) -> bool {
    let state = env.path().join("state");
    let mounted = rustix::mount::mount(
        "tmpfs",
        &state,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        Some(&*std::ffi::CString::new(STATE_FS_OPTIONS).unwrap_or_default()),
    );
    if let Err(error) = &mounted {
        print_line(format_args!("chaos: no disk is filled: {error}"));
    }
    mounted.is_ok()
}

/// Takes it away again. Nothing of the lab runs any more.
pub(super) fn unmount_state(env: &TestEnv) -> Result<()> {
    let state = env.path().join("state");
    rustix::mount::unmount(&state, rustix::mount::UnmountFlags::empty()).context("umount")
}

/// A fault that is there until it is mended.
#[derive(Debug)]
pub(super) enum ActiveFault {
    DiskFull {
        filler: PathBuf,
    },
    InodesFull {
        filler: PathBuf,
    },
    FewDescriptors {
        daemon: ProcessHandle,
        before: Rlimit,
    },
    /// Nothing that we would have to mend.
    Done,
}

impl ActiveFault {
    /// Makes the fault.
    pub(super) fn inject(env: &TestEnv, fault: Fault) -> Result<Self> {
        match fault {
            Fault::DiskFull => {
                let filler = env.path().join("state").join(FILLER);
                fill(&filler)?;
                Ok(Self::DiskFull { filler })
            }
            Fault::InodesFull => {
                let filler = env.path().join("state").join(INODES);
                exhaust_inodes(&filler)?;
                Ok(Self::InodesFull { filler })
            }
            Fault::Neighbour => {
                start_neighbour(env)?;
                Ok(Self::Done)
            }
            Fault::InputEnds => {
                end_input(env)?;
                Ok(Self::Done)
            }
            Fault::RuntimeDirectoryRemoved => {
                fs::remove_dir_all(env.path().join("run/ostler"))
                    .context("the runtime directory")?;
                Ok(Self::Done)
            }
            Fault::CgroupsRemoved => {
                remove_empty_cgroups(env);
                Ok(Self::Done)
            }
            Fault::FewDescriptors => {
                let daemon = env.daemon()?;
                let few = Rlimit {
                    current: Some(DESCRIPTORS),
                    maximum: getrlimit(Resource::Nofile).maximum,
                };
                let before = limit(&daemon, few)?;
                Ok(Self::FewDescriptors { daemon, before })
            }
        }
    }

    /// Mends it.
    pub(super) fn clear(self) -> Result<()> {
        match self {
            Self::DiskFull { filler } => fs::remove_file(filler).context("the filler"),
            Self::InodesFull { filler } => {
                fs::remove_dir_all(filler).context("what took the inodes")
            }
            Self::FewDescriptors { daemon, before } => {
                // It may be dead by now; the next one has limits of its own.
                let _gone = limit(&daemon, before);
                Ok(())
            }
            Self::Done => Ok(()),
        }
    }
}

fn limit(daemon: &ProcessHandle, limits: Rlimit) -> Result<Rlimit> {
    let pid = Pid::from_raw(i32::try_from(daemon.pid)?).context("pid 0")?;
    Ok(prlimit(Some(pid), Resource::Nofile, limits)?)
}

/// Writes until nothing more fits, not even one page.
fn fill(path: &Path) -> Result<()> {
    let mut file = File::create(path).context("the filler")?;
    let mut piece = vec![0; PIECE_BYTES];
    while !piece.is_empty() {
        if file.write_all(&piece).is_err() {
            piece.truncate(piece.len() / 2);
        }
    }
    let written = file.metadata()?.len();
    ensure!(written > 0, "the disk was full before");
    Ok(())
}

/// Makes empty files until there is no inode for another.
fn exhaust_inodes(directory: &Path) -> Result<()> {
    fs::create_dir(directory).context("the inodes")?;
    let mut created = 0_u32;
    while File::create(directory.join(created.to_string())).is_ok() {
        created += 1;
    }
    ensure!(created > 0, "there was no inode before");
    Ok(())
}

/// A daemon of the same user on another state directory: it has a command when it is killed, and
/// the next one ends it.
fn start_neighbour(env: &TestEnv) -> Result<()> {
    let binary = env.ostler(&[]).get_program().to_owned();
    let neighbour = TestEnv::new(&std::env::temp_dir(), Path::new(&binary))?;
    let id = neighbour.start("sleep 300")?;
    neighbour.daemon()?.kill();
    neighbour.stop(&id).context("the neighbour's command")?;
    neighbour.shut_down().context("the neighbour")
}

/// The call's command is nobody's any more: it ends with the client.
fn end_input(env: &TestEnv) -> Result<()> {
    let mut client = McpClient::open(env)?;
    let arguments = json!({"command": ["sleep", "300"], "wait_ms": 60_000});
    client.send(
        "tools/call",
        &json!({"name": "exec", "arguments": arguments}),
    )?;
    client.close()
}

/// Removes what rmdir(2) lets go: cgroups of this lab's daemon in which no process is.
fn remove_empty_cgroups(env: &TestEnv) {
    let Ok(daemon) = env.daemon() else {
        return;
    };
    let own = fs::read_to_string(format!("/proc/{}/cgroup", daemon.pid)).unwrap_or_default();
    let paths = own.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    paths.dedup();
    let Ok(mounts) = fs::read_dir("/sys/fs/cgroup") else {
        return;
    };
    let roots = mounts.flatten().map(|entry| entry.path());
    for root in roots.chain([PathBuf::from("/sys/fs/cgroup")]) {
        for path in &paths {
            prune(&root.join(path.trim_start_matches('/')), CGROUP_DEPTH);
        }
    }
}

/// Depth first, ours by name only; one with a process or a child in it stays.
fn prune(dir: &Path, depth: u32) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = path
            .strip_prefix("/sys/fs/cgroup")
            .is_ok_and(|path| path.to_string_lossy().contains("ostler"));
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            prune(&path, depth);
            let _in_use = fs::remove_dir(&path);
        }
    }
}
