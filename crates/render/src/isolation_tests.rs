use ostler_model::isolation::{LimitKind, Limits};
use ostler_model::termination::TerminationCause;
use ostler_model::{Capability, LimitBackend, Termination};

use super::*;

fn policy(level: IsolationLevel, network: Option<&str>, missing: &[Capability]) -> IsolationSpec {
    IsolationSpec {
        level,
        confinement: network.map(|network| SandboxSpec {
            workspace: Some("/w".into()),
            network: network.parse().unwrap(),
            ..SandboxSpec::default()
        }),
        limits: Limits::default(),
        backend: LimitBackend::CgroupV2,
        in_force: Vec::new(),
        missing: missing
            .iter()
            .map(|it| MissingCapability {
                ability: *it,
                reason: "the kernel has none".to_owned(),
            })
            .collect(),
    }
}

#[test]
fn the_level_in_force_is_reported_with_what_is_missing() {
    let lacking = [Capability::Landlock, Capability::Seccomp];
    let descriptions = [
        policy(IsolationLevel::Medium, None, &[]),
        policy(IsolationLevel::Medium, None, &[Capability::OwnCgroup]),
        policy(IsolationLevel::High, Some("none"), &[]),
        policy(IsolationLevel::High, Some("full"), &lacking),
        policy(
            IsolationLevel::High,
            Some("example.org,*.b.example:8443"),
            &[],
        ),
        policy(IsolationLevel::High, Some("a,b,c,d,e,f,g"), &[]),
    ]
    .map(|it| describe_level(&it, None, &it.missing).unwrap_or_else(|| "-".to_owned()));
    insta::assert_snapshot!(descriptions.join("\n"));
}

#[test]
fn limits_are_reported_as_text() {
    let limits = Limits {
        pids: Some(64),
        memory_bytes: Some(512 << 20),
        file_bytes: Some(1 << 20),
        disk_bytes: Some(1 << 30),
        ..Limits::default()
    };
    let all = [
        LimitKind::Pids,
        LimitKind::Memory,
        LimitKind::Cpu,
        LimitKind::OpenFiles,
        LimitKind::FileSize,
        LimitKind::Disk,
    ];
    insta::assert_snapshot!(describe_limits_hit(&all, &limits, None).join("\n"));
}

#[test]
fn memory_that_ran_out_is_distinguished() {
    let ending = Termination::without_status(TerminationCause::OutOfMemory);
    let ours = Limits {
        memory_bytes: Some(1 << 20),
        ..Limits::default()
    };
    let by_limit = describe_limits_hit(&[LimitKind::Memory], &ours, Some(&ending));
    assert_eq!(by_limit.len(), 1);
    let by_machine = describe_limits_hit(&[], &Limits::default(), Some(&ending));
    assert!(by_machine[0].contains("the machine ran out of memory"));
    assert!(describe_limits_hit(&[], &ours, Some(&ending))[0].contains("1 MiB"));
}

#[test]
fn changes_are_reported_with_sizes_and_bounded() {
    let change = |path: &str, kind, what, bytes, bytes_before| OverlayChange {
        path: path.into(),
        kind,
        what,
        bytes,
        bytes_before,
    };
    let all = OverlayChanges {
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
        fate: OverlayOutcome::Open,
        ..OverlayChanges::default()
    };
    insta::assert_snapshot!(describe_changes(&all, 5));
    assert_eq!(
        describe_changes(&OverlayChanges::default(), 5),
        "no changes"
    );
}

#[test]
fn sizes_are_shown_in_common_units() {
    for (bytes, expected) in [
        (0, "0 B"),
        (512, "512 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (512 << 20, "512 MiB"),
        (3 << 29, "1.5 GiB"),
    ] {
        assert_eq!(format_bytes(bytes), expected);
    }
}
