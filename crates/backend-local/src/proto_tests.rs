use std::path::Path;
use std::time::Duration;

use ostler_backend::{
    EXIT_RECORD_VERSION, ExitRecord, IdempotentInput, InputProgress, KillReason, LaunchIo,
    LeaderOutcome, ProcessEvent, TerminalQuery, Timeouts,
};
use ostler_fuzz::fuzz;
use ostler_model::termination::WaitStatus;
use ostler_model::{
    Capability, LimitKind, Limits, MissingCapability, OrphanPolicy, SandboxSpec, TimeoutKind,
    Timestamp, Usage, lower_hex,
};

use super::*;

/// What version 4 of the protocol sends, recorded when every message had a type of its own: a name
/// and the packet in hexadecimal digits.
const VERSION_4: &str = include_str!("../tests/wire/version-4.txt");
const ID: &str = "01a2071e-18b1-7546-82fc-64550c3f1709";

fn plan() -> LaunchPlan {
    LaunchPlan {
        id: ExecutionId::mint(),
        attempt: 1,
        spec: b"{}".to_vec(),
        program: "/bin/sh".into(),
        argv: vec!["sh".into(), "-c".into(), "true".into()],
        env: vec![("PATH".into(), "/bin".into())],
        cwd: "/".into(),
        io: LaunchIo::Bytes(b"input".to_vec()),
        timeouts: Timeouts {
            wall: Some(Duration::from_secs(1)),
            idle: None,
            grace: Duration::from_millis(5),
        },
        orphan_policy: OrphanPolicy::Kill,
        limits: Limits::default(),
        sandbox: None,
        redact: vec!["secret".into()],
        pinned_files: Vec::new(),
        report_start: true,
        lossless_reader: false,
        min_output_offset: 0,
        disk_scope: None,
        container: None,
        attachment: None,
        program_fallback: None,
        secret_files: Vec::new(),
        record_input: false,
    }
}

fn same<T: Serialize + DeserializeOwned>(packet: &[u8]) {
    if let Ok(message) = decode::<T>(packet) {
        let packet = encode(&message).expect("it was a message");
        let again = encode(&decode::<T>(&packet).expect("a message")).expect("a message");
        assert_eq!(packet, again, "what is read is what is written");
    }
}

#[test]
fn a_plan_for_a_container_arrives_with_its_container() {
    let mut sent = plan();
    sent.attachment = Some(ContainerAttachment {
        container: "f00".to_owned(),
        socket: "/run/init.sock".into(),
        init_pid: 7,
    });
    sent.program_fallback = Some("sh".into());
    sent.secret_files = vec![("TOKEN".into(), "value".into())];
    let packet = encode(&ShimRequest::start(sent.clone())).expect("a message");
    let received = decode::<ShimRequest>(&packet).expect("a message");
    let received = received.into_plan().expect("a plan");
    assert_eq!(received.attachment, sent.attachment);
    assert_eq!(received.program_fallback, sent.program_fallback);
    assert_eq!(received.secret_files, sent.secret_files);
    assert_eq!(received.argv, sent.argv);
}

#[test]
fn fuzz_packets() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/packets");
    let missing = vec![(0, 7), (u64::MAX, 1)];
    let seeds = [
        encode(&ShimRequest::Start(Box::new(plan()))),
        encode(&ShimRequest::start(LaunchPlan {
            attachment: Some(ContainerAttachment {
                container: "f00".to_owned(),
                socket: "/run/init.sock".into(),
                init_pid: 7,
            }),
            ..plan()
        })),
        encode(&ShimRequest::StartInMemory),
        encode(&ProcessEvent::Started {
            pid: 7,
            at: Timestamp::UNIX_EPOCH,
        }),
        encode(&ProcessEvent::JournalRecovered { missing }),
        encode(&ZygoteRequest::Fork { count: 3 }),
        encode(&ZygoteEvent::ForkFailed { errno: 11 }),
    ];
    let seeds = seeds.map(|packet| packet.expect("a message")).to_vec();
    fuzz(&corpus, seeds, |packet| {
        same::<ShimRequest>(packet);
        same::<ProcessEvent>(packet);
        same::<ZygoteRequest>(packet);
        same::<ZygoteEvent>(packet);
    });
}

/// The packet of a name in [`VERSION_4`], as hexadecimal digits.
fn recorded(name: &str) -> &'static str {
    let mut lines = VERSION_4.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(recorded, _)| *recorded == name);
    found.expect("every message is recorded").1
}

fn packet_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(std::str::from_utf8);
    digits
        .map(|pair| u8::from_str_radix(pair.expect("ASCII"), 16).expect("digits"))
        .collect()
}

