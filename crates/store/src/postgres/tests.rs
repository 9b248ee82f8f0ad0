//! What holds for a server: shared tables, versions, cut connections, timeouts.

use crate::error::StoreError;
use crate::query::HistoryQuery;
use crate::tests::{Fixture, TestDatabaseServer, all, owner};
use crate::updater::UpdateOutcome;

fn failure(fixture: &mut Fixture) -> StoreError {
    let outcome = fixture.updater.step(fixture.ledger.end(), fixture.now());
    let UpdateOutcome::Failed(error) = outcome else {
        panic!("{outcome:?}");
    };
    error
}

#[test]
fn ledgers_share_tables_and_nothing_else() {
    let server = TestDatabaseServer::start();
    let mut fixtures = ["one", "two"].map(|ledger| {
        let mut settings = server.settings("shared");
        settings.ledger = ledger.to_owned();
        Fixture::postgres(settings)
    });
    let owner = owner(None, Some("p"));
    let [one, two] = &mut fixtures;
    let of_one = one.run(&owner, "of one", 0);
    for n in 0..6 {
        two.run(&owner, &format!("of two {n}"), 0);
    }
    one.update();
    two.update();
    let expected: Vec<String> = (0..6).rev().map(|n| format!("of two {n}")).collect();
    let query = all(&owner);
    for text in [None, Some("of".to_owned())] {
        let query = HistoryQuery {
            text,
            ..query.clone()
        };
        assert_eq!(one.commands(&query), ["of one"]);
        assert_eq!(two.commands(&query), expected);
    }
    assert_eq!(two.store.find(&query.caller, of_one).unwrap(), None);
    assert!(
        two.store
            .statistics_of(&[of_one], two.now())
            .unwrap()
            .is_empty()
    );
    // One is made anew, and its ledger begins anew; the other one does not notice.
    one.store.reset().unwrap();
    assert_eq!(one.commands(&query), [""; 0]);
    one.update();
    assert_eq!(one.commands(&query), ["of one"]);
    one.begin_ledger_anew();
    one.update();
    assert_eq!(one.commands(&query), [""; 0]);
    assert_eq!(two.commands(&query), expected);
    // Rows of what was reset go with expired ones.
    one.clock += 3_600;
    two.clock += 3_600;
    one.update();
    two.update();
    let rows = server.execute("SELECT count(*) FROM shared.execution");
    assert_eq!(rows.as_deref(), Some("6"));
    let ledgers = server.execute("SELECT count(*) FROM shared.ledger");
    assert_eq!(ledgers.as_deref(), Some("2"));
}

#[test]
fn one_program_writes_the_rows_of_a_ledger() {
    let server = TestDatabaseServer::start();
    let mut first = Fixture::postgres(server.settings("ledger"));
    let mut copy = Fixture::postgres(server.settings("ledger"));
    let owner = owner(None, None);
    first.run(&owner, "first", 0);
    first.update();
    copy.run(&owner, "copy", 0);
    let error = failure(&mut copy).to_string();
    assert!(error.contains("another daemon writes"), "{error}");
    assert_eq!(first.commands(&all(&owner)), ["first"]);
}

#[test]
fn a_query_does_not_need_the_fold_to_come_first() {
    let server = TestDatabaseServer::start();
    let fixture = Fixture::postgres(server.settings("first"));
    let owner = owner(None, None);
    assert_eq!(fixture.commands(&all(&owner)), [""; 0]);
    server.execute("DROP SCHEMA first CASCADE");
    assert_eq!(fixture.commands(&all(&owner)), [""; 0]);
}

#[test]
fn newer_tables_are_left_alone() {
    let server = TestDatabaseServer::start();
    let mut fixture = Fixture::postgres(server.settings("newer"));
    let owner = owner(None, None);
    fixture.run(&owner, "true", 0);
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["true"]);
    server.execute("INSERT INTO newer.migration VALUES (99)");
    fixture.run(&owner, "false", 1);
    // Neither by the connections that are open nor by new ones.
    for _ in 0..2 {
        let written = failure(&mut fixture);
        let read = fixture.store.list(&all(&owner)).unwrap_err();
        for error in [written, read] {
            let is_newer = matches!(error, StoreError::Newer { found: 99, .. });
            assert!(is_newer, "{error}");
        }
        fixture.reopen();
    }
    let rows = server.execute("SELECT count(*) FROM newer.execution");
    assert_eq!(rows.as_deref(), Some("1"));
    server.execute("DELETE FROM newer.migration WHERE version = 99");
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["false", "true"]);
}

#[test]
fn any_name_is_stored_and_found() {
    let server = TestDatabaseServer::start();
    let mut fixture = Fixture::postgres(server.settings("names"));
    let mut rng = fastrand::Rng::with_seed(5);
    // Longer than an index of the server takes, whatever it compresses.
    let long: String = std::iter::repeat_with(|| rng.alphanumeric())
        .take(20_000)
        .collect();
    for name in [long.as_str(), "a\0b", "", "%_\\'\"", "漢字"] {
        let owner = owner(Some(name), Some(name));
        fixture.run(&owner, &format!("echo {name}"), 0);
        fixture.update();
        let query = HistoryQuery {
            project: Some(name.to_owned()),
            session: Some(name.to_owned()),
            ..all(&owner)
        };
        assert_eq!(
            fixture.store.list(&query).unwrap().rows.len(),
            1,
            "{name:?}"
        );
    }
}

