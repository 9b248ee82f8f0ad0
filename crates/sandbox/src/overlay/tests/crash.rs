//! Commits interrupted by a killed process.

use std::fs;

use ostler_model::{OverlayChanges, OverlayOutcome};

use super::stage::{OverlayFixture, tree};
use crate::overlay::commit::Commit;
use crate::overlay::records::{CommitIntent, CommitLog, INTENT, save};
use crate::overlay::{OverlayError, remove, store};

const TREE: &str = "mkdir -p d gone to_file; for i in 1 2 3 4 5; do echo $i >d/$i; done; \
    echo g>gone/g; echo t>to_dir; echo k>to_file/k; ln -s f link";
const WORK: &str = "for i in 1 2 3; do echo new$i >d/$i; done; rm d/4; rm -r gone; rm to_dir; \
    mkdir to_dir; echo i>to_dir/i; rm -r to_file; echo w>to_file; ln -sfn other link; \
    mkdir -p n/m; echo q>n/m/q; chmod 555 n/m; chmod 700 d";

/// Executes this many steps of a commit, the last one only partly where `torn`.
fn half_way(stage: &OverlayFixture, steps: usize) {
    let store = stage.store();
    let (mut sides, head) = store.open_sides(store::SidesUse::Commit).expect("sides");
    let edits = store::collect_edits(&mut sides, &head).expect("edits");
    let intent = CommitIntent { tag: 7, edits };
    save(&stage.store_dir(), INTENT, &intent).expect("an intent");
    let log = CommitLog::open(&stage.store_dir()).expect("a log");
    let mut commit = Commit {
        sides: &mut sides,
        intent: &intent,
        log,
    };
    commit.run_steps(steps).expect("steps");
}

/// The paths of these changes.
fn listed_paths(changes: &OverlayChanges) -> Vec<String> {
    let paths = changes.changes.iter();
    paths.map(|it| it.path.to_string()).collect()
}

#[test]
fn a_commit_goes_on_from_wherever_it_was_left() {
    for steps in 0..22 {
        let stage = OverlayFixture::new(TREE);
        stage.command(WORK);
        half_way(&stage, steps);
        // A staged file, left between two calls.
        stage.on_host(
            "ls -a d | grep -c ostler >/dev/null; echo junk >.ostler-0000000000000007-0; :",
        );
        let changes = stage.changes();
        assert_eq!(changes.fate, OverlayOutcome::Committed, "after {steps}");
        let (mut host, mut seen) = (tree(&stage.at("host")), tree(&stage.at("seen")));
        host.remove(b".ostler-0000000000000007-0".as_slice());
        seen.remove(b".ostler-0000000000000007-0".as_slice());
        assert_eq!(host, seen, "after {steps}");
    }
}

#[test]
fn a_commit_that_cannot_go_on_tells_what_is_on_the_host() {
    let stage = OverlayFixture::new(TREE);
    stage.command(WORK);
    half_way(&stage, 3);
    stage.on_host("echo late >gone/late; echo mine >>d/3");
    let stuck = stage.store().changes(100);
    assert!(
        matches!(stuck, Err(OverlayError::Interrupted { .. })),
        "{stuck:?}"
    );
    assert!(
        fs::read_to_string(stage.host("d/3"))
            .expect("d/3")
            .contains("mine")
    );
    let kept = stage.store().discard().expect("a discard");
    let changes = stage.changes();
    assert_eq!(kept, changes);
    assert_eq!(changes.fate, OverlayOutcome::Committed);
    let listed = listed_paths(&changes);
    assert!(listed.contains(&"d/1".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"d/3".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"gone".to_owned()), "{listed:?}");
    let temporary = tree(&stage.at("host"));
    let left = temporary
        .keys()
        .filter(|it| it.windows(7).any(|it| it == b".ostler"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_decision_whose_layers_were_not_removed_yet_stands() {
    let stage = OverlayFixture::new(TREE);
    stage.command(WORK);
    stage.commit();
    fs::create_dir_all(stage.store_dir().join("upper/left")).expect("a directory");
    fs::create_dir_all(stage.store_dir().join("gone.3/x/y")).expect("a directory");
    assert_eq!(stage.changes().fate, OverlayOutcome::Committed);
    assert!(!stage.store_dir().join("upper").exists());
    assert!(!stage.store_dir().join("gone.3").exists());
}

#[test]
fn an_interrupted_commit_counts_what_is_on_the_host() {
    let stage =
        OverlayFixture::new("mkdir d; echo m>d/mode; echo a>a; echo b>b; echo e>e; echo f>f");
    stage.command("echo 1>a; echo 2>b; echo 4>c; echo 5>e; echo 6>f");
    half_way(&stage, 3);
    stage.on_host("echo theirs >e");
    for _ in 0..2 {
        // Also when it is resumed, which does not repeat the steps.
        match stage.store().changes(100) {
            Err(OverlayError::Interrupted { done, of, path, .. }) => {
                assert_eq!((done, of, path.to_string()), (3, 5, "e".to_owned()));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// On a full disk, the upper layer is renamed before the decision is on record.
#[test]
fn a_decision_that_was_not_recorded_yet_stands() {
    let stage = OverlayFixture::new(TREE);
    stage.command(WORK);
    let before = tree(&stage.at("host"));
    remove::detach_layer(&stage.store_dir(), "upper").expect("a rename");
    assert!(matches!(
        stage.store().commit(true),
        Err(OverlayError::Decided { committed: false })
    ));
    assert_eq!(stage.changes().fate, OverlayOutcome::Discarded);
    assert_eq!(tree(&stage.at("host")), before);
    let left = fs::read_dir(stage.store_dir()).expect("a directory");
    let mut left: Vec<_> = left.map(|it| it.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["fate", "lock"]);

    let stage = OverlayFixture::new(TREE);
    stage.command(WORK);
    half_way(&stage, 3);
    remove::detach_layer(&stage.store_dir(), "upper").expect("a rename");
    let changes = stage.changes();
    assert_eq!(changes.fate, OverlayOutcome::Committed);
    let listed = listed_paths(&changes);
    assert!(listed.contains(&"d/1".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"gone".to_owned()), "{listed:?}");
}

#[test]
fn a_commit_to_a_workspace_that_is_gone_can_be_discarded() {
    let stage = OverlayFixture::new(TREE);
    stage.command(WORK);
    half_way(&stage, 3);
    fs::remove_dir_all(stage.at("host")).expect("a removal");
    let kept = stage.store().discard().expect("a discard");
    assert_eq!(
        (kept.fate, kept.totals),
        (OverlayOutcome::Committed, [0; 3])
    );
    assert!(!stage.store_dir().join("upper").exists());
}
