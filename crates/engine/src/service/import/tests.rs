//! Imports of files as found in public repositories.

use std::io;
use std::path::Path;

use super::*;
use crate::service::manifest;

const PROCFILE: &str = include_str!("testdata/Procfile");
const PACKAGE: &str = include_str!("testdata/package.json");
const WEB: &str = include_str!("testdata/compose-web.yaml");
const NODE: &str = include_str!("testdata/compose-node.yml");

/// The text of another file in the test data directory.
fn other(name: &str) -> io::Result<String> {
    let text = match name {
        ".env" => "PORT=7000\nDB_PASSWORD='word'\n",
        ".env.web" => "# of the web\nTOKEN=abc\nDEBUG=no\n",
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    Ok(text.to_owned())
}

fn beside(dir: &str) -> ImportContext<'_> {
    ImportContext {
        dir,
        read: &other,
        exists: &|name| other(name).is_ok(),
    }
}

fn alone() -> ImportContext<'static> {
    ImportContext {
        dir: "",
        read: &|_| Err(io::ErrorKind::NotFound.into()),
        exists: &|_| false,
    }
}

/// The generated file and the omissions, one line each. Checks that the generated file parses.
fn rendered(imported: &ImportResult) -> (String, Vec<String>) {
    let text = to_toml(imported);
    let parsed =
        manifest::parse(&text, Path::new("/w")).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(parsed.len(), imported.services.len(), "{text}");
    let left = imported.omissions.iter();
    let left = left.map(|it| format!("{}: {}: {}", it.line, it.item, it.reason));
    (text, left.collect())
}

#[track_caller]
fn assert_rendered(imported: &ImportResult, toml: &str, left: &[&str]) {
    let (text, found) = rendered(imported);
    assert_eq!(text, toml);
    assert_eq!(found, left);
}

#[test]
fn a_procfile() {
    let imported = procfile(PROCFILE, alone()).expect("a Procfile");
    let left = [
        "2: release: runs once for a deployment, it is no service",
        "6: worker: stands there already",
        "8: not a process: is no line `name: command`",
        "9: empty:: is no line `name: command`",
    ];
    assert_rendered(&imported, include_str!("expected/Procfile.toml"), &left);
    let imported = procfile("web: run -p $PORT", beside("web")).expect("a Procfile");
    let toml = "[services.web]\ncommand = \"run -p $PORT\"\ncwd = \"web\"\nport = 7000\nenv = { DB_PASSWORD = \"word\" }\n";
    assert_rendered(&imported, toml, &[]);
}

#[test]
fn scripts_of_a_package() {
    let serves = |command: &str| command.ends_with("start:api") || command.ends_with("preview");
    let imported = package(PACKAGE, alone(), &serves).expect("a package");
    let left = [
        "7: build: starts no server that is known",
        "8: lint: starts no server that is known",
        "12: test: starts no server that is known",
        "13: prepare: is no text",
        "14: x; rm -rf ~: has a name that a shell reads otherwise",
    ];
    assert_rendered(&imported, include_str!("expected/package.toml"), &left);
    let lock = ImportContext {
        exists: &|name| name == "yarn.lock",
        ..beside("apps/web")
    };
    let imported = package(r#"{"scripts":{"dev":"x"}}"#, lock, &|_| false).expect("a package");
    let toml = "[services.dev]\ncommand = \"yarn run dev\"\ncwd = \"apps/web\"\n";
    assert_rendered(&imported, toml, &[]);
}

#[test]
fn compose_files() {
    let imported = compose(WEB, beside("")).expect("a compose file");
    let left: Vec<&str> = include_str!("expected/compose-web.left").lines().collect();
    assert_rendered(&imported, include_str!("expected/compose-web.toml"), &left);
    let imported = compose(NODE, alone()).expect("a compose file");
    let left: Vec<&str> = include_str!("expected/compose-node.left").lines().collect();
    assert_rendered(&imported, include_str!("expected/compose-node.toml"), &left);
}

#[test]
fn what_cannot_be_parsed_is_reported_with_its_line() {
    let procfile_error = procfile(&"x".repeat(FILE_BYTES + 1), alone()).expect_err("too long");
    assert_eq!((procfile_error.line, procfile_error.column), (1, 1));
    for (text, place) in [
        ("{\"scripts\": {\"dev\": \"x\",}}", "1:25: trailing comma"),
        ("{\n  \"scripts\": [1]\n}", "2:1"),
        ("", "1:1: "),
    ] {
        let error = package(text, alone(), &|_| false)
            .expect_err(text)
            .to_string();
        assert!(error.starts_with(place), "{text}: {error}");
    }
    for (text, place) in [
        ("services:\n  web:\n    command: [a, b\n", "4:1: "),
        ("services:\n\tweb: x\n", "2:"),
        ("web:\n  command: x\n", "1:1: there are no 'services'"),
        ("services: []\n", "1:11: 'services'"),
        (
            "services:\n  web:\n    command: sh -c 'x\n",
            "3:14: a quote is not closed",
        ),
        (
            "services:\n  web:\n    command: [[x]]\n",
            "3:15: has to be a text",
        ),
        (
            "services:\n  web: {command: x}\n  web: {command: y}\n",
            "3:3: the key 'web'",
        ),
    ] {
        let error = compose(text, alone()).expect_err(text).to_string();
        assert!(error.starts_with(place), "{text}: {error}");
    }
}

#[test]
fn names_are_made_fit_and_stay_apart() {
    let text = "services:\n  Web: {command: a}\n  web: {command: b, depends_on: [Web]}\n  _: {command: c}\n";
    let imported = compose(text, alone()).expect("a compose file");
    let names: Vec<&str> = imported.services.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["web", "web-2", "service"]);
    assert!(to_toml(&imported).contains("depends_on = [\"web:started\"]"));
}

/// No input panics, and every result parses.
#[test]
fn fuzz_import() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/service/import/testdata");
    ostler_fuzz::fuzz(&corpus, Vec::new(), |input| {
        let text = String::from_utf8_lossy(input);
        let all = [
            procfile(&text, beside("a")),
            package(&text, alone(), &|_| true),
            compose(&text, beside("")),
        ];
        for imported in all.into_iter().flatten() {
            rendered(&imported);
        }
    });
}
