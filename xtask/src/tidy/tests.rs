//! Snippets that each rule must reject, and similar ones that it must accept.

use std::path::Path;

use cargo_metadata::DependencyKind;

use super::check::failures;
use super::sizes::Sizes;
use super::source::SourceFile;
use super::type_names::TypeNames;
use super::{banned_words, crate_deps, forbidden, hosts, mod_files, orphans, paths, requirements};

pub(super) fn source(place: &str, krate: &str, text: &str) -> SourceFile {
    SourceFile::parse(place, krate, text.to_owned()).expect("the snippet is Rust")
}

fn engine(text: &str) -> SourceFile {
    source("crates/engine/src/driver.rs", "ostler-engine", text)
}

fn forbidden_in(source: &SourceFile) -> usize {
    failures(&forbidden::check(source)).len()
}

#[test]
fn an_arrow_outside_the_list_is_found() {
    let allowed = crate_deps::allowed("ostler-engine");
    let normal = DependencyKind::Normal;
    assert!(
        crate_deps::check_internal("ostler-engine", "ostler-journal", normal, allowed).is_none()
    );
    assert!(
        crate_deps::check_internal("ostler-engine", "ostler-sandbox", normal, allowed).is_some()
    );
    assert!(crate_deps::check_internal("ostler-engine", "ostler-mcp", normal, allowed).is_some());
}

#[test]
fn the_test_kit_is_for_tests_only() {
    let allowed = crate_deps::allowed("ostler-cli");
    let (normal, dev) = (DependencyKind::Normal, DependencyKind::Development);
    assert!(crate_deps::check_internal("ostler-cli", "ostler-testkit", normal, allowed).is_some());
    assert!(crate_deps::check_internal("ostler-cli", "ostler-testkit", dev, allowed).is_none());
}

#[test]
fn third_party_crates_stay_in_their_rooms() {
    let normal = DependencyKind::Normal;
    assert!(crate_deps::check_external("ostler-engine", "rmcp", normal).is_some());
    assert!(crate_deps::check_external("ostler-mcp", "rmcp", normal).is_none());
    assert!(crate_deps::check_external("ostler-sandbox", "tokio", normal).is_some());
    assert!(crate_deps::check_external("ostler-model", "tokio", normal).is_some());
    assert!(
        crate_deps::check_external("ostler-model", "serde_json", DependencyKind::Development)
            .is_none()
    );
}

#[test]
fn each_forbidden_word_is_found() {
    let snippets = [
        "#[allow(dead_code)] fn f() {}",
        "#![allow(dead_code)]",
        "#[cfg_attr(test, allow(dead_code))] fn f() {}",
        "fn f() { todo!() }",
        "fn f() { unimplemented!(\"later\") }",
        "fn f() { dbg!(1); }",
        "fn f() { println!(\"hi\"); }",
        "fn f() { eprintln!(\"hi\"); }",
        "fn f() { std::process::exit(1) }",
        "use std::process::exit;",
        "fn f() { std::env::var(\"HOME\"); }",
        "use std::env;",
        "use std::{env, fs};",
        "use std::env::current_dir as here;",
        "fn f() { unsafe { g() } }",
        "fn f() { std::thread::sleep(d) }",
        "use std::thread::sleep;",
        "async fn f() { tokio::time::sleep(d).await }",
        "use tokio::time::{Duration, sleep};",
        "fn f() { tokio::spawn(async {}); }",
        "fn f() { tokio::task::spawn(async {}); }",
        "enum E { Other(String) }",
        "use rmcp::ServerHandler;",
        "fn f(s: schemars::Schema) {}",
        "fn f(c: rusqlite::Connection) {}",
        "fn f() { assert!(std::env::var(\"X\").is_ok()) }",
    ];
    for snippet in snippets {
        assert!(forbidden_in(&engine(snippet)) > 0, "not found: {snippet}");
    }
}

#[test]
fn words_in_comments_and_strings_are_not_calls() {
    let snippets = [
        "// never println! or std::env::var here\nfn f() {}",
        "/// Unlike `todo!()`, this is `unsafe` free.\nfn f() {}",
        "fn f() -> &'static str { \"dbg!(x) std::env rmcp\" }",
        "use tokio::time::sleep_until;",
        "fn f() { std::thread::spawn(g); }",
        "fn f() { tracker.spawn(async {}); }",
        "const P: &str = env!(\"CARGO_PKG_VERSION\");",
        "#[expect(dead_code, reason = \"a test\")] fn f() {}",
        "enum E { Other { why: String } }",
    ];
    for snippet in snippets {
        assert_eq!(
            forbidden_in(&engine(snippet)),
            0,
            "wrongly found: {snippet}"
        );
    }
}

