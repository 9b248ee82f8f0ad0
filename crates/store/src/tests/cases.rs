//! What holds for every database: the same ledger, the same answers.

use std::time::Duration;

use ostler_model::{
    Event, ExecutionId, Principal, ProjectSet, ProjectView, Scope, Termination, TerminationCause,
    Timestamp, UsagePeaks, termination::LostReason,
};
use serde_json::json;

use super::{DAY, Fixture, all, owner};
use crate::error::StoreError;
use crate::query::{HistoryQuery, HistoryStatus};

pub(crate) fn a_row_holds_what_the_ledger_says(mut fixture: Fixture) {
    let owner = owner(Some("s"), Some("p"));
    let id = fixture.run(&owner, "make -j8", 2);
    fixture.update();
    let row = fixture.store.find(&all(&owner).caller, id).unwrap();
    let row = row.expect("it is there");
    assert_eq!(
        (row.id, &row.owner, row.client.as_str()),
        (id, &owner, "cli")
    );
    assert_eq!(
        (row.command.as_str(), row.directory.as_str()),
        ("make -j8", "/w")
    );
    assert_eq!(row.labels, ["team", "a\"b"]);
    assert_eq!(
        (row.level.as_str(), row.in_force),
        ("none", vec!["cgroup".to_owned()])
    );
    assert_eq!(
        (row.cause.as_deref(), row.code, row.signal),
        (Some("exited"), Some(2), None)
    );
    let second = Duration::from_secs(1);
    assert_eq!(row.started, Some(row.created + second));
    assert_eq!(row.ended, Some(row.created + 2 * second));
    let totals = row.totals.expect("it ended");
    assert_eq!((totals.usage.user_us, totals.usage.max_rss_bytes), (5, 7));
    assert_eq!(
        (totals.output_bytes, totals.prompts, row.attempts),
        (8, 1, 1)
    );
    let expected = UsagePeaks {
        cpu_percent: Some(99.5),
        written_bytes: Some(4),
        processes: Some(2),
        ..UsagePeaks::default()
    };
    assert_eq!((totals.output_lines, totals.peaks), (Some(3), expected));
}

pub(crate) fn every_condition_selects(mut fixture: Fixture) {
    let (one, two) = (owner(Some("s"), Some("p")), owner(Some("t"), None));
    fixture.run(&one, "cargo build", 0);
    fixture.run(&one, "cargo test --lib", 1);
    fixture.run(&two, "ls 100%_", 0);
    fixture.start(&two, "sleep 9");
    fixture.update();
    let since = fixture.now();
    fixture.run(&one, "last \"quoted\"", 0);
    fixture.update();
    type Change = fn(&mut HistoryQuery, Timestamp);
    let cases: [(Change, &[&str]); 14] = [
        (
            |_, _| {},
            &[
                "last \"quoted\"",
                "sleep 9",
                "ls 100%_",
                "cargo test --lib",
                "cargo build",
            ],
        ),
        (
            |q, _| q.project = Some("p".into()),
            &["last \"quoted\"", "cargo test --lib", "cargo build"],
        ),
        (
            |q, _| q.session = Some("t".into()),
            &["sleep 9", "ls 100%_"],
        ),
        (|q, _| q.status = Some(HistoryStatus::Running), &["sleep 9"]),
        (
            |q, _| q.status = Some(HistoryStatus::Failed),
            &["cargo test --lib"],
        ),
        (|q, _| q.status = Some(HistoryStatus::Lost), &[]),
        (
            |q, _| q.text = Some("CARGO".into()),
            &["cargo test --lib", "cargo build"],
        ),
        (|q, _| q.text = Some("\"quo".into()), &["last \"quoted\""]),
        (|q, _| q.text = Some("%_".into()), &["ls 100%_"]),
        (|q, _| q.text = Some("OR".into()), &[]),
        (
            |q, _| q.label = Some("a\"b".into()),
            &[
                "last \"quoted\"",
                "sleep 9",
                "ls 100%_",
                "cargo test --lib",
                "cargo build",
            ],
        ),
        (|q, _| q.label = Some("a".into()), &[]),
        (|q, at| q.since = Some(at), &["last \"quoted\""]),
        (
            |q, at| {
                q.until = Some(at);
                q.skip = 1;
                q.limit = 2;
            },
            &["ls 100%_", "cargo test --lib"],
        ),
    ];
    for (index, (change, expected)) in cases.into_iter().enumerate() {
        let mut query = all(&one);
        change(&mut query, since + Duration::from_millis(1));
        assert_eq!(fixture.commands(&query), expected, "case {index}");
    }
}

