//! The filter agrees with the plain function; the function agrees with the intended rules.

use libc::sock_filter;
use proptest::prelude::*;

use super::filter::assemble;
use super::rules::{ARCHITECTURE, AllowedSockets, SeccompAction, expected_action, table};

/// An interpreter of classic BPF, as far as filters use it.
fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: &[u64; 6]) -> u32 {
    let mut data = Vec::from(number.to_le_bytes());
    data.extend(architecture.to_le_bytes());
    data.extend([0; 8]);
    data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        let (code, k_at) = (u32::from(code), k as usize);
        at += 1;
        let mut jump = |is: bool| at += usize::from(if is { jt } else { jf });
        if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
            let word: [u8; 4] = data[k_at..k_at + 4].try_into().expect("four bytes");
            accumulator = u32::from_le_bytes(word);
        } else if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K {
            accumulator &= k;
        } else if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K {
            jump(accumulator == k);
        } else if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K {
            jump(accumulator >= k);
        } else if code == libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K {
            jump(accumulator & k != 0);
        } else if code == libc::BPF_RET | libc::BPF_K {
            return k;
        } else {
            panic!("no such instruction: {code:#x}");
        }
    }
}

fn number() -> impl Strategy<Value = u32> {
    let named: Vec<u32> = table().map(|(number, _)| number).collect();
    prop_oneof![
        4 => proptest::sample::select(named),
        2 => 0_u32..512,
        1 => 0x4000_0000_u32..0x4000_0300,
        1 => Just(u32::MAX),
        1 => any::<u32>(),
    ]
}

/// Values on both sides of what rules check, with any high half.
fn argument() -> impl Strategy<Value = u64> {
    let near: Vec<u32> = vec![
        0,
        1,
        2,
        3,
        5,
        6,
        10,
        16,
        17,
        38,
        40,
        58,
        132,
        255,
        256,
        262,
        0o100,
        0o644,
        0o2755,
        0o4755,
        0o6000,
        0o20_000_000,
        0o20_200_000,
        0x5411,
        0x5412,
        0x5423,
        0x541C,
        0x8_0001,
        0x8_0003,
        0x800,
        0x4_0000,
        0x2_0000,
        0x1000_0000,
        0x7E02_0000,
        0x80,
        0x11,
        0x3D_0F00,
        u32::MAX,
    ];
    let low = prop_oneof![4 => proptest::sample::select(near), 1 => any::<u32>()];
    let high = prop_oneof![3 => Just(0_u32), 1 => any::<u32>()];
    (low, high).prop_map(|(low, high)| u64::from(low) | u64::from(high) << 32)
}

fn architecture() -> impl Strategy<Value = u32> {
    prop_oneof![8 => Just(ARCHITECTURE), 1 => Just(0x4000_0003), 1 => any::<u32>()]
}

