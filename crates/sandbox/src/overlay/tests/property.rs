//! Random trees, random edits.

use std::fmt::Write;

use ostler_model::OverlayOutcome;
use proptest::prelude::*;

use super::stage::{OverlayFixture, tree};

const NAMES: [&str; 6] = ["a", "b", "c", "a b", "-", "b.c"];

#[derive(Debug, Clone)]
enum Op {
    Write(String, u8),
    Mkdir(String),
    Remove(String),
    Move(String, String),
    Symlink(String, u8),
    Link(String, String),
    Chmod(String, u8),
    Touch(String),
}

fn path() -> impl Strategy<Value = String> {
    let names = proptest::collection::vec(0..NAMES.len(), 1..4);
    names.prop_map(|names| {
        let names: Vec<&str> = names.into_iter().map(|it| NAMES[it]).collect();
        format!("./{}", names.join("/"))
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (path(), any::<u8>()).prop_map(|(path, what)| Op::Write(path, what)),
        2 => path().prop_map(Op::Mkdir),
        3 => path().prop_map(Op::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Op::Move(from, to)),
        1 => (path(), any::<u8>()).prop_map(|(path, to)| Op::Symlink(path, to)),
        1 => (path(), path()).prop_map(|(from, to)| Op::Link(from, to)),
        1 => (path(), 0..4_u8).prop_map(|(path, mode)| Op::Chmod(path, mode)),
        1 => path().prop_map(Op::Touch),
    ]
}

fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op(), 0..most)
}

/// Steps that are impossible are skipped.
fn script(ops: &[Op]) -> String {
    let mut script = String::from("exec 2>/dev/null\n");
    for op in ops {
        let line = match op {
            Op::Write(path, what) => {
                format!("mkdir -p \"$(dirname '{path}')\" && printf '%s' {what} >'{path}'")
            }
            Op::Mkdir(path) => format!("mkdir -p '{path}'"),
            Op::Remove(path) => format!("rm -rf '{path}'"),
            Op::Move(from, to) => format!("mv -T '{from}' '{to}'"),
            Op::Symlink(path, to) => format!("ln -sT 'to {to}' '{path}'"),
            Op::Link(from, to) => format!("ln -T '{from}' '{to}'"),
            Op::Chmod(path, mode) => {
                let mode = [0o755, 0o700, 0o744, 0o777][usize::from(*mode)];
                format!("[ -L '{path}' ] || chmod {mode:o} '{path}'")
            }
            Op::Touch(path) => format!("[ -e '{path}' ] && touch '{path}'"),
        };
        writeln!(script, "{line}").expect("a string");
    }
    script
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 48,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_commit_yields_exactly_what_the_command_saw(tree_ops in ops(24), edits in ops(16)) {
        let stage = OverlayFixture::new(&script(&tree_ops));
        stage.command(&script(&edits));
        let listed = stage.changes();
        stage.commit();
        prop_assert_eq!(tree(&stage.at("host")), tree(&stage.at("seen")));
        prop_assert_eq!(stage.changes().changes, listed.changes);
    }

    #[test]
    fn a_discard_leaves_exactly_what_was(tree_ops in ops(24), edits in ops(16)) {
        let stage = OverlayFixture::new(&script(&tree_ops));
        let before = tree(&stage.at("host"));
        stage.command(&script(&edits));
        prop_assert_eq!(tree(&stage.at("host")), before.clone());
        stage.store().discard().expect("a discard");
        prop_assert_eq!(tree(&stage.at("host")), before);
    }

    #[test]
    fn a_commit_after_changes_of_the_host_is_whole_or_nothing(
        tree_ops in ops(24), edits in ops(10), host_ops in ops(4)
    ) {
        let stage = OverlayFixture::new(&script(&tree_ops));
        stage.command(&script(&edits));
        let listed: Vec<Vec<u8>> = stage
            .changes()
            .changes
            .into_iter()
            .map(|it| it.path.into_bytes())
            .collect();
        stage.on_host(&script(&host_ops));
        let before = tree(&stage.at("host"));
        let outcome = stage.store().commit(false).expect("an answer");
        match outcome {
            crate::overlay::CommitOutcome::Conflicts(refused) => {
                prop_assert!(!refused.changed_on_host.is_empty());
                prop_assert_eq!(stage.changes().changed_on_host, refused.changed_on_host);
                prop_assert_eq!(tree(&stage.at("host")), before);
                prop_assert_eq!(stage.changes().fate, OverlayOutcome::Open);
            }
            crate::overlay::CommitOutcome::Autorun(report) => panic!("{report:?}"),
            crate::overlay::CommitOutcome::Committed(_) => {
                let (after, seen) = (tree(&stage.at("host")), tree(&stage.at("seen")));
                for path in &listed {
                    prop_assert_eq!(after.get(path), seen.get(path));
                }
                for (path, was) in &before {
                    let actual = listed.contains(path) || (path.is_empty() && listed.contains(&b".".to_vec()));
                    prop_assert!(actual || after.get(path) == Some(was));
                }
            }
        }
    }
}
