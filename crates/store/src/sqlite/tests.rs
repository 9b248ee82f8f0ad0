//! What holds for the file: damage, versions, locks.

use crate::error::StoreError;
use crate::query::HistoryQuery;
use crate::tests::{Fixture, all, owner};
use crate::updater::UpdateOutcome;

#[test]
fn a_deleted_damaged_or_foreign_database_is_made_anew() {
    let mut fixture = Fixture::sqlite();
    let owner = owner(None, None);
    for n in 0..300 {
        fixture.run(&owner, &format!("job {n}"), 0);
    }
    fixture.update();
    let query = HistoryQuery {
        limit: 500,
        ..all(&owner)
    };
    let expected = fixture.commands(&query);
    let path = fixture.place.file().to_owned();
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..12 {
        match round % 4 {
            0 => std::fs::remove_file(&path).unwrap(),
            1 => std::fs::write(&path, vec![0x5a; 100_000]).unwrap(),
            2 => {
                // Pages in the middle of a closed database.
                fixture.reopen();
                let mut bytes = std::fs::read(&path).unwrap();
                let from = rng.usize(100..bytes.len() / 2);
                bytes[from..].fill(0xff);
                std::fs::write(&path, bytes).unwrap();
            }
            _ => {
                let other = Fixture::sqlite();
                std::fs::copy(other.place.file(), &path).unwrap_or_default();
            }
        }
        // Another program looked at it, and closed it.
        fixture.reopen();
        fixture.run(&owner, "true", 0);
        fixture.update();
        let page = fixture.store.list(&query).unwrap();
        let listed: Vec<String> = page.rows.into_iter().map(|row| row.command).collect();
        let listed: Vec<String> = listed.into_iter().filter(|it| it != "true").collect();
        assert_eq!(listed, expected, "round {round}");
    }
}

#[test]
fn rows_of_an_older_database_are_kept_and_have_no_peaks() {
    let mut fixture = Fixture::sqlite();
    let owner = owner(None, None);
    let old = fixture.run(&owner, "true", 0);
    fixture.update();
    let path = fixture.place.file().to_owned();
    let back = "ALTER TABLE execution DROP COLUMN output_lines;
        ALTER TABLE execution DROP COLUMN peaks;
        PRAGMA user_version = 1;";
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(back).unwrap();
    fixture.reopen();
    let new = fixture.run(&owner, "make", 0);
    fixture.update();
    let lines = |id| {
        let row = fixture.store.find(&all(&owner).caller, id).unwrap();
        let totals = row.and_then(|row| row.totals).expect("it ended");
        (totals.output_lines, totals.peaks.processes)
    };
    assert_eq!((lines(old), lines(new)), ((None, None), (Some(3), Some(2))));
}

#[test]
fn a_newer_database_is_left_alone() {
    let mut fixture = Fixture::sqlite();
    fixture.run(&owner(None, None), "true", 0);
    fixture.update();
    let path = fixture.place.file().to_owned();
    rusqlite::Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    fixture.reopen();
    let outcome = fixture.updater.step(fixture.ledger.end(), fixture.now());
    assert!(matches!(
        outcome,
        UpdateOutcome::Failed(StoreError::Newer { found: 99, .. })
    ));
    assert!(path.exists());
}

#[test]
fn a_locked_database_is_tried_again() {
    let mut fixture = Fixture::sqlite();
    let owner = owner(None, None);
    fixture.run(&owner, "true", 0);
    fixture.update();
    let holder = rusqlite::Connection::open(fixture.place.file()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    fixture.run(&owner, "false", 1);
    let outcome = fixture.updater.step(fixture.ledger.end(), fixture.now());
    assert!(matches!(
        outcome,
        UpdateOutcome::Failed(StoreError::Unavailable(_))
    ));
    // Readers go on.
    assert_eq!(fixture.commands(&all(&owner)), ["true"]);
    holder.execute_batch("ROLLBACK").unwrap();
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["false", "true"]);
}

#[test]
fn reads_during_resets_are_answered() {
    const RESETS: usize = 100;
    let mut fixture = Fixture::sqlite();
    let owner = owner(None, None);
    for _ in 0..20 {
        fixture.run(&owner, "true", 0);
    }
    fixture.update();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let query = all(&owner);
    let store = std::sync::Arc::clone(&fixture.store);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut pages = 0;
                    while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                        let page = store.list(&query).unwrap();
                        assert!(page.rows.len() <= 20);
                        pages += 1;
                    }
                    pages
                })
            })
            .collect();
        for _ in 0..RESETS {
            store.reset().unwrap();
            fixture.update();
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(fixture.commands(&all(&owner)).len(), 20);
}