/// A cause that ends the transaction of a group in its middle, once.
fn harm(server: &TestDatabaseServer, schema: &str, action: &str) {
    server.execute(&format!(
        "CREATE FUNCTION {schema}.harm() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN {action}; RETURN new; END$$; \
         CREATE TRIGGER harm AFTER INSERT ON {schema}.execution \
         FOR EACH ROW WHEN (new.command = 'job 150') EXECUTE FUNCTION {schema}.harm()"
    ));
}

#[test]
fn a_transaction_that_is_cut_or_takes_too_long_loses_and_doubles_nothing() {
    let server = TestDatabaseServer::start();
    let owner = owner(None, None);
    for (schema, action, reason) in [
        (
            "cut",
            "PERFORM pg_terminate_backend(pg_backend_pid())",
            "terminating connection",
        ),
        ("slow", "PERFORM pg_sleep(600)", "statement timeout"),
        ("refused", "RAISE 'no %', new.labels", "no "),
    ] {
        let mut fixture = Fixture::postgres(server.settings(schema));
        fixture.update();
        harm(&server, schema, action);
        let mut expected: Vec<String> = (0..200).map(|n| format!("job {n}")).collect();
        for command in &expected {
            fixture.run(&owner, command, 0);
        }
        // The first group is whole, the second one is not.
        let first = fixture.updater.step(fixture.ledger.end(), fixture.now());
        assert!(matches!(first, UpdateOutcome::Advanced(_)), "{first:?}");
        let error = failure(&mut fixture).to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(fixture.store.list(&all(&owner)).unwrap().rows.len(), 100);
        server.execute(&format!("DROP TRIGGER harm ON {schema}.execution"));
        fixture.update();
        expected.reverse();
        assert_eq!(fixture.commands(&all(&owner)), expected);
    }
}

#[test]
fn a_lock_and_a_long_search_end_with_their_reasons() {
    let server = TestDatabaseServer::start();
    let mut fixture = Fixture::postgres(server.settings("locked"));
    let owner = owner(None, None);
    fixture.run(&owner, "true", 0);
    fixture.update();
    let (release, released) = std::sync::mpsc::channel();
    let (taken, is_taken) = std::sync::mpsc::channel();
    let on = &server;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            on.execute_while(
                "BEGIN; LOCK TABLE locked.execution IN ACCESS EXCLUSIVE MODE",
                || {
                    taken.send(()).unwrap();
                    released.recv().unwrap();
                },
            );
        });
        is_taken.recv().unwrap();
        fixture.run(&owner, "false", 1);
        let error = failure(&mut fixture).to_string();
        assert!(error.contains("lock timeout"), "{error}");
        let error = fixture.store.list(&all(&owner)).unwrap_err();
        assert!(matches!(error, StoreError::Unreachable(_)), "{error}");
        release.send(()).unwrap();
    });
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["false", "true"]);
    // What is searched takes long to compute.
    server.execute(
        "ALTER TABLE locked.execution RENAME TO rows; \
         CREATE VIEW locked.execution AS SELECT rows.* FROM locked.rows, pg_sleep(600)",
    );
    let error = fixture.store.list(&all(&owner)).unwrap_err();
    assert!(matches!(error, StoreError::SearchTimeout), "{error}");
}

#[test]
fn texts_are_found_without_the_extension() {
    let server = TestDatabaseServer::start();
    server.execute("CREATE ROLE plain LOGIN; CREATE SCHEMA plain AUTHORIZATION plain");
    let mut settings = server.settings("plain");
    let url = settings
        .address
        .as_str()
        .replace("user=postgres", "user=plain");
    settings.address = url.parse().unwrap();
    let mut fixture = Fixture::postgres(settings);
    let owner = owner(None, None);
    fixture.run(&owner, "make needle", 0);
    fixture.run(&owner, "make hay", 0);
    fixture.update();
    let extensions = server.execute("SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'");
    assert_eq!(extensions.as_deref(), Some("0"));
    let query = HistoryQuery {
        text: Some("NEEDLE".to_owned()),
        ..all(&owner)
    };
    assert_eq!(fixture.commands(&query), ["make needle"]);
}

#[test]
fn the_last_owner_may_be_a_task() {
    let server = TestDatabaseServer::start();
    let mut fixture = Fixture::postgres(server.settings("dropped"));
    fixture.run(&owner(None, None), "true", 0);
    fixture.update();
    fixture.store.list(&all(&owner(None, None))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async move { drop(fixture) });
    let gone = || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ostler history'";
        server.execute(sql).as_deref() == Some("0")
    };
    // The server notices a closed socket by itself.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !gone() {
        assert!(std::time::Instant::now() < deadline, "the connections stay");
    }
}

#[test]
fn a_closed_store_waits_for_nothing() {
    let server = TestDatabaseServer::start();
    let mut fixture = Fixture::postgres(server.settings("closed"));
    fixture.run(&owner(None, None), "true", 0);
    fixture.update();
    server.pause();
    let store = std::sync::Arc::clone(&fixture.store);
    std::thread::scope(|scope| {
        let search = scope.spawn(|| store.list(&all(&owner(None, None))));
        store.close();
        let error = search.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("being closed"), "{error}");
    });
    fixture.run(&owner(None, None), "false", 1);
    let error = failure(&mut fixture).to_string();
    assert!(error.contains("being closed"), "{error}");
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let server = TestDatabaseServer::start();
    let mut fixture = Fixture::postgres(server.settings("paused"));
    fixture.run(&owner(None, None), "true", 0);
    fixture.update();
    server.pause();
    let error = fixture.store.list(&all(&owner(None, None))).unwrap_err();
    assert!(error.to_string().contains("does not answer"), "{error}");
    server.resume();
    assert_eq!(fixture.commands(&all(&owner(None, None))), ["true"]);
}
