//! Services follow their `ostler.toml`.

use super::fixture::{ServiceFixture, service_error};
use crate::test_engine::test_caller;

fn sleeper(name: &str, seconds: u32) -> String {
    format!("[services.{name}]\ncommand = \"exec sleep {seconds}\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changed_is_started_anew() {
    let fixture = ServiceFixture::new().await;
    fixture.write(
        "ostler.toml",
        &[sleeper("a", 301), sleeper("b", 301), sleeper("c", 301)].concat(),
    );
    fixture.up(&["a", "b"]).await.expect("they start");
    let (a, b) = (fixture.id("a"), fixture.id("b"));
    // 'a' changes, only the description of 'b' changes, 'c' changes and does not run, 'd' is new.
    let redescribed = format!("{}description = \"told\"\n", sleeper("b", 301));
    fixture.write(
        "ostler.toml",
        &[
            sleeper("a", 302),
            redescribed,
            sleeper("c", 302),
            sleeper("d", 302),
        ]
        .concat(),
    );
    fixture
        .wait_until("another 'a'", |fixture| {
            fixture.service("a").is_living() && fixture.id("a") != a
        })
        .await;
    assert_eq!(fixture.service("a").command, "exec sleep 302");
    let old = fixture
        .engine
        .info(&test_caller(), &a.to_string())
        .expect("it is kept");
    assert_eq!(
        old.error_message()
            .map(|it| it.contains("its definition changed")),
        Some(true)
    );
    assert_eq!(fixture.id("b"), b);
    for name in ["c", "d"] {
        assert!(fixture.service(name).execution.is_none(), "{name}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_and_a_removed_service_change_nothing_and_are_reported() {
    let fixture = ServiceFixture::new().await;
    fixture.write(
        "ostler.toml",
        &[sleeper("a", 301), sleeper("b", 301)].concat(),
    );
    fixture.up(&[]).await.expect("they start");
    let (a, b) = (fixture.id("a"), fixture.id("b"));
    fixture.write("ostler.toml", "[services.a]\ncomand = \"x\"\n");
    let noted = |fixture: &ServiceFixture, name: &str, word: &str| {
        fixture
            .service(name)
            .notes
            .iter()
            .any(|note| note.contains(word))
    };
    fixture
        .wait_until("a note", |fixture| {
            noted(fixture, "a", "line 2: unknown key 'comand'")
        })
        .await;
    assert!(noted(&fixture, "b", "the services run on as before"));
    let why = fixture.why("a").await.expect("known");
    assert!(
        why.evidence
            .iter()
            .any(|it| it.contains("cannot be used: line 2")),
        "{why:?}"
    );
    assert_eq!(
        fixture
            .engine
            .services(&test_caller(), Some(&fixture.dir()))
            .expect("told")
            .len(),
        2
    );
    let up_now = fixture.up(&[]).await;
    let actual = service_error(up_now).to_string();
    assert!(
        actual.ends_with(
            "ostler.toml: line 2: unknown key 'comand' in services.a; did you mean 'command'?"
        ),
        "{actual}"
    );
    fixture.write("ostler.toml", &sleeper("a", 301));
    fixture
        .wait_until("a note", |fixture| noted(fixture, "b", "no longer defined"))
        .await;
    assert!(fixture.service("a").notes.is_empty());
    assert_eq!((fixture.id("a"), fixture.id("b")), (a, b));
    assert!(fixture.service("b").is_living());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_new_definition_cannot_run_is_left_as_it_is() {
    let fixture = ServiceFixture::new().await;
    fixture.write("ostler.toml", &sleeper("a", 301));
    fixture.up(&[]).await.expect("they start");
    let a = fixture.id("a");
    let needs = format!(
        "{}depends_on = [\"b\"]\n{}",
        sleeper("a", 302),
        sleeper("b", 301)
    );
    fixture.write("ostler.toml", &needs);
    let is_told = |fixture: &ServiceFixture| {
        let notes = fixture.service("a").notes;
        notes
            .iter()
            .any(|it| it.contains("not in force") && it.contains("'b', which does not run"))
    };
    fixture.wait_until("a note", is_told).await;
    assert_eq!(fixture.id("a"), a);
    assert!(
        fixture.service("b").execution.is_none(),
        "nothing starts that did not run"
    );
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxys_environment_stays_with_a_changed_service() {
    let fixture = ServiceFixture::new().await;
    fixture.write("ostler.toml", &sleeper("a", 301));
    let mut base = fixture.base();
    base.base_env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("TZ".into(), "Mars".into()),
    ];
    let (me, dir) = (test_caller(), fixture.dir());
    let start = fixture.engine.service_up(&me, &dir, &[], &base).await;
    start.expect("it starts");
    let a = fixture.id("a");
    fixture.write(
        "ostler.toml",
        "[services.a]\ncommand = \"echo in $TZ; exec sleep 301\"\n",
    );
    fixture
        .wait_until("another 'a'", |fixture| {
            fixture.service("a").is_living() && fixture.id("a") != a
        })
        .await;
    let id = fixture.id("a").to_string();
    fixture
        .wait_until("its line", |fixture| {
            let journal = fixture.engine.journal(&me, &id).ok();
            let query = ostler_journal::LineQuery::default();
            let page = journal.and_then(|it| it.lines(&query).ok());
            let lines = page.into_iter().flat_map(|page| page.lines);
            lines.into_iter().any(|line| line.bytes == b"in Mars")
        })
        .await;
    fixture.close().await;
}
