//! The system calls that are refused, and the meaning of each rule in plain Rust.

use ostler_model::Capability;
use ostler_model::sandbox_spec::{NetworkAccess, SandboxSpec};

/// The filter's action on a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeccompAction {
    /// The kernel executes it.
    Allow,
    /// It fails with `EPERM`.
    Eperm,
    /// It fails with `ENOSYS`: callers fall back to a call whose arguments can be checked.
    Enosys,
    /// The process is killed with `SIGSYS`.
    Kill,
}

impl SeccompAction {
    /// The return value of a filter.
    pub(super) const fn return_value(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Eperm => libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs(),
            Self::Enosys => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        }
    }
}

/// The sockets that may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedSockets {
    /// Unix, TCP, UDP and ICMP echo, and netlink's route family.
    Internet,
    /// The same without the internet families: the network is to be isolated without a network
    /// namespace.
    Local,
}

impl AllowedSockets {
    /// The sockets a specification allows.
    #[must_use]
    pub fn of(spec: &SandboxSpec) -> Self {
        let restricted = spec.network != NetworkAccess::Full;
        if restricted && spec.without.contains(&Capability::NetworkNamespace) {
            Self::Local
        } else {
            Self::Internet
        }
    }
}

/// The rule on one system call. `arg` and the like are indices of arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum SyscallRule {
    /// It always fails with `EPERM`.
    Eperm,
    /// Always fails with `ENOSYS`.
    Enosys,
    /// Refused when any of these bits is set.
    ForbiddenBits { arg: u8, forbidden: u32 },
    /// Refused with these bits in the mode, when the flags create a file: otherwise the kernel
    /// ignores the mode.
    ForbiddenMode { flags: u8, mode: u8 },
    /// Refused with these values.
    ForbiddenValues { arg: u8, forbidden: &'static [u32] },
    /// Refused except with these values.
    AllowedValues { arg: u8, allowed: &'static [u32] },
    /// socket(2): by family, kind and protocol.
    Socket,
}

/// The architecture this is built for, as audit(7) numbers it.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
/// The architecture this is built for, as audit(7) numbers it.
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;

/// Numbers from here on are calls of x32, another ABI of the same architecture.
pub(super) const X32: u32 = 0x4000_0000;
/// The number a tracer writes to skip a call: no call of any ABI.
pub(super) const SKIPPED: u32 = u32::MAX;

/// A file with one of these bits gives its owner's rights to any user that executes it. The root
/// user's workspace keeps its owner on the host: such a file created there would run as the host's
/// root.
pub(super) const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// `O_CREAT`, and the bit specific to `O_TMPFILE` (its other half is `O_DIRECTORY`).
pub(super) const CREATE_FLAGS: u32 = 0o100 | 0o20_000_000;

/// Refused for process 1, which the first argument names.
const INIT_FIRST_ARGUMENT: SyscallRule = SyscallRule::ForbiddenValues {
    arg: 0,
    forbidden: &[1],
};
/// Refused for process 1, which the second argument names.
const INIT_SECOND_ARGUMENT: SyscallRule = SyscallRule::ForbiddenValues {
    arg: 1,
    forbidden: &[1],
};

/// New namespaces, as clone(2) takes them.
const NAMESPACES: u32 = 0x7E02_0000;
/// The time namespace, which only unshare(2) takes: for clone(2) the bit is part of a signal.
const TIME_NAMESPACE: u32 = 0x80;

/// Terminal requests: pushing input into another terminal (`TIOCSTI`), the console's equivalent
/// (`TIOCLINUX`), and other line disciplines (`TIOCSETD`), which load kernel modules.
const TERMINAL_REQUESTS: &[u32] = &[0x5412, 0x541C, 0x5423];
/// Linux, Linux without address randomisation (`setarch -R`), and the query.
const PERSONALITIES: &[u32] = &[0, 0x0004_0000, u32::MAX];

/// The kind in socket(2)'s second argument; the rest are flags.
pub(super) const SOCKET_TYPE_MASK: u32 = 0xf;
/// `SOCK_STREAM` and `SOCK_DGRAM`.
pub(super) const SOCKET_TYPES: [u32; 2] = [1, 2];
/// The value of `AF_UNIX`.
pub(super) const UNIX: u32 = 1;
/// `AF_INET` and `AF_INET6`.
pub(super) const INTERNET: [u32; 2] = [2, 10];
/// `AF_NETLINK`, of which `NETLINK_ROUTE` is allowed: the C library lists addresses with it.
pub(super) const NETLINK: (u32, u32) = (16, 0);
/// Default, ICMP, TCP, UDP, ICMPv6, MPTCP: unprivileged echo requests use ICMP.
pub(super) const PROTOCOLS: [u32; 6] = [0, 1, 6, 17, 58, 262];

/// The calls with a rule, frequent ones with argument checks first.
pub(super) fn table() -> impl Iterator<Item = (u32, SyscallRule)> {
    let argument_rules = JUDGED.iter().chain(JUDGED_OLD).copied();
    let forbidden = REFUSED.iter().chain(REFUSED_OLD);
    argument_rules
        .chain(forbidden.map(|&number| (number, SyscallRule::Eperm)))
        .map(|(number, rule)| (u32::try_from(number).expect("numbers are positive"), rule))
}

const JUDGED: &[(i64, SyscallRule)] = &[
    (
        libc::SYS_openat,
        SyscallRule::ForbiddenMode { flags: 2, mode: 3 },
    ),
    (
        libc::SYS_ioctl,
        SyscallRule::ForbiddenValues {
            arg: 1,
            forbidden: TERMINAL_REQUESTS,
        },
    ),
    (
        libc::SYS_clone,
        SyscallRule::ForbiddenBits {
            arg: 0,
            forbidden: NAMESPACES,
        },
    ),
    // The first process of a jail is its init: nothing inside may set its limits or its priority.
    (libc::SYS_prlimit64, INIT_FIRST_ARGUMENT),
    (libc::SYS_sched_setaffinity, INIT_FIRST_ARGUMENT),
    (libc::SYS_sched_setparam, INIT_FIRST_ARGUMENT),
    (libc::SYS_sched_setscheduler, INIT_FIRST_ARGUMENT),
    (libc::SYS_sched_setattr, INIT_FIRST_ARGUMENT),
    (libc::SYS_setpriority, INIT_SECOND_ARGUMENT),
    (libc::SYS_ioprio_set, INIT_SECOND_ARGUMENT),
    // Their flags are in memory: programs fall back to clone and openat.
    (libc::SYS_clone3, SyscallRule::Enosys),
    (libc::SYS_openat2, SyscallRule::Enosys),
    (libc::SYS_socket, SyscallRule::Socket),
    (
        libc::SYS_socketpair,
        SyscallRule::AllowedValues {
            arg: 0,
            allowed: &[UNIX],
        },
    ),
    (
        libc::SYS_fchmod,
        SyscallRule::ForbiddenBits {
            arg: 1,
            forbidden: SET_ID,
        },
    ),
    (
        libc::SYS_fchmodat,
        SyscallRule::ForbiddenBits {
            arg: 2,
            forbidden: SET_ID,
        },
    ),
    (
        SYS_FCHMODAT2,
        SyscallRule::ForbiddenBits {
            arg: 2,
            forbidden: SET_ID,
        },
    ),
    // Not mkdir: the kernel itself drops these bits there.
    (
        libc::SYS_mknodat,
        SyscallRule::ForbiddenBits {
            arg: 2,
            forbidden: SET_ID,
        },
    ),
    (
        libc::SYS_unshare,
        SyscallRule::ForbiddenBits {
            arg: 0,
            forbidden: NAMESPACES | TIME_NAMESPACE,
        },
    ),
    (
        libc::SYS_personality,
        SyscallRule::AllowedValues {
            arg: 0,
            allowed: PERSONALITIES,
        },
    ),
];

#[cfg(target_arch = "x86_64")]
const JUDGED_OLD: &[(i64, SyscallRule)] = &[
    (
        libc::SYS_open,
        SyscallRule::ForbiddenMode { flags: 1, mode: 2 },
    ),
    (
        libc::SYS_creat,
        SyscallRule::ForbiddenBits {
            arg: 1,
            forbidden: SET_ID,
        },
    ),
    (
        libc::SYS_chmod,
        SyscallRule::ForbiddenBits {
            arg: 1,
            forbidden: SET_ID,
        },
    ),
    (
        libc::SYS_mknod,
        SyscallRule::ForbiddenBits {
            arg: 1,
            forbidden: SET_ID,
        },
    ),
];
#[cfg(not(target_arch = "x86_64"))]
const JUDGED_OLD: &[(i64, SyscallRule)] = &[];

// Calls newer than the C library's headers have the same number everywhere.
const SYS_QUOTACTL_FD: i64 = 443;
const SYS_FCHMODAT2: i64 = 452;
const SYS_OPEN_TREE_ATTR: i64 = 467;

const REFUSED: &[i64] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // ways around the other restrictions, or into the kernel
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie,
    // its quotas are the host user's, and inotify is what tools use
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // namespaces and mounts
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Control of the machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    SYS_QUOTACTL_FD,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_kexec_file_load,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_OLD: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: &[i64] = &[];

/// What the filter does with a system call, computed without the filter: its specification.
#[must_use]
pub fn expected_action(
    architecture: u32,
    number: u32,
    arguments: &[u64; 6],
    sockets: AllowedSockets,
) -> SeccompAction {
    let is_x32 = cfg!(target_arch = "x86_64") && number >= X32 && number != SKIPPED;
    if architecture != ARCHITECTURE || is_x32 {
        return SeccompAction::Kill;
    }
    let rule = table().find(|(named, _)| *named == number);
    rule.map_or(SeccompAction::Allow, |(_, rule)| {
        rule.evaluate(arguments, sockets)
    })
}

impl SyscallRule {
    fn evaluate(self, arguments: &[u64; 6], sockets: AllowedSockets) -> SeccompAction {
        let low = |index: u8| low_half(arguments[usize::from(index)]);
        let refused = match self {
            Self::Enosys => return SeccompAction::Enosys,
            Self::Eperm => true,
            Self::ForbiddenBits {
                arg,
                forbidden: refused,
            } => low(arg) & refused != 0,
            Self::ForbiddenMode { flags, mode } => {
                low(flags) & CREATE_FLAGS != 0 && low(mode) & SET_ID != 0
            }
            Self::ForbiddenValues {
                arg,
                forbidden: refused,
            } => refused.contains(&low(arg)),
            Self::AllowedValues { arg, allowed } => !allowed.contains(&low(arg)),
            Self::Socket => !is_socket_allowed(low(0), low(1) & SOCKET_TYPE_MASK, low(2), sockets),
        };
        if refused {
            SeccompAction::Eperm
        } else {
            SeccompAction::Allow
        }
    }
}

fn is_socket_allowed(family: u32, kind: u32, protocol: u32, sockets: AllowedSockets) -> bool {
    let internet = sockets == AllowedSockets::Internet
        && INTERNET.contains(&family)
        && SOCKET_TYPES.contains(&kind)
        && PROTOCOLS.contains(&protocol);
    family == UNIX || (family, protocol) == NETLINK || internet
}

fn low_half(argument: u64) -> u32 {
    u32::try_from(argument & u64::from(u32::MAX)).expect("32 bits are left")
}
