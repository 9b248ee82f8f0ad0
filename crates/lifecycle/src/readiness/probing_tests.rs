use super::*;
use crate::readiness::probe_target::{HttpProbeOptions, http_request};
use crate::readiness::scan_schedule::ms;

fn aim(pass: ProbeCriterion) -> ProbeSpec {
    let order = http_request(
        ([127, 0, 0, 1], 3000).into(),
        "/",
        HttpProbeOptions::default(),
    );
    ProbeSpec {
        request: order,
        inode: Some(7),
        criterion: pass,
    }
}

fn http(status: u16) -> ProbeOutcome {
    ProbeOutcome::Http {
        status,
        tls: false,
        ms: 5,
    }
}

fn failed(detail: &str) -> ProbeOutcome {
    let detail = detail.into();
    ProbeOutcome::Failed { detail }
}

fn accepted() -> ProbeOutcome {
    ProbeOutcome::Accepted {
        detail: "speaks no HTTP".into(),
    }
}

fn exec(code: i32, output: &str) -> ProbeOutcome {
    let output = output.into();
    ProbeOutcome::Exec { code, output }
}

#[test]
fn what_counts() {
    let (twohundred, fivehundred) = (
        Ok("GET / at 127.0.0.1:3000 answered 200 in 5 ms"),
        Ok("GET / at 127.0.0.1:3000 answered 500 in 5 ms"),
    );
    let found = Ok("GET / at 127.0.0.1:3000 answered 399 in 5 ms");
    let taken = Ok("127.0.0.1:3000 takes connections");
    let strange = Ok("127.0.0.1:3000 takes connections (speaks no HTTP)");
    for (pass, answered, detail) in [
        (ProbeCriterion::Answers, http(200), twohundred),
        (ProbeCriterion::Answers, http(500), fivehundred),
        (ProbeCriterion::Answers, http(503), Err("503")),
        (ProbeCriterion::Answers, accepted(), strange),
        (ProbeCriterion::Succeeds, http(200), twohundred),
        (ProbeCriterion::Succeeds, http(399), found),
        (ProbeCriterion::Succeeds, http(400), Err("400")),
        (ProbeCriterion::Succeeds, http(199), Err("199")),
        (ProbeCriterion::Succeeds, accepted(), Err("speaks no HTTP")),
        (ProbeCriterion::Connects, accepted(), taken),
        (ProbeCriterion::Connects, failed("refused"), Err("refused")),
        (
            ProbeCriterion::Exits,
            exec(2, "no\n"),
            Err("exit code 2: no"),
        ),
        (ProbeCriterion::Exits, exec(1, ""), Err("exit code 1")),
        (
            ProbeCriterion::Exits,
            http(200),
            Err("answered something else"),
        ),
    ] {
        let actual = format!("{pass:?} {answered:?}");
        let judged = evaluate(&aim(pass), answered, ms(0)).map(|it| it.detail);
        let detail = detail.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(judged, detail, "{actual}");
    }
}

#[test]
fn a_command_that_exits_with_0() {
    let aim = ProbeSpec {
        request: ProbeRequest::Exec {
            argv: vec!["pg_isready".into(), "-q".into()],
        },
        inode: None,
        criterion: ProbeCriterion::Exits,
    };
    let passed = evaluate(&aim, exec(0, ""), ms(0)).map(|it| it.detail);
    assert_eq!(passed, Ok("`pg_isready -q` exited with 0".to_owned()));
}

#[test]
fn tries_grow_apart() {
    let mut probing = ProbeState::default();
    assert_eq!(probing.due_probe(ms(9)), None);
    probing.set_spec(Some(aim(ProbeCriterion::Answers)), ms(10));
    let mut at = ms(10);
    let mut gaps = Vec::new();
    for _ in 0..6 {
        assert!(probing.due_probe(at).is_some());
        probing.handle_result(http(503), at);
        assert_eq!(probing.due_probe(at), None);
        // This result is not awaited.
        probing.handle_result(http(200), at);
        let due = probing.due().expect("tried again");
        gaps.push((due - at).as_millis());
        at = due;
    }
    assert_eq!(gaps, [100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(probing.last_failure(), Some("503"));
    probing.set_spec(None, at);
    assert_eq!(probing.due_probe(ms(99_999)), None);
}

#[test]
fn a_connection_taken_is_confirmed_by_a_later_scan() {
    let mut probing = ProbeState::default();
    probing.set_spec(Some(aim(ProbeCriterion::Answers)), ms(10));
    probing.handle_result(accepted(), ms(20));
    assert_eq!(
        probing.confirmed_success(Some(ms(20)), |_| true, ms(20)),
        None
    );
    assert_eq!(probing.confirm_at(Some(ms(20))), Some(ms(28)));
    let mut dying = probing.clone();
    assert!(
        probing
            .confirmed_success(Some(ms(28)), |inode| inode == 7, ms(28))
            .is_some()
    );
    assert_eq!(
        dying.confirmed_success(Some(ms(28)), |_| false, ms(28)),
        None
    );
    assert_eq!(dying.due(), Some(ms(128)));
}
