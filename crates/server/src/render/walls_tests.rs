use ostler_model::{Ability, LimitBackend};

use super::*;

fn policy(level: IsolationLevel, network: Option<&str>, missing: &[Ability]) -> Policy {
    Policy {
        level,
        confinement: network.map(|network| Confinement {
            workspace: Some("/w".into()),
            network: network.parse().unwrap(),
            ..Confinement::default()
        }),
        limits: Limits::default(),
        backend: LimitBackend::CgroupV2,
        in_force: Vec::new(),
        missing: missing
            .iter()
            .map(|it| Degraded {
                ability: *it,
                reason: "the kernel has none".to_owned(),
            })
            .collect(),
    }
}

#[test]
fn the_level_in_force_is_told_with_what_is_missing() {
    let lacking = [Ability::Landlock, Ability::Seccomp];
    let told = [
        policy(IsolationLevel::Medium, None, &[]),
        policy(IsolationLevel::Medium, None, &[Ability::OwnCgroup]),
        policy(IsolationLevel::High, Some("none"), &[]),
        policy(IsolationLevel::High, Some("full"), &lacking),
        policy(IsolationLevel::High, Some("pypi.org,*.b.org:8443"), &[]),
        policy(IsolationLevel::High, Some("a,b,c,d,e,f,g"), &[]),
    ]
    .map(|it| level(&it, &it.missing).unwrap_or_else(|| "-".to_owned()));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn limits_are_told_in_words() {
    let limits = Limits {
        pids: Some(64),
        memory_bytes: Some(512 << 20),
        file_bytes: Some(1 << 20),
        disk_bytes: Some(1 << 30),
        ..Limits::default()
    };
    let all = [
        Limit::Pids,
        Limit::Memory,
        Limit::Cpu,
        Limit::OpenFiles,
        Limit::FileSize,
        Limit::Disk,
    ];
    insta::assert_snapshot!(reached(&all, &limits, None).join("\n"));
}

#[test]
fn memory_that_ran_out_is_told_apart() {
    let ending = Ending::without_status(Cause::OutOfMemory);
    let ours = Limits {
        memory_bytes: Some(1 << 20),
        ..Limits::default()
    };
    let by_limit = reached(&[Limit::Memory], &ours, Some(&ending));
    assert_eq!(by_limit.len(), 1);
    let by_machine = reached(&[], &Limits::default(), Some(&ending));
    assert!(by_machine[0].contains("the machine ran out of memory"));
    assert!(reached(&[], &ours, Some(&ending))[0].contains("1 MiB"));
}

#[test]
fn changes_are_told_with_sizes_and_bounded() {
    let change = |path: &str, kind, what, bytes, bytes_before| Change {
        path: path.into(),
        kind,
        what,
        bytes,
        bytes_before,
    };
    let all = Changes {
        changes: vec![
            change("a.rs", ChangeKind::Created, FileKind::File, 1_234, None),
            change(
                "b\n.rs",
                ChangeKind::Changed,
                FileKind::File,
                400,
                Some(380),
            ),
            change("c", ChangeKind::Deleted, FileKind::Directory, 0, None),
            change("l", ChangeKind::Created, FileKind::Symlink, 0, None),
            change("p", ChangeKind::Created, FileKind::Special, 0, None),
            change("z", ChangeKind::Deleted, FileKind::File, 5, Some(5)),
        ],
        totals: [3, 1, 200],
        fate: Fate::Open,
        autorun: ostler_model::AutorunReport::default(),
    };
    insta::assert_snapshot!(changes(&all, 5));
    assert_eq!(changes(&Changes::default(), 5), "no changes");
}

#[test]
fn sizes_are_told_as_people_say_them() {
    for (bytes, told) in [
        (0, "0 B"),
        (512, "512 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (512 << 20, "512 MiB"),
        (3 << 29, "1.5 GiB"),
    ] {
        assert_eq!(size(bytes), told);
    }
}
