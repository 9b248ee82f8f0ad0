//! Services follow their `ostler.toml`.

use crate::fixture::{ServiceFixture, service_error, test_caller};

fn sleeper(name: &str, seconds: u32) -> String {
    format!("[services.{name}]\ncommand = \"exec sleep {seconds}\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changed_is_started_anew() {
    let lab = ServiceFixture::new().await;
    lab.write(
        "ostler.toml",
        &[sleeper("a", 301), sleeper("b", 301), sleeper("c", 301)].concat(),
    );
    lab.up(&["a", "b"]).await.expect("they start");
    let (a, b) = (lab.id("a"), lab.id("b"));
    // 'a' changes, 'b' is told otherwise only, 'c' changes and does not run, 'd' is new.
    let told = format!("{}description = \"told\"\n", sleeper("b", 301));
    lab.write(
        "ostler.toml",
        &[
            sleeper("a", 302),
            told,
            sleeper("c", 302),
            sleeper("d", 302),
        ]
        .concat(),
    );
    lab.wait_until("another 'a'", |lab| {
        lab.service("a").is_living() && lab.id("a") != a
    })
    .await;
    assert_eq!(lab.service("a").command, "exec sleep 302");
    let old = lab
        .engine
        .info(&test_caller(), &a.to_string())
        .expect("it is kept");
    assert_eq!(
        old.error_message()
            .map(|it| it.contains("its definition changed")),
        Some(true)
    );
    assert_eq!(lab.id("b"), b);
    for name in ["c", "d"] {
        assert!(lab.service(name).execution.is_none(), "{name}");
    }
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_and_a_removed_service_change_nothing_and_are_told() {
    let lab = ServiceFixture::new().await;
    lab.write(
        "ostler.toml",
        &[sleeper("a", 301), sleeper("b", 301)].concat(),
    );
    lab.up(&[]).await.expect("they start");
    let (a, b) = (lab.id("a"), lab.id("b"));
    lab.write("ostler.toml", "[services.a]\ncomand = \"x\"\n");
    let noted = |lab: &ServiceFixture, name: &str, word: &str| {
        lab.service(name)
            .notes
            .iter()
            .any(|note| note.contains(word))
    };
    lab.wait_until("a note", |lab| {
        noted(lab, "a", "line 2: unknown key 'comand'")
    })
    .await;
    assert!(noted(&lab, "b", "the services run on as before"));
    let why = lab.why("a").await.expect("known");
    assert!(
        why.evidence
            .iter()
            .any(|it| it.contains("cannot be used: line 2")),
        "{why:?}"
    );
    assert_eq!(
        lab.engine
            .services(&test_caller(), Some(&lab.dir()))
            .expect("told")
            .len(),
        2
    );
    let up_now = lab.up(&[]).await;
    let told = service_error(up_now).to_string();
    assert!(
        told.ends_with(
            "ostler.toml: line 2: unknown key 'comand' in services.a; did you mean 'command'?"
        ),
        "{told}"
    );
    lab.write("ostler.toml", &sleeper("a", 301));
    lab.wait_until("a note", |lab| noted(lab, "b", "no longer defined"))
        .await;
    assert!(lab.service("a").notes.is_empty());
    assert_eq!((lab.id("a"), lab.id("b")), (a, b));
    assert!(lab.service("b").is_living());
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_new_definition_cannot_run_is_left_as_it_is() {
    let lab = ServiceFixture::new().await;
    lab.write("ostler.toml", &sleeper("a", 301));
    lab.up(&[]).await.expect("they start");
    let a = lab.id("a");
    let needs = format!(
        "{}depends_on = [\"b\"]\n{}",
        sleeper("a", 302),
        sleeper("b", 301)
    );
    lab.write("ostler.toml", &needs);
    let is_told = |lab: &ServiceFixture| {
        let notes = lab.service("a").notes;
        notes
            .iter()
            .any(|it| it.contains("not in force") && it.contains("'b', which does not run"))
    };
    lab.wait_until("a note", is_told).await;
    assert_eq!(lab.id("a"), a);
    assert!(
        lab.service("b").execution.is_none(),
        "nothing starts that did not run"
    );
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_front_s_environment_stays_with_a_changed_service() {
    let lab = ServiceFixture::new().await;
    lab.write("ostler.toml", &sleeper("a", 301));
    let mut base = lab.base();
    base.base_env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("TZ".into(), "Mars".into()),
    ];
    let (me, dir) = (test_caller(), lab.dir());
    let start = lab.engine.service_up(&me, &dir, &[], &base).await;
    start.expect("it starts");
    let a = lab.id("a");
    lab.write(
        "ostler.toml",
        "[services.a]\ncommand = \"echo in $TZ; exec sleep 301\"\n",
    );
    lab.wait_until("another 'a'", |lab| {
        lab.service("a").is_living() && lab.id("a") != a
    })
    .await;
    let id = lab.id("a").to_string();
    lab.wait_until("its line", |lab| {
        let journal = lab.engine.journal(&me, &id).ok();
        let query = ostler_journal::LineQuery::default();
        let page = journal.and_then(|it| it.lines(&query).ok());
        let lines = page.into_iter().flat_map(|page| page.lines);
        lines.into_iter().any(|line| line.bytes == b"in Mars")
    })
    .await;
    lab.close().await;
}
