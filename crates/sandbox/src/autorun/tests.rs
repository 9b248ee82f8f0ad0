//! Real directories, scanned as the shim does.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use ostler_model::AutorunReport;
use ostler_model::autorun::{AutorunGuard, AutorunTest, RULES};

use super::git_config::parse;
use super::scan::ScanBounds;
use super::snapshot::{AutorunSnapshot, scan};
use super::view::{ChangeFilter, resolve};

const HARMLESS: &str =
    "[core]\n\tbare = false\n\tfilemode=true # as it was\n[remote \"o\"]\n\turl = /x\n";
const EVIL: &str = "[core]\nfsmonitor = ./evil\n";

fn write(top: &Path, path: &str, text: &str) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn repository(top: &Path, path: &str, config: &str) {
    write(top, &format!("{path}/HEAD"), "ref: refs/heads/main\n");
    write(top, &format!("{path}/config"), config);
    write(top, &format!("{path}/hooks/pre-commit.sample"), "");
    for name in ["objects", "refs"] {
        fs::create_dir_all(top.join(path).join(name)).unwrap();
    }
}

/// The report of what `make` does in a workspace that `there` prepared.
fn after(there: impl Fn(&Path), make: impl Fn(&Path)) -> AutorunReport {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    there(&top);
    let mut before = AutorunSnapshot::take(&top, None);
    // Existing files may be younger than the tick of the coarse clock.
    before.since = next_tick(&top);
    make(&top);
    before.report()
}

/// Waits for a time later than every existing file's and returns it.
fn next_tick(top: &Path) -> (i64, u64) {
    use std::os::unix::fs::MetadataExt;
    let probe = top.join("probe");
    let mut first = None;
    loop {
        fs::write(&probe, "").unwrap();
        let seen = fs::metadata(&probe).unwrap();
        let now = (seen.ctime(), u64::try_from(seen.ctime_nsec()).unwrap());
        fs::remove_file(&probe).unwrap();
        if now > *first.get_or_insert(now) {
            return now;
        }
    }
}

fn paths(report: &AutorunReport) -> Vec<String> {
    assert_eq!(report.incomplete, None);
    report.found.iter().map(|it| it.path.to_string()).collect()
}

fn nothing(_: &Path) {}

#[test]
fn each_line_is_reported_when_new_and_not_when_unchanged() {
    for line in RULES
        .iter()
        .filter(|line| line.test == AutorunTest::Presence)
    {
        let path = line.path.trim_start_matches('/').replace('*', "x");
        let path = match path.rsplit('/').next() {
            Some(".husky" | ".githooks" | ".idea" | ".ostler") => format!("{path}/below"),
            _ => path,
        };
        let deep = if line.path.starts_with('/') {
            path
        } else {
            format!("a/{path}")
        };
        let make = |top: &Path| write(top, &deep, "x");
        assert_eq!(paths(&after(nothing, make)), [deep.as_str()]);
        assert_eq!(
            paths(&after(make, nothing)),
            <[&str; 0]>::default(),
            "{deep}"
        );
    }
}

#[test]
fn ordinary_work_is_not_reported() {
    let report = after(nothing, |top| {
        write(top, "src/main.rs", "fn main() {}");
        write(top, "Makefile", "all:\n");
        repository(top, ".git", HARMLESS);
        repository(top, "deep/er/.git", HARMLESS);
        repository(top, "bare.git", HARMLESS);
        repository(top, ".git/modules/sub", "[core]\nworktree = ../../../sub\n");
        write(top, "sub/.git", "gitdir: ../.git/modules/sub\n");
        write(top, ".git/worktrees/tree/HEAD", "x");
        write(top, ".git/worktrees/tree/commondir", "../..\n");
        write(
            top,
            "tree/.git",
            &format!("gitdir: {}/.git/worktrees/tree\n", top.display()),
        );
        write(
            top,
            ".git/rebase-merge/git-rebase-todo",
            "pick 1234 exec it\n",
        );
        write(top, ".git/refs/heads/config", "1234");
    });
    assert_eq!(paths(&report), <[&str; 0]>::default());
}

