use super::*;
use crate::readiness::schedule::ms;
use crate::readiness::target::request;

fn aim(pass: Pass) -> Aim {
    let order = request(([127, 0, 0, 1], 3000).into(), "/", (false, false));
    Aim {
        order,
        inode: Some(7),
        pass,
    }
}

fn http(status: u16) -> Answered {
    Answered::Http {
        status,
        tls: false,
        ms: 5,
    }
}

fn failed(detail: &str) -> Answered {
    let detail = detail.into();
    Answered::Failed { detail }
}

fn accepted() -> Answered {
    Answered::Accepted {
        detail: "speaks no HTTP".into(),
    }
}

fn exec(code: i32, output: &str) -> Answered {
    let output = output.into();
    Answered::Exec { code, output }
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
        (Pass::Answers, http(200), twohundred),
        (Pass::Answers, http(500), fivehundred),
        (Pass::Answers, http(503), Err("503")),
        (Pass::Answers, accepted(), strange),
        (Pass::Succeeds, http(200), twohundred),
        (Pass::Succeeds, http(399), found),
        (Pass::Succeeds, http(400), Err("400")),
        (Pass::Succeeds, http(199), Err("199")),
        (Pass::Succeeds, accepted(), Err("speaks no HTTP")),
        (Pass::Connects, accepted(), taken),
        (Pass::Connects, failed("refused"), Err("refused")),
        (Pass::Exits, exec(2, "no\n"), Err("exit code 2: no")),
        (Pass::Exits, exec(1, ""), Err("exit code 1")),
        (Pass::Exits, http(200), Err("answered something else")),
    ] {
        let told = format!("{pass:?} {answered:?}");
        let judged = judge(&aim(pass), answered, ms(0)).map(|it| it.detail);
        let detail = detail.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(judged, detail, "{told}");
    }
}

#[test]
fn a_command_that_exits_with_0() {
    let aim = Aim {
        order: ProbeOrder::Exec {
            argv: vec!["pg_isready".into(), "-q".into()],
        },
        inode: None,
        pass: Pass::Exits,
    };
    let passed = judge(&aim, exec(0, ""), ms(0)).map(|it| it.detail);
    assert_eq!(passed, Ok("`pg_isready -q` exited with 0".to_owned()));
}

#[test]
fn tries_grow_apart() {
    let mut probing = Probing::default();
    assert_eq!(probing.order(ms(9)), None);
    probing.aim(Some(aim(Pass::Answers)), ms(10));
    let mut at = ms(10);
    let mut gaps = Vec::new();
    for _ in 0..6 {
        assert!(probing.order(at).is_some());
        probing.answered(http(503), at);
        assert_eq!(probing.order(at), None);
        // Nobody waits for this one.
        probing.answered(http(200), at);
        let due = probing.due().expect("tried again");
        gaps.push((due - at).as_millis());
        at = due;
    }
    assert_eq!(gaps, [100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(probing.failed(), Some("503"));
    probing.aim(None, at);
    assert_eq!(probing.order(ms(99_999)), None);
}

#[test]
fn a_connection_taken_is_confirmed_by_a_later_scan() {
    let mut probing = Probing::default();
    probing.aim(Some(aim(Pass::Answers)), ms(10));
    probing.answered(accepted(), ms(20));
    assert_eq!(probing.passed(Some(ms(20)), |_| true, ms(20)), None);
    assert_eq!(probing.unconfirmed(Some(ms(20))), Some(ms(28)));
    let mut dying = probing.clone();
    assert!(
        probing
            .passed(Some(ms(28)), |inode| inode == 7, ms(28))
            .is_some()
    );
    assert_eq!(dying.passed(Some(ms(28)), |_| false, ms(28)), None);
    assert_eq!(dying.due(), Some(ms(128)));
}