pub(crate) fn a_session_sees_its_own_and_what_was_passed_to_its_project(mut fixture: Fixture) {
    let (mine, other) = (owner(Some("s"), Some("p")), owner(Some("t"), Some("p")));
    fixture.run(&mine, "mine", 0);
    fixture.run(&other, "other", 0);
    let passed = fixture.start(&other, "passed");
    fixture.end(passed, &owner(None, Some("p")), 0);
    let mut stranger = mine.clone();
    stranger.principal = Principal::unix(2);
    fixture.run(&stranger, "stranger", 0);
    fixture.update();
    let mut query = all(&mine);
    // As `Caller::can_access` decides.
    query.caller.scope = Scope::Session;
    assert_eq!(fixture.commands(&query), ["passed", "mine"]);
    query.caller.owner.session = None;
    query.caller.owner.project = None;
    assert_eq!(fixture.commands(&query), ["passed"]);
    assert_eq!(fixture.commands(&all(&mine)), ["passed", "other", "mine"]);
}

pub(crate) fn pages_continue_while_rows_are_added(mut fixture: Fixture) {
    let owner = owner(None, None);
    let mut expected: Vec<String> = (0..25).map(|n| format!("job {n}")).collect();
    for command in &expected {
        fixture.run(&owner, command, 0);
    }
    expected.reverse();
    for text in [None, Some("job".to_owned())] {
        fixture.update();
        let mut query = HistoryQuery {
            text,
            limit: 7,
            ..all(&owner)
        };
        let mut listed = Vec::new();
        loop {
            let page = fixture.store.list(&query).unwrap();
            listed.extend(page.rows.into_iter().map(|row| row.command));
            fixture.run(&owner, "later", 0);
            fixture.update();
            query.before = page.next_before;
            if query.before.is_none() {
                break;
            }
        }
        listed.retain(|command| command != "later");
        assert_eq!(listed, expected);
    }
}

pub(crate) fn a_killed_updater_loses_and_doubles_no_row(mut fixture: Fixture) {
    let owner = owner(None, None);
    let mut rng = fastrand::Rng::with_seed(17);
    let mut count = 0;
    for _ in 0..40 {
        for _ in 0..rng.usize(..80) {
            fixture.run(&owner, "true", 0);
            count += 1;
        }
        let _partial = fixture.updater.step(fixture.ledger.end(), fixture.now());
        if rng.bool() {
            fixture.reopen();
        }
    }
    fixture.update();
    let mut query = all(&owner);
    let mut rows = 0;
    loop {
        let page = fixture.store.list(&query).unwrap();
        assert!(page.rows.iter().all(|row| row.code == Some(0)));
        rows += page.rows.len();
        query.before = page.next_before;
        if query.before.is_none() {
            break;
        }
    }
    assert_eq!(rows, count);
}

pub(crate) fn an_end_without_totals_has_none_and_the_first_end_counts(mut fixture: Fixture) {
    let owner = owner(None, None);
    let id = fixture.start(&owner, "true");
    let lost = Termination::without_status(TerminationCause::Lost {
        reason: LostReason::NoRecord,
    });
    let finished = Event::Finished { ending: lost };
    fixture.append(id, &owner, finished, json!({}));
    fixture.end(id, &owner, 0);
    fixture.update();
    let row = fixture.store.find(&all(&owner).caller, id).unwrap();
    let row = row.expect("it is there");
    assert_eq!((row.cause.as_deref(), row.totals), (Some("lost"), None));
    assert_eq!(row.ended, Some(row.created + Duration::from_secs(2)));
}

