//! Which system calls are refused, and what that means in plain Rust.

use ostler_model::Ability;
use ostler_model::confinement::{Confinement, Network};

/// What becomes of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the kernel.
    Allow,
    /// `EPERM`.
    Refuse,
    /// `ENOSYS`: callers have another way, for which arguments can be judged.
    Absent,
    /// The process ends with `SIGSYS`.
    Kill,
}

impl Verdict {
    /// As a filter returns it.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Refuse => libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs(),
            Self::Absent => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        }
    }
}

/// Which sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// Unix, TCP, UDP and ICMP echo, and netlink's route family.
    Internet,
    /// The same without the internet: the network should be walled off, and there is no
    /// namespace to do it.
    Local,
}

impl Sockets {
    /// What a confinement leaves.
    #[must_use]
    pub fn of(confinement: &Confinement) -> Self {
        let walled = confinement.network != Network::Full;
        if walled && confinement.without.contains(&Ability::NetworkNamespace) {
            Self::Local
        } else {
            Self::Internet
        }
    }
}

/// How one system call is judged. `arg` and the like are indices of arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Always refused.
    Refuse,
    /// Not there.
    Absent,
    /// Refused when any of these bits is set.
    Bits { arg: u8, refused: u32 },
    /// Refused with these bits in the mode, when the flags make a file: else the kernel
    /// does not look at the mode.
    Making { flags: u8, mode: u8 },
    /// Refused with these values.
    Values { arg: u8, refused: &'static [u32] },
    /// Refused but with these values.
    Only { arg: u8, allowed: &'static [u32] },
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
/// What a tracer writes to skip a call: no call of any ABI.
pub(super) const SKIPPED: u32 = u32::MAX;

/// A file with one of these gives its owner's rights to whoever runs it. The root user's
/// workspace keeps its owner on the host: such a file made there would be the host's root.
pub(super) const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// `O_CREAT`, and what is peculiar to `O_TMPFILE` (its other half is `O_DIRECTORY`).
pub(super) const MAKES: u32 = 0o100 | 0o20_000_000;

/// Refused for process 1, which the first argument names.
const WARDEN_FIRST: Rule = Rule::Values {
    arg: 0,
    refused: &[1],
};
/// Refused for process 1, which the second argument names.
const WARDEN_SECOND: Rule = Rule::Values {
    arg: 1,
    refused: &[1],
};

/// New namespaces, as clone(2) takes them.
const NAMESPACES: u32 = 0x7E02_0000;
/// The time namespace, which only unshare(2) takes: for clone(2) the bit is part of a signal.
const TIME_NAMESPACE: u32 = 0x80;

/// Requests for a terminal: writing into another's (`TIOCSTI`), what the console makes of the same
/// (`TIOCLINUX`), and other line disciplines (`TIOCSETD`), which load modules of the kernel.
const TERMINAL_REQUESTS: &[u32] = &[0x5412, 0x541C, 0x5423];
/// Linux, Linux without address randomisation (`setarch -R`), and asking.
const PERSONALITIES: &[u32] = &[0, 0x0004_0000, u32::MAX];

/// The kind in socket(2)'s second argument; the rest are flags.
pub(super) const KIND: u32 = 0xf;
/// `SOCK_STREAM` and `SOCK_DGRAM`.
pub(super) const KINDS: [u32; 2] = [1, 2];
/// `AF_UNIX`.
pub(super) const UNIX: u32 = 1;
/// `AF_INET` and `AF_INET6`.
pub(super) const INTERNET: [u32; 2] = [2, 10];
/// `AF_NETLINK`, of which `NETLINK_ROUTE` is let through: the C library lists addresses by it.
pub(super) const NETLINK: (u32, u32) = (16, 0);
/// By default, ICMP, TCP, UDP, ICMPv6, MPTCP: echo requests without raw sockets have ICMP.
pub(super) const PROTOCOLS: [u32; 6] = [0, 1, 6, 17, 58, 262];

/// Calls with a rule: those that are made often and judged by arguments first.
pub(super) fn table() -> impl Iterator<Item = (u32, Rule)> {
    let judged = JUDGED.iter().chain(JUDGED_OLD).copied();
    let refused = REFUSED.iter().chain(REFUSED_OLD);
    judged
        .chain(refused.map(|&number| (number, Rule::Refuse)))
        .map(|(number, rule)| (u32::try_from(number).expect("numbers are positive"), rule))
}

const JUDGED: &[(i64, Rule)] = &[
    (libc::SYS_openat, Rule::Making { flags: 2, mode: 3 }),
    (
        libc::SYS_ioctl,
        Rule::Values {
            arg: 1,
            refused: TERMINAL_REQUESTS,
        },
    ),
    (
        libc::SYS_clone,
        Rule::Bits {
            arg: 0,
            refused: NAMESPACES,
        },
    ),
    // The first process of a cell is its warden: nobody inside sets its limits or its share.
    (libc::SYS_prlimit64, WARDEN_FIRST),
    (libc::SYS_sched_setaffinity, WARDEN_FIRST),
    (libc::SYS_sched_setparam, WARDEN_FIRST),
    (libc::SYS_sched_setscheduler, WARDEN_FIRST),
    (libc::SYS_sched_setattr, WARDEN_FIRST),
    (libc::SYS_setpriority, WARDEN_SECOND),
    (libc::SYS_ioprio_set, WARDEN_SECOND),
    // Their flags lie behind a pointer: programs fall back to clone and openat.
    (libc::SYS_clone3, Rule::Absent),
    (libc::SYS_openat2, Rule::Absent),
    (libc::SYS_socket, Rule::Socket),
    (
        libc::SYS_socketpair,
        Rule::Only {
            arg: 0,
            allowed: &[UNIX],
        },
    ),
    (
        libc::SYS_fchmod,
        Rule::Bits {
            arg: 1,
            refused: SET_ID,
        },
    ),
    (
        libc::SYS_fchmodat,
        Rule::Bits {
            arg: 2,
            refused: SET_ID,
        },
    ),
    (
        SYS_FCHMODAT2,
        Rule::Bits {
            arg: 2,
            refused: SET_ID,
        },
    ),
    // Not mkdir: the kernel itself drops these bits there.
    (
        libc::SYS_mknodat,
        Rule::Bits {
            arg: 2,
            refused: SET_ID,
        },
    ),
    (
        libc::SYS_unshare,
        Rule::Bits {
            arg: 0,
            refused: NAMESPACES | TIME_NAMESPACE,
        },
    ),
    (
        libc::SYS_personality,
        Rule::Only {
            arg: 0,
            allowed: PERSONALITIES,
        },
    ),
];

#[cfg(target_arch = "x86_64")]
const JUDGED_OLD: &[(i64, Rule)] = &[
    (libc::SYS_open, Rule::Making { flags: 1, mode: 2 }),
    (
        libc::SYS_creat,
        Rule::Bits {
            arg: 1,
            refused: SET_ID,
        },
    ),
    (
        libc::SYS_chmod,
        Rule::Bits {
            arg: 1,
            refused: SET_ID,
        },
    ),
    (
        libc::SYS_mknod,
        Rule::Bits {
            arg: 1,
            refused: SET_ID,
        },
    ),
];
#[cfg(not(target_arch = "x86_64"))]
const JUDGED_OLD: &[(i64, Rule)] = &[];

// Calls newer than the C library's headers have the same number everywhere.
const SYS_QUOTACTL_FD: i64 = 443;
const SYS_FCHMODAT2: i64 = 452;
const SYS_OPEN_TREE_ATTR: i64 = 467;

const REFUSED: &[i64] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // ways around the other walls, or into the kernel
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
    // the machine
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

/// What the filter does with a system call, without the filter: its specification.
#[must_use]
pub fn verdict(architecture: u32, number: u32, arguments: &[u64; 6], sockets: Sockets) -> Verdict {
    let is_x32 = cfg!(target_arch = "x86_64") && number >= X32 && number != SKIPPED;
    if architecture != ARCHITECTURE || is_x32 {
        return Verdict::Kill;
    }
    let rule = table().find(|(named, _)| *named == number);
    rule.map_or(Verdict::Allow, |(_, rule)| rule.judge(arguments, sockets))
}

impl Rule {
    fn judge(self, arguments: &[u64; 6], sockets: Sockets) -> Verdict {
        let low = |index: u8| low_half(arguments[usize::from(index)]);
        let refused = match self {
            Self::Absent => return Verdict::Absent,
            Self::Refuse => true,
            Self::Bits { arg, refused } => low(arg) & refused != 0,
            Self::Making { flags, mode } => low(flags) & MAKES != 0 && low(mode) & SET_ID != 0,
            Self::Values { arg, refused } => refused.contains(&low(arg)),
            Self::Only { arg, allowed } => !allowed.contains(&low(arg)),
            Self::Socket => !may_make((low(0), low(1) & KIND, low(2)), sockets),
        };
        if refused {
            Verdict::Refuse
        } else {
            Verdict::Allow
        }
    }
}

fn may_make((family, kind, protocol): (u32, u32, u32), sockets: Sockets) -> bool {
    let internet = sockets == Sockets::Internet
        && INTERNET.contains(&family)
        && KINDS.contains(&kind)
        && PROTOCOLS.contains(&protocol);
    family == UNIX || (family, protocol) == NETLINK || internet
}

fn low_half(argument: u64) -> u32 {
    u32::try_from(argument & u64::from(u32::MAX)).expect("32 bits are left")
}
