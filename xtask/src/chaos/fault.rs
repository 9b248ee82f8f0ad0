//! Faults of the host: injection and repair.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use super::plan::Fault;
use crate::console::print_line;
use crate::test_env::{McpClient, ProcessHandle, TestEnv};

/// The mount options of the file system that can be filled: large enough for the rounds, full
/// quickly.
const STATE_FS_OPTIONS: &str = "size=192m,nr_inodes=60000,mode=0700";
/// The number of descriptors left to the daemon, which had far more.
const DESCRIPTORS: u64 = 64;
/// The name of the file that fills the disk.
const FILLER: &str = "filler";
/// The directory of the files that use up the inodes.
const INODES: &str = "inodes";
const PIECE_BYTES: usize = 1024 * 1024;
/// The greatest depth of our cgroups below the mount point of a hierarchy.
const CGROUP_DEPTH: u32 = 6;

/// Mounts a separate file system at the state directory, if permitted; returns whether it did.
/// Without it no round fills a disk.
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

/// Unmounts it. No process of the environment runs any more.
pub(super) fn unmount_state(env: &TestEnv) -> Result<()> {
    let state = env.path().join("state");
    rustix::mount::unmount(&state, rustix::mount::UnmountFlags::empty()).context("umount")
}

/// A fault that lasts until it is repaired.
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
    /// A fault that needs no repair.
    Done,
}

impl ActiveFault {
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

    pub(super) fn clear(self) -> Result<()> {
        match self {
            Self::DiskFull { filler } => fs::remove_file(filler).context("the filler"),
            Self::InodesFull { filler } => {
                fs::remove_dir_all(filler).context("what took the inodes")
            }
            Self::FewDescriptors { daemon, before } => {
                // The process may have exited; the next one has limits of its own.
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

/// Writes until not even one page fits.
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

/// Creates empty files until no inode is free.
fn exhaust_inodes(directory: &Path) -> Result<()> {
    fs::create_dir(directory).context("the inodes")?;
    let mut created = 0_u32;
    while File::create(directory.join(created.to_string())).is_ok() {
        created += 1;
    }
    ensure!(created > 0, "there was no inode before");
    Ok(())
}

/// Starts a daemon of the same user on another state directory: it has a running command when it is
/// killed, and the next one stops that.
fn start_neighbour(env: &TestEnv) -> Result<()> {
    let binary = env.ostler(&[]).get_program().to_owned();
    let other_env = TestEnv::new(&std::env::temp_dir(), Path::new(&binary))?;
    let id = other_env.start("sleep 300")?;
    other_env.daemon()?.kill();
    other_env.stop(&id).context("the neighbour's command")?;
    other_env.shut_down().context("the neighbour")
}

/// The command of the call is orphaned: it ends with the client.
fn end_input(env: &TestEnv) -> Result<()> {
    let mut client = McpClient::open(env)?;
    let arguments = json!({"command": ["sleep", "300"], "wait_ms": 60_000});
    client.send(
        "tools/call",
        &json!({"name": "exec", "arguments": arguments}),
    )?;
    client.close()
}

/// Removes the cgroups of this environment's daemon that hold no process (rmdir(2) allows no
/// others).
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

/// Removes cgroups depth first, ours by name only; one with a process or a child stays.
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