pub(crate) fn a_process_that_could_not_be_started_is_an_attempt_and_no_start(mut fixture: Fixture) {
    let owner = owner(None, None);
    let id = ExecutionId::mint();
    let created = Event::Created {
        missing: Vec::new(),
    };
    fixture.append(id, &owner, created, json!({"command": "nothing"}));
    let failed = Event::SpawnFailed {
        attempt: 1,
        step: "exec".to_owned(),
        errno: Some(2),
        message: "no such file".to_owned(),
    };
    fixture.append(id, &owner, failed, json!({}));
    fixture.update();
    let row = fixture.store.find(&all(&owner).caller, id).unwrap();
    let row = row.expect("it is there");
    assert_eq!((row.started, row.attempts), (None, 1));
}

/// A start that the engine's kill cut off, which the client repeats with the id that it chose.
pub(crate) fn a_start_that_is_repeated_under_its_id_begins_its_row_anew(mut fixture: Fixture) {
    let owner = owner(None, None);
    let created = || Event::Created {
        missing: Vec::new(),
    };
    let cut_off = || Event::Finished {
        ending: Termination::without_status(TerminationCause::SpawnFailed {
            step: "spawn".to_owned(),
            errno: None,
            message: "the engine was killed".to_owned(),
        }),
    };
    let command = || json!({"command": "true"});
    // With the row in the database, and with all of it in one group.
    for split in [[true, true], [true, false], [false, true], [false, false]] {
        let id = ExecutionId::mint();
        fixture.append(id, &owner, created(), command());
        if split[0] {
            fixture.update();
        }
        fixture.append(id, &owner, cut_off(), json!({}));
        if split[1] {
            fixture.update();
        }
        fixture.append(id, &owner, created(), command());
        let row = |fixture: &mut Fixture| {
            fixture.update();
            let row = fixture.store.find(&all(&owner).caller, id).unwrap();
            row.expect("it is there")
        };
        let found = row(&mut fixture);
        assert_eq!((found.cause, found.ended, found.attempts), (None, None, 0));
        let started = Event::Started { attempt: 1, pid: 7 };
        fixture.append(id, &owner, started, json!({}));
        fixture.end(id, &owner, 4);
        let found = row(&mut fixture);
        assert_eq!((found.code, found.attempts), (Some(4), 1));
        // What runs stays as it is.
        let runs = fixture.start(&owner, "true");
        fixture.update();
        fixture.append(runs, &owner, created(), command());
        fixture.update();
        let found = fixture.store.find(&all(&owner).caller, runs).unwrap();
        assert_eq!(found.expect("it is there").attempts, 1);
    }
}

/// An execution that was removed, and another one under its id, of another principal.
pub(crate) fn a_run_under_the_id_of_a_removed_one_has_the_row(mut fixture: Fixture) {
    let (first, mut second) = (owner(None, None), owner(None, None));
    second.principal = Principal::unix(7);
    let created = || Event::Created {
        missing: Vec::new(),
    };
    // The groups end at these entries.
    for split in 0..16_u8 {
        let mut step = 0;
        let mut next = |fixture: &mut Fixture| {
            if split & (1 << step) != 0 {
                fixture.update();
            }
            step += 1;
        };
        let id = fixture.start(&first, "first");
        next(&mut fixture);
        fixture.end(id, &first, 4);
        next(&mut fixture);
        fixture.append(id, &second, created(), json!({"command": "second"}));
        next(&mut fixture);
        let started = Event::Started { attempt: 1, pid: 7 };
        fixture.append(id, &second, started, json!({}));
        next(&mut fixture);
        fixture.end(id, &second, 5);
        fixture.update();
        let find = |owner| fixture.store.find(&all(owner).caller, id).unwrap();
        assert_eq!(find(&first), None, "{split}");
        let row = find(&second).expect("it is there");
        assert_eq!(
            (row.command.as_str(), row.code, row.attempts),
            ("second", Some(5), 1),
            "{split}"
        );
    }
    let found = |text: &str| HistoryQuery {
        text: Some(text.to_owned()),
        ..all(&second)
    };
    assert_eq!(fixture.commands(&found("secon")).len(), 16);
    assert!(fixture.commands(&found("firs")).is_empty());
}