#[test]
fn rooms_may_do_what_is_theirs() {
    let unsafe_call = "fn f() { unsafe { g() } }";
    assert_eq!(
        forbidden_in(&source(
            "crates/backend-local/src/shim.rs",
            "ostler-backend-local",
            unsafe_call
        )),
        0
    );
    let print = "fn f() { println!(\"hi\"); std::env::var(\"HOME\"); }";
    assert_eq!(
        forbidden_in(&source("crates/cli/src/main.rs", "ostler-cli", print)),
        0
    );
    let script = source("crates/http/build.rs", "ostler-http", print);
    assert_eq!(forbidden_in(&script), 0);
    let module = source("crates/http/src/build.rs", "ostler-http", print);
    assert_eq!(forbidden_in(&module), 2);
    let in_tests =
        "#[cfg(test)]\nmod tests {\n fn f() { println!(\"x\"); std::env::temp_dir(); }\n}";
    assert_eq!(forbidden_in(&engine(in_tests)), 0);
    let sleeping = "#[cfg(test)]\nmod tests {\n fn f() { std::thread::sleep(d); }\n}";
    assert_eq!(
        forbidden_in(&engine(sleeping)),
        1,
        "tests wait for facts, too"
    );
}

#[test]
fn the_fake_backend_proves_nothing_through_the_public_interface() {
    let text = "use ostler_testkit::scripted::ScriptedPlace;";
    let outside = source("crates/engine/tests/stop.rs", "ostler-engine", text);
    assert_eq!(forbidden_in(&outside), 1);
    let inside = source("crates/engine/src/driver/tests.rs", "ostler-engine", text);
    assert_eq!(forbidden_in(&inside), 0);
}

#[test]
fn maps_hold_no_logic() {
    let map = "//! Docs.\n#![forbid(unsafe_code)]\nmod a;\npub use a::B;\n#[cfg(test)]\nmod tests;";
    assert!(mod_files::check(&source("crates/model/src/lib.rs", "ostler-model", map)).is_empty());
    for logic in [
        "fn f() {}",
        "struct S;",
        "mod a { }",
        "macro_rules! m { () => {} }",
        "const X: u8 = 1;",
    ] {
        let text = format!("#![forbid(unsafe_code)]\n{logic}");
        let found = mod_files::check(&source("crates/model/src/lib.rs", "ostler-model", &text));
        assert_eq!(found.len(), 1, "{logic}");
        assert_eq!(
            mod_files::check(&source("crates/x/src/a/mod.rs", "x", logic)).len(),
            1,
            "{logic}"
        );
    }
}

#[test]
fn a_crate_root_forbids_unsafe_code() {
    let found = mod_files::check(&source("crates/model/src/lib.rs", "ostler-model", "mod a;"));
    assert_eq!(failures(&found).len(), 1);
    let home = mod_files::check(&source(
        "crates/backend-local/src/lib.rs",
        "ostler-backend-local",
        "mod a;",
    ));
    assert!(home.is_empty());
}

fn body(lines: usize) -> String {
    format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines))
}

#[test]
fn functions_are_measured_at_below_and_above_the_limits() {
    let mut sizes = Sizes::default();
    assert!(sizes.measure(&engine(&body(70))).is_empty());
    let listed = sizes.measure(&engine(&body(71)));
    assert_eq!((listed.len(), failures(&listed).len()), (1, 0));
    assert_eq!(failures(&sizes.measure(&engine(&body(100)))).len(), 0);
    assert_eq!(failures(&sizes.measure(&engine(&body(101)))).len(), 1);
    assert_eq!(sizes.functions, [70, 71, 100, 101]);
}

#[test]
fn comments_and_blank_lines_do_not_lengthen_a_function() {
    let text = "fn f() {\n    // why\n\n    g();\n    /* more\n       of it */\n    h();\n}\n";
    let mut sizes = Sizes::default();
    assert!(sizes.measure(&engine(text)).is_empty());
    assert_eq!(sizes.functions, [2]);
}

#[test]
fn eight_parameters_want_a_struct() {
    let mut sizes = Sizes::default();
    let seven = engine("fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {}");
    assert!(sizes.measure(&seven).is_empty());
    let eight = "fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {}";
    let own = engine(&format!("impl S {{ {eight} }}"));
    assert_eq!(failures(&sizes.measure(&own)).len(), 1);
    let of_trait = engine(&format!("impl T for S {{ {eight} }}"));
    assert!(sizes.measure(&of_trait).is_empty());
}