fn sockets() -> impl Strategy<Value = AllowedSockets> {
    prop_oneof![Just(AllowedSockets::Internet), Just(AllowedSockets::Local)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_filter_is_the_function(
        architecture in architecture(),
        number in number(),
        arguments in proptest::array::uniform6(argument()),
        sockets in sockets(),
    ) {
        let said = run(&assemble(sockets), architecture, number, &arguments);
        let meant = expected_action(architecture, number, &arguments, sockets);
        prop_assert_eq!(said, meant.return_value());
    }
}

fn judge(number: libc::c_long, arguments: &[u64]) -> SeccompAction {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let number = u32::try_from(number).expect("positive");
    expected_action(ARCHITECTURE, number, &all, AllowedSockets::Internet)
}

#[test]
fn what_escapes_need_is_refused() {
    use SeccompAction::{Enosys, Eperm};
    for (number, arguments, meant) in [
        (libc::SYS_ptrace, &[0; 4][..], Eperm),
        (libc::SYS_io_uring_setup, &[8, 0], Eperm),
        (libc::SYS_unshare, &[0x1000_0000], Eperm),
        (libc::SYS_unshare, &[0x80], Eperm),
        (libc::SYS_clone, &[0x1000_0011], Eperm),
        (libc::SYS_clone, &[0xFFFF_FFFF_0002_0011], Eperm),
        (libc::SYS_clone3, &[1, 88], Enosys),
        (libc::SYS_openat2, &[0; 4], Enosys),
        (libc::SYS_ioctl, &[0, 0x5412], Eperm),
        (libc::SYS_ioctl, &[0, 0x5423], Eperm),
        (libc::SYS_ioctl, &[0, 0xFFFF_FFFF_0000_5423], Eperm),
        (libc::SYS_ioctl, &[0, 0xDEAD_0000_0000_5412], Eperm),
        (libc::SYS_ioctl, &[0, 0x541C], Eperm),
        (libc::SYS_socket, &[40, 1, 0], Eperm),
        (libc::SYS_socket, &[17, 3, 0], Eperm),
        (libc::SYS_socket, &[38, 5, 0], Eperm),
        (libc::SYS_socket, &[16, 3, 4], Eperm),
        (libc::SYS_socket, &[2, 3, 1], Eperm),
        (libc::SYS_socket, &[2, 0x8_0003, 255], Eperm),
        (libc::SYS_socketpair, &[40, 1, 0, 0], Eperm),
        (libc::SYS_fchmod, &[3, 0o4755], Eperm),
        (libc::SYS_fchmodat, &[3, 0, 0o2755], Eperm),
        (452, &[3, 0, 0o6755, 0], Eperm),
        (libc::SYS_openat, &[3, 0, 0o101, 0o4755], Eperm),
        (libc::SYS_openat, &[3, 0, 0o20_200_002, 0o4755], Eperm),
        (libc::SYS_mknodat, &[3, 0, 0o104_755], Eperm),
        (libc::SYS_personality, &[0x0400_0000], Eperm),
        (libc::SYS_prlimit64, &[1, 7, 0, 0], Eperm),
        (libc::SYS_sched_setaffinity, &[1, 8, 0], Eperm),
        (libc::SYS_setpriority, &[0, 1, 19], Eperm),
        (libc::SYS_mount, &[0; 5], Eperm),
        (467, &[0; 5], Eperm),
    ] {
        assert_eq!(judge(number, arguments), meant, "{number} {arguments:x?}");
    }
}

#[test]
fn what_programs_need_is_allowed() {
    for (number, arguments) in [
        (libc::SYS_read, &[0; 3][..]),
        (libc::SYS_execve, &[0; 3]),
        // threads and forks of the C libraries, Go and posix_spawn
        (libc::SYS_clone, &[0x3D_0F00]),
        (libc::SYS_clone, &[0x5_0F00]),
        (libc::SYS_clone, &[0x0120_0011]),
        (libc::SYS_clone, &[0x4111]),
        (libc::SYS_unshare, &[0x400]),
        (libc::SYS_openat, &[3, 0, 0o101, 0o644]),
        // without O_CREAT the mode is whatever the register held
        (libc::SYS_openat, &[3, 0, 0, 0xFFFF]),
        (libc::SYS_ioctl, &[0, 0x5413]),
        (libc::SYS_socket, &[1, 0x8_0801, 0]),
        (libc::SYS_socket, &[2, 0x8_0801, 0]),
        (libc::SYS_socket, &[2, 1, 262]),
        (libc::SYS_socket, &[10, 2, 17]),
        (libc::SYS_socket, &[16, 0x8_0003, 0]),
        (libc::SYS_socketpair, &[1, 1, 0, 0]),
        (libc::SYS_mkdirat, &[3, 0, 0o2755]),
        (libc::SYS_fchmodat, &[3, 0, 0o1777]),
        (libc::SYS_personality, &[0x4_0000]),
        (libc::SYS_personality, &[0xFFFF_FFFF]),
        (libc::SYS_landlock_create_ruleset, &[0; 3]),
        (libc::SYS_seccomp, &[0; 3]),
        (libc::SYS_memfd_create, &[0; 2]),
        (libc::SYS_prlimit64, &[0, 7, 0, 0]),
        (libc::SYS_prlimit64, &[2, 7, 0, 0]),
        (libc::SYS_sched_setaffinity, &[0, 8, 0]),
        (libc::SYS_setpriority, &[0, 0, 19]),
    ] {
        assert_eq!(
            judge(number, arguments),
            SeccompAction::Allow,
            "{number} {arguments:x?}"
        );
    }
}

#[test]
fn other_interfaces_to_the_kernel_end_the_process() {
    let none = [0; 6];
    let judge = |architecture, number| {
        expected_action(architecture, number, &none, AllowedSockets::Internet)
    };
    assert_eq!(judge(0x4000_0003, 1), SeccompAction::Kill, "32 bits");
    assert_eq!(
        judge(ARCHITECTURE, u32::MAX),
        SeccompAction::Allow,
        "skipped by a tracer"
    );
    #[cfg(target_arch = "x86_64")]
    assert_eq!(judge(ARCHITECTURE, 0x4000_0001), SeccompAction::Kill, "x32");
}

#[test]
fn without_a_namespace_the_internet_is_refused_by_family() {
    let number = u32::try_from(libc::SYS_socket).expect("positive");
    for (family, meant) in [
        (1, SeccompAction::Allow),
        (2, SeccompAction::Eperm),
        (10, SeccompAction::Eperm),
    ] {
        let arguments = [family, 1, 0, 0, 0, 0];
        assert_eq!(
            expected_action(ARCHITECTURE, number, &arguments, AllowedSockets::Local),
            meant
        );
    }
}

/// Longer filters are refused by the kernel, and jumps would not reach their ends.
#[test]
fn the_filter_is_short() {
    assert!(assemble(AllowedSockets::Internet).len() < 256);
}