pub(crate) fn any_text_can_be_searched_for(mut fixture: Fixture) {
    let owner = owner(None, None);
    let texts = [
        "   ",
        "\"\"\"",
        "a\"b'c",
        "%_%",
        "NEAR(a b)",
        "a* OR b",
        "-c:d",
        "\u{feff}é漢字",
        "\n\t\r",
        "\\\\\\",
    ];
    for text in texts {
        fixture.run(&owner, &format!("echo {text} end"), 0);
    }
    fixture.update();
    for text in texts {
        let query = HistoryQuery {
            text: Some(text.to_owned()),
            ..all(&owner)
        };
        let found = fixture.commands(&query);
        assert!(
            found.contains(&format!("echo {text} end")),
            "{text:?}: {found:?}"
        );
        assert!(
            found.iter().all(|command| command.contains(text)),
            "{text:?}: {found:?}"
        );
    }
}

pub(crate) fn old_rows_expire_and_running_ones_stay(mut fixture: Fixture) {
    let owner = owner(None, None);
    fixture.run(&owner, "old", 0);
    fixture.start(&owner, "old service");
    fixture.clock += 91 * 24 * 60 * 60;
    fixture.run(&owner, "new", 0);
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["new", "old service"]);
    let query = HistoryQuery {
        text: Some("old".into()),
        ..all(&owner)
    };
    assert_eq!(fixture.commands(&query), ["old service"]);
}

pub(crate) fn statistics_count_the_same_command_only(mut fixture: Fixture) {
    let (mine, mut other) = (owner(None, None), owner(None, None));
    other.principal = Principal::unix(2);
    let mut last = None;
    for n in 0..4 {
        last = Some(fixture.run(&mine, &format!("make -j{n}"), i32::from(n == 0)));
        fixture.run(&mine, "make clean", 0);
        fixture.run(&other, "make -j1", 0);
    }
    fixture.update();
    let row = fixture
        .store
        .find(&all(&mine).caller, last.unwrap())
        .unwrap();
    let fingerprint = row.unwrap().fingerprint.unwrap();
    let now = fixture.now();
    let statistics = |fixture: &Fixture, now| {
        fixture
            .store
            .statistics(&mine.principal, fingerprint, now)
            .unwrap()
    };
    assert_eq!(statistics(&fixture, now), None);
    fixture.run(&mine, "make -j5", 0);
    fixture.update();
    let found = statistics(&fixture, now).expect("five ends");
    assert_eq!((found.runs, found.failures), (5, 1));
    assert_eq!(found.median, Duration::from_secs(1));
    assert_eq!(statistics(&fixture, now + 40 * DAY), None);
}

pub(crate) fn who_is_limited_to_projects_sees_their_rows(mut fixture: Fixture) {
    for (command, session, project) in [
        ("mine of a", Some("s"), Some("a")),
        ("mine of b", Some("s"), Some("b")),
        ("mine of c", Some("s"), Some("c")),
        ("mine of none", Some("s"), None),
        ("other of a", Some("t"), Some("a")),
        ("passed to a", None, Some("a")),
        ("passed to b", None, Some("b")),
        ("passed to c", None, Some("c")),
    ] {
        fixture.run(&owner(session, project), command, 0);
    }
    fixture.update();
    let mut query = all(&owner(Some("s"), Some("a")));
    let everything = fixture.store.list(&query).unwrap().rows;
    let named = |names: &[&str]| ProjectView {
        visible: ProjectSet::All,
        reachable: ProjectSet::named(names.iter().copied()),
    };
    for names in [&["a"][..], &["a", "b"], &["x"], &[]] {
        query.caller.projects = named(names);
        for scope in [Scope::Principal, Scope::Session] {
            query.caller.scope = scope;
            let caller = &query.caller;
            let expected = everything
                .iter()
                .filter(|row| caller.can_access(&row.owner));
            let expected: Vec<String> = expected.map(|row| row.command.clone()).collect();
            assert_eq!(fixture.commands(&query), expected, "{names:?} {scope:?}");
            for row in &everything {
                let by_id = fixture.store.find(caller, row.id).unwrap();
                let by_short_id = fixture.store.find_short(caller, &row.id.short()).unwrap();
                let is_visible = caller.can_access(&row.owner);
                assert_eq!(by_id.is_some(), is_visible, "{names:?} {scope:?} {row:?}");
                assert_eq!(by_short_id, by_id);
            }
        }
    }
}