#[test]
fn files_are_measured_without_their_tests() {
    let mut sizes = Sizes::default();
    let code = "const A: u8 = 1;\n";
    let tests = format!(
        "#[cfg(test)]\nmod tests {{\n{}}}\n",
        "    const B: u8 = 1;\n".repeat(900)
    );
    assert!(
        sizes
            .measure(&engine(&format!("{}{tests}", code.repeat(500))))
            .is_empty()
    );
    let listed = sizes.measure(&engine(&code.repeat(501)));
    assert_eq!((listed.len(), failures(&listed).len()), (1, 0));
    assert_eq!(
        failures(&sizes.measure(&engine(&code.repeat(801)))).len(),
        1
    );
    let whole = source(
        "crates/engine/tests/big.rs",
        "ostler-engine",
        &code.repeat(2_000),
    );
    assert!(sizes.measure(&whole).is_empty());
}

#[test]
fn paths_of_this_machine_are_found() {
    let own = paths::own_paths(
        Path::new("/home/someone/ostler"),
        Some(Path::new("/home/someone")),
    );
    let found = paths::check_text("README.md", "see /home/someone/ostler/target\nfine\n", &own);
    assert_eq!(
        failures(&found),
        ["failure: README.md:1: names a path of this machine"]
    );
    assert_eq!(
        paths::check_text("a.rs", "/home/someone/.cargo/bin", &own).len(),
        1
    );
    assert!(paths::check_text("a.rs", "/home/agent/project /srv/secret", &own).is_empty());
}

#[test]
fn hosts_that_exist_are_found() {
    let text = "GET https://registry.real.dev/a\nsee me@host.com, 8.8.8.8\n";
    let found = hosts::check_text("docs/a.md", text);
    let hosts = ["registry.real.dev", "host.com", "8.8.8.8"];
    for (finding, host) in failures(&found).iter().zip(hosts) {
        assert!(finding.contains(host), "{finding}");
    }
    assert_eq!(found.len(), hosts.len());
    let reserved = "https://me:key@a.example.org:8443/x http://{name}:1 http://x 10.0.0.1 192.0.2.1 \
                    127.0.0.1:80 web.test Example.COM 1.2.3 a.b.c";
    assert!(hosts::check_text("docs/a.md", reserved).is_empty());
    assert!(hosts::check_text("docs/wsl2.md", "https://sh.rustup.rs").is_empty());
}

/// The violations of one row in a table of requirements, with a few files with tests.
fn requirement(row: &str) -> Vec<String> {
    let texts = [
        (
            "crates/a/tests/stop.rs",
            "#[test]\nfn ends() {}\n#[tokio::test(start_paused = true)]\n// why\nasync fn waits() {}\n\
             fn helper() {}\n#[test]\n#[ignore = \"slow\"]\nfn ignored() {}\n",
        ),
        (
            "crates/a/tests/own.rs",
            "const CASES: &[Case] = &[\n    (\"one\", one),\n    (\n        \"two\",\n        two),\n];\n\
             in_every_shell! {\n    three\n}\nconst CASES: &[Case] = &[(\"six\", six)];\ntrials![requirements::none,\n    cases::four,\n]\n\
             Trial::test(\"five\", || {})\n",
        ),
        (
            "tests/python/test_a.py",
            "def test_one(place):\n    pass\n    async def test_two(place):\ndef helper():\n",
        ),
        (
            "tests/clients/a.mjs",
            "test('it arrives, and finds', () => {});\n",
        ),
        (
            "xtask/src/test/plan.rs",
            "step(\"chaos\", Tier::Quick, steps::chaos),\n",
        ),
        (
            "xtask/src/bench/echo.rs",
            "Row::ratio(\"`echo hi`, p50\", 1)\n",
        ),
        (
            "docs/bench/core-2026-01-01.md",
            "| start, p99 | 1 ms | none |\n",
        ),
    ];
    let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let head = "| id | requirement | from | status | tests |\n|---|---|---|---|---|\n";
    failures(&requirements::check_text(
        &format!("{head}{row}\n"),
        &texts.into(),
    ))
}

