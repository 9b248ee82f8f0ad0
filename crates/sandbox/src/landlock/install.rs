//! Installs a ruleset on the calling thread and on everything it starts later.

use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_long};
use ostler_model::sandbox_spec::SandboxSpec;
use rustix::io::Errno;

use super::rights;
use super::rules::{LandlockRuleset, PathRule, PortRule};

/// The value of `LANDLOCK_CREATE_RULESET_VERSION`.
const VERSION: c_long = 1;
/// `LANDLOCK_RULE_PATH_BENEATH` and `LANDLOCK_RULE_NET_PORT`.
const PATH_BENEATH: c_long = 1;
const NET_PORT: c_long = 2;

/// `struct landlock_ruleset_attr`; how much of it a kernel knows depends on the version.
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// The layout of `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// The layout of `struct landlock_net_port_attr`.
#[repr(C)]
struct NetPortAttr {
    allowed_access: u64,
    port: u64,
}

/// The version of this kernel's interface; 0 where Landlock is not available.
#[must_use]
pub fn abi() -> u32 {
    supported().unwrap_or(0)
}

/// The version of this kernel's interface.
///
/// # Errors
/// `ENOSYS` where the kernel is built without it, `EOPNOTSUPP` where it was not enabled at boot.
pub fn supported() -> Result<u32, Errno> {
    // SAFETY: with this flag the kernel reads nothing and answers a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttr>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).map_err(|_| last_error())
}

/// Why Landlock is not available here; none where it is.
#[must_use]
pub fn unavailable_reason() -> Option<String> {
    match supported() {
        Ok(abi) if abi >= rights::ABI_MIN => None,
        Ok(abi) => Some(format!(
            "version {abi} of Landlock refuses every move between directories: Linux 5.19 or \
             newer is needed"
        )),
        Err(Errno::OPNOTSUPP) => Some(
            "Landlock is not switched on: add it to the kernel parameter lsm=, for example \
             lsm=landlock,lockdown,yama,bpf"
                .to_owned(),
        ),
        Err(Errno::NOSYS) => Some("this kernel is built without Landlock".to_owned()),
        Err(errno) => Some(format!("Landlock does not answer: {errno}")),
    }
}

impl LandlockRuleset {
    /// Restricts the calling thread; this cannot be undone. It must have no_new_privs already and
    /// see the command's view; paths are opened now, missing ones are skipped. Makes system calls
    /// on memory prepared before: safe between clone and exec.
    ///
    /// # Errors
    /// The first call that failed; the thread is then not restricted.
    pub fn install(&self) -> Result<(), Errno> {
        let ruleset = ScopedFd(self.create()?);
        for rule in &self.paths {
            add_path(&ruleset, rule)?;
        }
        for rule in &self.ports {
            add_port(&ruleset, *rule)?;
        }
        // SAFETY: numbers only.
        let done =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.0, 0 as c_long) };
        result(done)?;
        Ok(())
    }

    fn create(&self) -> Result<c_int, Errno> {
        let attributes = RulesetAttr {
            handled_access_fs: self.handled_fs,
            handled_access_net: self.handled_net,
            scoped: self.scoped,
        };
        // Older kernels refuse bytes that they do not know.
        let known_bytes = match self.abi {
            0..=3 => size_of::<u64>(),
            4 | 5 => 2 * size_of::<u64>(),
            6.. => size_of::<RulesetAttr>(),
        };
        // SAFETY: `attributes` outlives the call, which reads at most its size.
        let ruleset = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attributes,
                known_bytes,
                0 as c_long,
            )
        };
        descriptor(ruleset)
    }
}

/// Creates a ruleset with one rule on an open directory, and discards it.
///
/// # Errors
/// As landlock_add_rule(2): some file systems are not supported.
pub fn try_rule(directory: BorrowedFd<'_>, abi: u32) -> Result<(), Errno> {
    let rules = LandlockRuleset::new(&SandboxSpec::default(), abi);
    let ruleset = ScopedFd(rules.create()?);
    let attributes = PathBeneathAttr {
        allowed_access: rights::READ,
        parent_fd: directory.as_raw_fd(),
    };
    add(&ruleset, PATH_BENEATH, (&raw const attributes).cast())
}

fn add_path(ruleset: &ScopedFd, rule: &PathRule) -> Result<(), Errno> {
    let path = match open(&rule.path) {
        Ok(path) => path,
        // A path that is missing, or closed to this user, needs no rule.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let allowed = if is_directory(&path)? {
        rule.allowed
    } else {
        rule.allowed & rights::FILE_RIGHTS
    };
    if allowed == 0 {
        return Ok(());
    }
    let attributes = PathBeneathAttr {
        allowed_access: allowed,
        parent_fd: path.0,
    };
    add(ruleset, PATH_BENEATH, (&raw const attributes).cast())
}

fn add_port(ruleset: &ScopedFd, rule: PortRule) -> Result<(), Errno> {
    let attributes = NetPortAttr {
        allowed_access: rule.allowed,
        port: u64::from(rule.port),
    };
    add(ruleset, NET_PORT, (&raw const attributes).cast())
}

fn add(ruleset: &ScopedFd, kind: c_long, attributes: *const u8) -> Result<(), Errno> {
    // SAFETY: both callers point to attributes of this kind, which outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.0,
            kind,
            attributes,
            0 as c_long,
        )
    };
    result(done)?;
    Ok(())
}

/// A descriptor closed at the end of its scope, without allocation.
struct ScopedFd(c_int);

impl Drop for ScopedFd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

fn open(path: &CStr) -> Result<ScopedFd, Errno> {
    // SAFETY: the path outlives the call, which only reads it.
    let opened = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    descriptor(c_long::from(opened)).map(ScopedFd)
}

fn is_directory(path: &ScopedFd) -> Result<bool, Errno> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the out-pointer is valid for the whole structure, which is read only after the
    // kernel has filled it.
    let mode = unsafe {
        if libc::fstat(path.0, status.as_mut_ptr()) < 0 {
            return Err(last_error());
        }
        status.assume_init().st_mode
    };
    Ok(mode & libc::S_IFMT == libc::S_IFDIR)
}

fn descriptor(done: c_long) -> Result<c_int, Errno> {
    c_int::try_from(result(done)?).map_err(|_| Errno::BADF)
}

fn result(done: c_long) -> Result<c_long, Errno> {
    if done < 0 {
        Err(last_error())
    } else {
        Ok(done)
    }
}

fn last_error() -> Errno {
    // SAFETY: the C library gives every thread a place for its last error; reading it neither
    // allocates nor locks.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