#[test]
fn files_that_git_obeys_are_reported_wherever_they_were_made() {
    type Way = (&'static str, fn(&Path), &'static [&'static str]);
    let ways: [Way; 13] = [
        (
            "a repository",
            |top| repository(top, "a/.git", EVIL),
            &["a/.git/config"],
        ),
        (
            "in other letters",
            |top| repository(top, "a/.GIT", EVIL),
            &["a/.GIT/config"],
        ),
        (
            "a bare one",
            |top| repository(top, "a/b", EVIL),
            &["a/b/config"],
        ),
        (
            "a configuration alone",
            |top| write(top, ".git/config", EVIL),
            &[".git/config"],
        ),
        (
            "of a worktree",
            |top| write(top, ".git/config.worktree", EVIL),
            &[".git/config.worktree"],
        ),
        (
            "a hook",
            |top| write(top, "a/.git/hooks/post-checkout", ""),
            &["a/.git/hooks/post-checkout"],
        ),
        (
            "a common directory",
            |top| write(top, ".git/commondir", "../x"),
            &[".git/commondir"],
        ),
        (
            "a link out",
            |top| write(top, "a/.git", "gitdir: /elsewhere"),
            &["a/.git"],
        ),
        ("no link", |top| write(top, ".git", "x"), &[".git"]),
        (
            "a symbolic link",
            |top| symlink("x", top.join(".git")).unwrap(),
            &[".git"],
        ),
        (
            "a rebase",
            |top| write(top, ".git/rebase-merge/git-rebase-todo", "exec evil\n"),
            &[".git/rebase-merge/git-rebase-todo"],
        ),
        (
            "no configuration",
            |top| write(top, ".git/config", "[core\n"),
            &[".git/config"],
        ),
        (
            "a linked directory",
            |top| symlink("x", top.join(".vscode")).unwrap(),
            &[".vscode"],
        ),
    ];
    for (name, make, expected) in ways {
        assert_eq!(paths(&after(nothing, make)), expected, "{name}");
    }
}

#[test]
fn a_link_to_what_was_there_before_is_followed() {
    let there = |top: &Path| repository(top, "fixtures/odd", EVIL);
    let link = |top: &Path| write(top, "a/.git", "gitdir: ../fixtures/odd");
    assert_eq!(paths(&after(there, link)), ["fixtures/odd/config"]);
    let moved = |top: &Path| fs::rename(top.join("fixtures/odd"), top.join(".git")).unwrap();
    assert_eq!(paths(&after(there, moved)), [".git/config"]);
    assert_eq!(paths(&after(there, nothing)), <[&str; 0]>::default());
}

#[test]
fn files_named_by_a_configuration_are_reported_when_changed() {
    let there = |top: &Path| {
        let config =
            "[include]\npath = ../more\n[filter \"f\"]\nclean = sh -c './tools/clean %f'\n";
        repository(top, ".git", config);
        write(top, "more", "[core]\nhooksPath = ours\n");
        write(top, "ours/pre-commit", "");
        write(top, "tools/clean", "");
    };
    assert_eq!(paths(&after(there, nothing)), <[&str; 0]>::default());
    for path in ["more", "ours/pre-commit", "ours/new", "tools/clean"] {
        assert_eq!(paths(&after(there, |top| write(top, path, "# x"))), [path]);
    }
}

#[test]
fn work_in_a_known_repository_is_not_reported() {
    let there = |top: &Path| {
        repository(top, ".git", EVIL);
        repository(top, ".git/modules/a/b", EVIL);
    };
    let work = |top: &Path| {
        write(top, ".git/HEAD", "ref: refs/heads/new\n");
        write(top, ".git/modules/a/b/HEAD", "ref: refs/heads/new\n");
        // As `git submodule update` does.
        write(top, ".git/modules/a/b/config", &format!("{EVIL}{HARMLESS}"));
    };
    assert_eq!(paths(&after(there, work)), <[&str; 0]>::default());
}

#[test]
fn what_is_not_looked_at_is_said() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..50 {
        write(dir.path(), &format!("d{number}/file"), "");
    }
    let bounds = ScanBounds {
        entries: 20,
        cpu_ms: None,
    };
    let top = dir.path().canonicalize().unwrap();
    let report = scan(&top, None, ChangeFilter::Since((0, 0)), &[], bounds);
    assert!(
        report
            .incomplete
            .is_some_and(|why| why.contains("20 entries"))
    );
}

#[test]
fn configuration_is_read_as_git_reads_it() {
    let text = "\u{feff}; c\n[Core] Bare = \"tr\\\"ue\" ; x\n[a \"B\\\\c\"]\n\tkey\n\
                k2 = one \\\n  two # no\n[x.Y] z = ' # '\n";
    let entries = parse(text.as_bytes()).unwrap();
    let actual: Vec<_> = entries
        .iter()
        .map(|it| (it.key(), String::from_utf8_lossy(&it.value).into_owned()))
        .collect();
    let expected = [
        ("core.bare", "tr\"ue"),
        ("a.*.key", "true"),
        ("a.*.k2", "one   two"),
        ("x.*.z", "'"),
    ];
    assert_eq!(
        actual,
        expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    for bad in [
        "[a",
        "k = v",
        "[a]\n1 = 2",
        "[a]\nk = \"x",
        "[a] k v",
        "[a]\nk = \\x",
    ] {
        assert_eq!(parse(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn keys_that_run_nothing_are_known_and_no_others() {
    let harmless = |text: &str| {
        parse(text.as_bytes())
            .unwrap()
            .iter()
            .all(|it| it.is_harmless())
    };
    assert!(harmless(HARMLESS));
    assert!(harmless(
        "[submodule \"a\"]\nupdate = rebase\nurl = https://x/y\n"
    ));
    for bad in [
        "[core]\nhooksPath = .",
        "[core]\nsshCommand = x",
        "[core]\npager = x",
        "[alias]\nst = !x",
        "[include]\npath = x",
        "[includeIf \"gitdir:.\"]\npath = x",
        "[filter \"a\"]\nclean = x",
        "[diff \"a\"]\ntextconv = x",
        "[diff]\nexternal = x",
        "[merge \"a\"]\ndriver = x",
        "[credential]\nhelper = x",
        "[gpg]\nprogram = x",
        "[remote \"a\"]\nurl = ext::x",
        "[remote \"a\"]\nuploadpack = x",
        "[submodule \"a\"]\nupdate = !x",
        "[core]\nworktree = /",
        "[gc]\nrecentObjectsHook = x",
        "[http]\nproxy = x",
        "[url \"x\"]\ninsteadOf = y",
    ] {
        assert!(!harmless(bad), "{bad}");
    }
}

#[test]
fn paths_lead_out_of_the_workspace_or_not() {
    let at = |from: &str, path: &str| {
        let found = resolve(b"/w", from.as_bytes(), path.as_bytes());
        found.map(|it| String::from_utf8(it).unwrap())
    };
    assert_eq!(at("a/b", "../c/./d").as_deref(), Some("a/c/d"));
    assert_eq!(at("a", "/w/x").as_deref(), Some("x"));
    assert_eq!(at("a", "..").as_deref(), Some(""));
    assert_eq!(at("a", "../.."), None);
    assert_eq!(at("a", "/wx"), None);
    assert_eq!(at("a", "/etc"), None);
}

#[test]
fn recreated_protected_paths_are_reported() {
    let actual = RULES
        .iter()
        .filter(|line| line.guard == AutorunGuard::Protected);
    assert!(actual.count() >= 5);
    let make = |top: &Path| write(top, ".ostler/policy.toml", "x");
    assert_eq!(paths(&after(nothing, make)), [".ostler/policy.toml"]);
}