fn exit_record(at: Timestamp) -> ExitRecord {
    ExitRecord {
        version: EXIT_RECORD_VERSION,
        attempt: 2,
        pid: 4711,
        started_at: at,
        ended_at: at,
        lived_ms: 1_500,
        outcome: LeaderOutcome::Ended {
            status: WaitStatus::Code(3),
            kill_reason: Some(KillReason::Timeout(TimeoutKind::Idle)),
        },
        leftovers: 1,
        survivors: vec![99],
        out_of_memory: false,
        limits_hit: vec![LimitKind::Memory],
        usage: Usage::default(),
        output_end: 70_000,
        journal_error: Some("no space left on device".to_owned()),
        lost_bytes: 5,
        autorun: Box::default(),
        lost_capabilities: Vec::new(),
    }
}

fn lost() -> MissingCapability {
    MissingCapability {
        ability: Capability::Gate,
        reason: "killed".to_owned(),
    }
}

fn every_event() -> Vec<(&'static str, ProcessEvent)> {
    let id = ID.parse().expect("an id");
    let at: Timestamp = "2026-11-23T06:35:42.661Z".parse().expect("a time");
    let input = InputProgress {
        input: IdempotentInput {
            id: serde_json::from_str(&format!("\"{ID}\"")).expect("an id"),
            output_end: 7,
            len: 300,
        },
        accepted: 200,
    };
    vec![
        (
            "hello",
            ProcessEvent::Hello {
                id,
                attempt: 2,
                pid: 4711,
                started_at: at,
            },
        ),
        ("started", ProcessEvent::Started { pid: 4711, at }),
        ("output", ProcessEvent::Output { end: 70_000 }),
        ("input_accepted", ProcessEvent::InputAccepted { len: 300 }),
        (
            "detached",
            ProcessEvent::Detached {
                status: WaitStatus::Code(0),
            },
        ),
        (
            "timed_out",
            ProcessEvent::TimedOut {
                kind: TimeoutKind::Wall,
            },
        ),
        (
            "journal_failed",
            ProcessEvent::JournalFailed {
                detail: "no space left on device".to_owned(),
                base: Some(300),
            },
        ),
        (
            "exited",
            ProcessEvent::Exited {
                record: Box::new(exit_record(at)),
                idle: true,
            },
        ),
        ("frozen", ProcessEvent::Frozen { frozen: true }),
        (
            "limit_hit",
            ProcessEvent::LimitHit {
                limit: LimitKind::Pids,
            },
        ),
        (
            "terminal_query",
            ProcessEvent::TerminalQuery {
                query: TerminalQuery::Cursor,
                end: 12,
            },
        ),
        (
            "journal_recovered",
            ProcessEvent::JournalRecovered {
                missing: vec![(0, 7), (300, 400)],
            },
        ),
        (
            "input_progress",
            ProcessEvent::InputProgress { input: Some(input) },
        ),
        ("degraded", ProcessEvent::Degraded { lost: lost() }),
    ]
}

#[test]
fn events_are_those_of_version_4_byte_for_byte() {
    for (name, event) in every_event() {
        let packet = encode(&event).expect("a message");
        assert_eq!(lower_hex(&packet), recorded(name), "{name}");
        assert_eq!(decode::<ProcessEvent>(&packet), Ok(event), "{name}");
    }
}

#[test]
fn a_record_with_what_was_lost_is_sent_as_one_without() {
    let at: Timestamp = "2026-11-23T06:35:42.661Z".parse().expect("a time");
    let mut record = Box::new(exit_record(at));
    record.lost_capabilities.push(lost());
    let exited = ProcessEvent::Exited { record, idle: true };
    let packet = encode(&exited).expect("a message");
    assert_eq!(lower_hex(&packet), recorded("exited"));
}

#[test]
fn a_plan_is_that_of_version_4_byte_for_byte() {
    let sandbox = SandboxSpec {
        workspace: Some("/w".into()),
        ..SandboxSpec::default()
    };
    let limits = Limits {
        pids: Some(64),
        memory_bytes: Some(1 << 30),
        ..Limits::default()
    };
    let plan = LaunchPlan {
        id: ID.parse().expect("an id"),
        sandbox: Some(sandbox.clone()),
        limits,
        record_input: true,
        min_output_offset: 9,
        ..plan()
    };
    let packet = encode(&ShimRequest::Start(Box::new(plan))).expect("a message");
    assert_eq!(lower_hex(&packet), recorded("start"));
    let read = decode(&packet_of(recorded("start"))).expect("a message");
    let ShimRequest::Start(read) = read else {
        panic!("another message");
    };
    assert_eq!((read.sandbox, read.limits), (Some(sandbox), limits));
    assert!(read.record_input);
}
