//! Services follow their `ostler.toml`.

use super::fixture::{ServiceFixture, named, service_error};
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
async fn one_whose_new_program_cannot_run_goes_on() {
    let fixture =
        ServiceFixture::with(|settings| settings.allowed_commands = Some(vec!["sleep".to_owned()]))
            .await;
    let define = |command: &str| {
        fixture.write(
            "ostler.toml",
            &format!("[services.a]\ncommand = {command}\n"),
        );
    };
    define("[\"sleep\", \"301\"]");
    fixture.up(&[]).await.expect("it starts");
    let a = fixture.id("a");
    for (command, word) in [
        ("[\"/no/such/program\"]", "/no/such/program"),
        ("[\"touch\", \"made\"]", "touch"),
    ] {
        define(command);
        let is_told = |fixture: &ServiceFixture| {
            let notes = fixture.service("a").notes;
            notes
                .iter()
                .any(|it| it.contains("not in force") && it.contains(word))
        };
        fixture.wait_until("a note", is_told).await;
        assert!(
            fixture.service("a").is_living() && fixture.id("a") == a,
            "{command}"
        );
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_directory_is_made_anew_is_followed() {
    let fixture = ServiceFixture::new().await;
    let (me, base) = (test_caller(), fixture.base());
    let dir = fixture.dir().join("above/project");
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("ostler.toml");
    let define = |seconds: u32| {
        // Its own directory is removed below.
        let service = format!("{}cwd = \"/\"\n", sleeper("a", seconds));
        std::fs::write(&file, service).expect("written");
    };
    define(301);
    let up = fixture.engine.service_up(&me, &dir, &[], &base).await;
    up.expect("it starts");
    let service = || {
        let services = fixture.engine.services(&me, None).expect("a list");
        services.into_iter().next().expect("a service")
    };
    let first = service().execution.expect("it runs").id;
    for above in [dir.as_path(), dir.parent().expect("a parent")] {
        std::fs::remove_dir_all(above).expect("removed");
        let is_told = |_: &ServiceFixture| {
            let notes = service().notes;
            notes.iter().any(|note| note.contains("no longer defined"))
        };
        fixture.wait_until("a note", is_told).await;
        std::fs::create_dir_all(&dir).expect("a directory");
        define(301);
        fixture
            .wait_until("no note", |_| service().notes.is_empty())
            .await;
    }
    assert_eq!(service().execution.expect("it runs").id, first);
    define(302);
    let is_another = |_: &ServiceFixture| {
        let service = service();
        service.is_living() && service.command == "exec sleep 302"
    };
    fixture.wait_until("another 'a'", is_another).await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_service_does_not_hinder_the_others() {
    let fixture = ServiceFixture::new().await;
    fixture.write("ostler.toml", &sleeper("old", 301));
    fixture.up(&[]).await.expect("it starts");
    let old = fixture.id("old");
    fixture.write("ostler.toml", &sleeper("new", 301));
    let up = fixture.up(&[]).await.expect("it starts");
    assert_eq!(up.len(), 1);
    assert_eq!(up[0].service.name, "new");
    let file = fixture.dir().join("ostler.toml").display().to_string();
    assert_eq!(fixture.service("new").definition, Some(file));
    assert!(fixture.service("old").is_living() && fixture.id("old") == old);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_hides_nothing_that_is_not_of_it() {
    let fixture = ServiceFixture::new().await;
    let own = named("own", fixture.sh("sleep 300"));
    fixture.ensure(own).await.expect("it starts");
    fixture.write("ostler.toml", "[services.a]\ncomand = \"x\"\n");
    let notes = fixture.service("own").notes;
    assert!(notes.is_empty(), "{notes:?}");
    let me = test_caller();
    let listed = fixture.engine.services(&me, Some(&fixture.dir()));
    let listed = listed.expect("a list");
    assert!(
        matches!(&listed[..], [own] if own.notes[0].contains("unknown key 'comand'")),
        "{listed:?}"
    );
    let unknown = fixture.engine.service(&me, "a", Some(&fixture.dir()));
    let problem = service_error(unknown).to_string();
    assert!(problem.contains("unknown key 'comand'"), "{problem}");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_never_started_is_stopped_and_restarts() {
    let fixture = ServiceFixture::new().await;
    fixture.write("ostler.toml", &sleeper("a", 301));
    let (me, dir) = (test_caller(), fixture.dir());
    let stopped = fixture
        .engine
        .stop_service(&me, "a", Some(&dir), ostler_engine::StopRequest::default())
        .await
        .expect("nothing runs");
    assert!(stopped.service.execution.is_none());
    let restarted = fixture.engine.restart_service(&me, "a", Some(&dir)).await;
    let restarted = restarted.expect("it starts");
    assert!(restarted.is_living());
    assert_eq!(restarted.command, "exec sleep 301");
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
