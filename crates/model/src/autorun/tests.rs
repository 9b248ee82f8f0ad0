use std::collections::BTreeSet;

use super::*;

fn path_of(path: &str, kind: FileKind) -> Option<&'static str> {
    rule_for(path.as_bytes(), kind).map(|line| line.path)
}

fn file(path: &str) -> Option<&'static str> {
    path_of(path, FileKind::File)
}

/// A path that the line matches, with its wildcards filled in.
fn example(line: &AutorunRule) -> String {
    line.path.trim_start_matches('/').replace('*', "x")
}

#[test]
fn each_line_covers_its_path_and_what_is_below_it_and_nothing_beside() {
    for line in &RULES {
        let path = example(line);
        let last = path.rsplit('/').next().unwrap_or_default();
        assert!(may_match_last_component(last.as_bytes()), "{path}");
        assert!(
            may_match_last_component(last.to_uppercase().as_bytes()),
            "{path}"
        );
        assert_eq!(file(&path), Some(line.path));
        let below = file(&format!("{path}/below")).is_some();
        assert_eq!(below, line.test != AutorunTest::GitLink, "{path}/below");
        assert!(file(&path.to_uppercase()).is_some(), "{path} in upper case");
        assert_ne!(
            file(&format!("z{path}")),
            Some(line.path).filter(|it| !it.starts_with('*'))
        );
        assert_eq!(
            path_of(&path, FileKind::Directory),
            None,
            "{path} as a directory"
        );
        assert!(
            path_of(&path, FileKind::Symlink).is_some(),
            "{path} as a link"
        );
        let deep = format!("a/b/{path}");
        match line.path.starts_with('/') {
            true => assert_eq!(file(&deep), None),
            false => assert_eq!(file(&deep), Some(line.path)),
        }
    }
}

#[test]
fn a_link_in_the_place_of_a_directory_of_a_line_is_one() {
    for line in &RULES {
        if let Some((above, _)) = example(line).rsplit_once('/') {
            assert!(path_of(above, FileKind::Symlink).is_some(), "{above}");
            let plain = file(above);
            assert!(plain.is_none() || plain != Some(line.path), "{above}");
        }
    }
}

#[test]
fn no_line_stands_twice_and_each_says_who_and_what() {
    let paths: BTreeSet<_> = RULES.iter().map(|line| line.path).collect();
    assert_eq!(paths.len(), RULES.len());
    assert!(
        RULES
            .iter()
            .all(|line| !line.reader.is_empty() && !line.why.is_empty())
    );
}

#[test]
fn what_is_protected_is_what_git_obeys_and_our_own_rules() {
    let protected: Vec<_> = protected_paths().collect();
    let expected = [
        ".ostler",
        "ostler.toml",
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
    ];
    assert_eq!(protected, expected);
}

#[test]
fn ordinary_files_are_in_no_line() {
    for path in [
        "Makefile",
        "package.json",
        "Cargo.toml",
        ".editorconfig",
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".git/index",
        ".git/HEAD",
        ".git/refs/heads/main",
        ".github/x.yml",
        "src/lib.rs",
        ".vscode/extensions.json",
        ".cargo/registry",
        "config",
        "hooks/pre-commit",
        "gitconfig",
    ] {
        assert_eq!(file(path), None, "{path}");
        let name = path.rsplit('/').next().unwrap_or_default();
        assert!(
            !may_match_last_component(name.as_bytes())
                || path.contains("config")
                || path.contains("hooks")
        );
    }
}

#[test]
fn a_report_is_sorted_bounded_and_names_a_path_once() {
    let mut report = AutorunReport::default();
    let one = |path: String| AutorunFinding {
        path: path.as_str().into(),
        reader: "git".to_owned(),
        why: "runs".to_owned(),
    };
    assert!(report.is_empty());
    for number in (0..AUTORUN_MAX + 3).rev() {
        report.add(one(format!("{number:03}")));
    }
    report.add(one("010".to_owned()));
    assert_eq!((report.found.len(), report.more), (AUTORUN_MAX, 3));
    assert!(report.found.is_sorted_by(|a, b| a.path < b.path));
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(
        serde_json::from_str::<AutorunReport>(&json).unwrap(),
        report
    );
    assert_eq!(
        serde_json::from_str::<AutorunReport>("{}").unwrap(),
        AutorunReport::default()
    );
}
