use std::path::Path;
use std::time::Duration;

use ostler_fuzz::fuzz;

use super::*;

fn plan() -> WirePlan {
    WirePlan {
        id: ExecutionId::mint(),
        attempt: 1,
        spec: "{}".into(),
        program: "/bin/sh".into(),
        argv: vec!["sh".into(), "-c".into(), "true".into()],
        env: vec![("PATH".into(), "/bin".into())],
        cwd: "/".into(),
        io: WireIo::Bytes("input".into()),
        timeouts: Timeouts {
            wall: Some(Duration::from_secs(1)),
            idle: None,
            grace: Duration::from_millis(5),
        },
        orphan_policy: OrphanPolicy::Kill,
        limits: Limits::default().into(),
        sandbox_json: None,
        redact: vec!["secret".into()],
        pinned_files: Vec::new(),
        report_start: true,
        lossless_reader: false,
        min_output_offset: 0,
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
fn fuzz_packets() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/packets");
    let missing = vec![(0, 7), (u64::MAX, 1)];
    let seeds = [
        encode(&ShimRequest::Start(Box::new(plan()))),
        encode(&ShimRequest::StartInMemory),
        encode(&ShimEvent::Started {
            pid: 7,
            at: Timestamp::UNIX_EPOCH,
        }),
        encode(&ShimEvent::JournalRecovered { missing }),
        encode(&ZygoteRequest::Fork { count: 3 }),
        encode(&ZygoteEvent::ForkFailed { errno: 11 }),
    ];
    let seeds = seeds.map(|packet| packet.expect("a message")).to_vec();
    fuzz(&corpus, seeds, |packet| {
        same::<ShimRequest>(packet);
        same::<ShimEvent>(packet);
        same::<ZygoteRequest>(packet);
        same::<ZygoteEvent>(packet);
    });
}