pub(crate) fn changes_of_one_group_and_of_many_make_the_same_rows(mut fixture: Fixture) {
    let owner = owner(Some("s"), Some("p"));
    let mut passed = owner.clone();
    passed.session = None;
    let mut ids = Vec::new();
    for is_apart in [false, true] {
        let id = fixture.start(&owner, "make");
        if is_apart {
            fixture.update();
        }
        let failed = Event::SpawnFailed {
            attempt: 2,
            step: "exec".to_owned(),
            errno: None,
            message: String::new(),
        };
        fixture.append(id, &owner, failed, json!({}));
        let again = Event::Started { attempt: 3, pid: 8 };
        fixture.append(id, &owner, again, json!({}));
        if is_apart {
            fixture.update();
        }
        fixture.end(id, &passed, 4);
        fixture.end(id, &owner, 5);
        fixture.update();
        ids.push(id);
    }
    let rows = ids.into_iter().map(|id| {
        let row = fixture.store.find(&all(&owner).caller, id).unwrap();
        let row = row.expect("it is there");
        let since = |at: Option<Timestamp>| at.map(|at| at.duration_since(row.created));
        (
            (row.owner.clone(), row.attempts, row.code, row.totals),
            (since(row.started), since(row.ended), row.cause.clone()),
        )
    });
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows[0], rows[1]);
    assert_eq!((rows[0].0.1, rows[0].0.2), (3, Some(4)));
    assert_eq!(rows[0].0.0, passed);
}

pub(crate) fn a_reset_history_is_made_anew(mut fixture: Fixture) {
    let owner = owner(None, None);
    let expected: Vec<String> = (0..700).map(|n| format!("job {n}")).collect();
    for command in &expected {
        fixture.run(&owner, command, 0);
    }
    fixture.update();
    fixture.store.reset().unwrap();
    fixture.update();
    let mut query = all(&owner);
    let mut listed = Vec::new();
    loop {
        let page = fixture.store.list(&query).unwrap();
        listed.extend(page.rows.into_iter().map(|row| row.command));
        query.before = page.next_before;
        if query.before.is_none() {
            break;
        }
    }
    listed.reverse();
    assert_eq!(listed, expected);
}

pub(crate) fn the_history_of_another_ledger_is_made_anew(mut fixture: Fixture) {
    let owner = owner(None, None);
    for n in 0..5 {
        fixture.run(&owner, &format!("earlier {n}"), 0);
    }
    fixture.update();
    // Somebody began the ledger anew.
    fixture.begin_ledger_anew();
    for n in 0..9 {
        fixture.run(&owner, &format!("later {n}"), 0);
    }
    fixture.update();
    let expected: Vec<String> = (0..9).rev().map(|n| format!("later {n}")).collect();
    assert_eq!(fixture.commands(&all(&owner)), expected);
}

pub(crate) fn a_group_does_not_follow_a_reset(mut fixture: Fixture) {
    let owner = owner(None, None);
    let commands: Vec<String> = (0..20).map(|n| format!("job {n}")).collect();
    for command in &commands[..10] {
        fixture.run(&owner, command, 0);
    }
    fixture.update();
    let read = fixture.store.fold_position().unwrap().next;
    for command in &commands[10..] {
        fixture.run(&owner, command, 0);
    }
    let records = fixture.ledger.reader().read(read, 300).unwrap().records;
    fixture.store.reset().unwrap();
    let error = fixture.store.apply(read, &records).unwrap_err();
    assert!(matches!(error, StoreError::Moved), "{error}");
    fixture.update();
    let listed = fixture.commands(&all(&owner));
    assert!(listed.iter().rev().eq(&commands), "{listed:?}");
}
