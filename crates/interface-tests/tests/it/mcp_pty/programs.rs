//! Programs driven to a known end.

use serde_json::json;

use super::agent::{agent, body, fields, plain, read, rows, run, shell, start, write};
use crate::common::{ServerFixture, text};

#[tokio::test]
async fn python_computes_and_ends() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let (id, first) = start(&mut client, json!({"command": ["/usr/bin/python3", "-q"]})).await;
    assert_eq!(rows(&first), [">>>"], "{}", text(&first));
    let result = write(&mut client, &id, json!({"text": "6 * 7"})).await;
    assert_eq!(body(&result), "6 * 7\n42\n>>> ", "{}", text(&result));
    let more = json!({"text": "1 + 1", "until": "exit", "wait_ms": 1_000});
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["why"], "time", "{result}");
    assert!(body(&result).contains("\n2\n"), "{}", text(&result));
    let result = write(&mut client, &id, json!({"text": "input('Sure? ')"})).await;
    assert!(
        text(&result).contains("it waits for input: Sure?"),
        "{}",
        text(&result)
    );
    let result = write(&mut client, &id, json!({"text": "yes"})).await;
    assert!(body(&result).contains("'yes'"), "{}", text(&result));
    let more = json!({"keys": ["ctrl-d"], "until": "exit"});
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["status"], "exited", "{result}");
    assert_eq!(fields(&result)["exit_code"], 0, "{result}");
}

#[tokio::test]
async fn vim_edits_and_saves_a_file() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let file = bench.work.path().join("poem");
    let command = json!(["/usr/bin/vim", "-u", "NONE", "-N", file]);
    let (id, first) = start(&mut client, json!({"command": command})).await;
    assert_eq!(fields(&first)["screen"]["alternate"], true, "{first}");
    let more = json!({"text": "iroses are red", "enter": false});
    let result = write(&mut client, &id, more).await;
    assert_eq!(rows(&result)[0], "roses are red", "{}", text(&result));
    let more = json!({"keys": ["escape", "o", "v", "i", "o", "l", "e", "t", "s", "escape"]});
    let result = write(&mut client, &id, more).await;
    assert_eq!(rows(&result)[1], "violets", "{}", text(&result));
    let result = write(&mut client, &id, json!({"text": ":wq", "until": "exit"})).await;
    assert_eq!(fields(&result)["exit_code"], 0, "{result}");
    let saved = std::fs::read_to_string(&file).unwrap();
    assert_eq!(saved, "roses are red\nviolets\n");
}

#[tokio::test]
async fn less_pages_through_a_file_and_gives_the_screen_back() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    run(&mut client, &id, "seq 1 500 > numbers").await;
    let result = run(&mut client, &id, "less numbers").await;
    assert_ne!(fields(&result)["end"], "finished", "{result}");
    assert_eq!(rows(&result)[..2], ["1", "2"], "{}", text(&result));
    assert_eq!(fields(&result)["screen"]["alternate"], true, "{result}");
    let result = read(&mut client, &id, json!({})).await;
    assert_eq!(rows(&result)[..2], ["1", "2"], "{}", text(&result));
    let result = write(&mut client, &id, json!({"keys": ["G"]})).await;
    assert!(
        rows(&result).contains(&"500".to_owned()),
        "{}",
        text(&result)
    );
    let more = json!({"keys": ["q"], "until": "prompt"});
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["screen"]["alternate"], false, "{result}");
    assert_eq!(fields(&result)["shell"]["status"], 0, "{result}");
}

#[tokio::test]
async fn cat_echoes_whatever_way_it_is_typed() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let (id, first) = start(&mut client, json!({"command": ["cat"]})).await;
    assert!(
        text(&first).contains("(the screen is blank)"),
        "{}",
        text(&first)
    );
    assert!(
        text(&first).contains("it waits for input"),
        "{}",
        text(&first)
    );
    for (more, shown) in [
        (json!({"text": "a b"}), "a b\na b"),
        (json!({"text": "two\nlines\n"}), "two\nlines\ntwo\nlines"),
        (json!({"paste": "pasted"}), "pasted\npasted"),
        (json!({"base64": "cmF3Cg=="}), "raw\nraw"),
        (json!({"text": "x", "keys": ["y", "enter"]}), "xy\nxy"),
    ] {
        let result = write(&mut client, &id, more.clone()).await;
        let mut shown: Vec<&str> = shown.lines().collect();
        let text = body(&result);
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        shown.sort_unstable();
        assert_eq!(lines, shown, "{more}: {text}");
    }
    let result = write(&mut client, &id, json!({"text": "half", "enter": false})).await;
    assert_eq!(body(&result), "half");
    let more = json!({"keys": ["ctrl-u", "ctrl-d"], "until": "exit"});
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["why"], "exit", "{result}");
}

#[tokio::test]
async fn an_awaited_line_is_reported() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let more = json!({
        "text": "for i in 1 2 3; do echo step $i; done; sleep 1000",
        "pattern": "^step 3"
    });
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["why"], "pattern", "{result}");
    assert!(
        text(&result).contains("[pattern matched: step 3]"),
        "{}",
        text(&result)
    );
    let more = json!({"text": "x", "pattern": "never", "wait_ms": 200});
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["why"], "time", "{result}");
}

#[tokio::test]
async fn what_does_not_read_never_blocks_and_says_how_much_it_took() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    // Raw mode, so that the line discipline does not drop the rest of a long line.
    let command = json!(["sh", "-c", "stty raw -echo; echo ready; exec sleep 1000"]);
    let (id, _) = start(&mut client, json!({"command": command})).await;
    read(&mut client, &id, json!({"pattern": "ready"})).await;
    let more = json!({"text": "x".repeat(100_000), "wait_ms": 100});
    let result = write(&mut client, &id, more).await;
    let taken = fields(&result)["taken"].as_u64().unwrap();
    assert!(taken > 0 && taken < 100_001, "{result}");
    assert_eq!(fields(&result)["bytes"], 100_001);
    assert!(text(&result).contains(&format!("only {taken} of 100001 bytes")));
    let again = json!({"session": id, "text": "more", "wait_ms": 100});
    let refused = client.call("pty_write", again).await;
    assert_eq!(refused["isError"], true, "{refused}");
    insta::assert_snapshot!(plain(&refused));
}