#[test]
fn a_requirement_names_tests_that_exist() {
    let held = [
        "`crates/a/tests/stop.rs::ends`, `crates/a/tests/stop.rs::waits`",
        "`crates/a/tests/own.rs::one` `crates/a/tests/own.rs::two` `crates/a/tests/own.rs::six`",
        "`crates/a/tests/own.rs::three`, `crates/a/tests/own.rs::four`, `crates/a/tests/own.rs::five`",
        "`tests/python/test_a.py::test_one`, `tests/python/test_a.py::test_two`",
        "`tests/clients/a.mjs::it arrives, and finds`",
        "`step chaos`, `bench core::echo hi, p50`, `bench core::start, p99`",
    ];
    for tests in held {
        for status in ["held", "partly: half of it"] {
            let row = format!("| run.stop | It ends. | specification | {status} | {tests} |");
            assert_eq!(requirement(&row), [""; 0], "{row}");
        }
    }
    let no_tests = [
        "`crates/a/tests/stop.rs::end`",
        "`crates/a/tests/stop.rs::helper`",
        "`crates/a/tests/stop.rs::ignored`",
        "`crates/a/tests/own.rs::cases`",
        "`crates/a/tests/gone.rs::ends`",
        "`tests/python/test_a.py::helper`",
        "`tests/clients/a.mjs::it arrives`",
        "`docs/bench/core-2026-01-01.md::start, p99`",
        "`step fuzz`",
        "`bench pty::start, p99`",
        "`bench core::start`",
        "`ends`",
        "ends",
    ];
    for tests in no_tests {
        let row = format!("| run.stop | It ends. | specification | held | {tests} |");
        assert_eq!(requirement(&row).len(), 1, "{row}");
    }
}

#[test]
fn a_requirement_is_complete() {
    let fine = [
        "| run.stop | It ends. | command server, specification | not built | |",
        "| run.stop | It ends. | container engine | untested | |",
    ];
    for row in fine {
        assert_eq!(requirement(row), [""; 0], "{row}");
    }
    let test = "`crates/a/tests/stop.rs::ends`";
    let wrong = [
        "| run.stop | It ends. | specification | not built |".to_owned(),
        "| stop | It ends. | specification | not built | |".to_owned(),
        "| run.Stop | It ends. | specification | not built | |".to_owned(),
        "| run..stop | It ends. | specification | not built | |".to_owned(),
        "| run.stop | | specification | not built | |".to_owned(),
        "| run.stop | It ends. | a letter | not built | |".to_owned(),
        "| run.stop | It ends. | specification | done | |".to_owned(),
        "| run.stop | It ends. | specification | held | |".to_owned(),
        format!("| run.stop | It ends. | specification | partly: | {test} |"),
        format!("| run.stop | It ends. | specification | not built | {test} |"),
        format!("| run.stop | It ends. | specification | untested | {test} |"),
    ];
    for row in wrong {
        assert_eq!(requirement(&row).len(), 1, "{row}");
    }
    let twice = "| run.stop | It ends. | specification | untested | |";
    let found = requirement(&format!("{twice}\n{twice}"));
    assert_eq!(
        found,
        ["failure: docs/requirements.md:4: the id 'run.stop' is used twice"]
    );
}

#[test]
fn words_of_no_field_are_found_in_names_but_not_in_tests() {
    let bad = [
        "fn told() {}",
        "struct PortWish;",
        "fn f(asked: u8) {}",
        "enum Seen {}",
        "fn birth_of() {}",
    ];
    for text in bad {
        let found = failures(&banned_words::check(&engine(text)));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
    let good = [
        "fn wished() {}",
        "fn f(seen: &mut HashSet<u8>) { seen.insert(1); }",
        "#[cfg(test)] mod tests { fn it_is_told() {} }",
        "// told and asked\nfn f() -> &'static str { \"told\" }",
    ];
    for text in good {
        assert_eq!(
            failures(&banned_words::check(&engine(text))),
            [""; 0],
            "{text}"
        );
    }
    let file = source("crates/engine/src/desk.rs", "ostler-engine", "");
    assert_eq!(failures(&banned_words::check(&file)).len(), 1);
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut types = TypeNames::default();
    types.read(&engine(
        "pub(crate) struct Place; struct Own; pub type Error = ();",
    ));
    types.read(&source(
        "crates/mcp/src/place.rs",
        "ostler-mcp",
        "pub enum Place {} enum Own {} pub enum Error {}",
    ));
    let found = failures(&types.check());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`Place`"), "{found:?}");
}

#[test]
fn a_file_that_no_module_reaches_is_found() {
    let sources = [
        source(
            "crates/a/src/lib.rs",
            "a",
            "mod one; mod two { mod three; }",
        ),
        source(
            "crates/a/src/one.rs",
            "a",
            "#[path = \"one_tests.rs\"] mod tests; mod deep;",
        ),
        source("crates/a/src/one/deep.rs", "a", ""),
        source("crates/a/src/one_tests.rs", "a", ""),
        source("crates/a/src/two/three.rs", "a", ""),
        source("crates/a/tests/whole.rs", "a", "mod common;"),
        source("crates/a/tests/common/mod.rs", "a", ""),
        source("crates/a/examples/big/main.rs", "a", ""),
        source("crates/a/src/lost.rs", "a", ""),
    ];
    let found = failures(&orphans::check("crates/a", &sources));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("src/lost.rs"), "{found:?}");
}
