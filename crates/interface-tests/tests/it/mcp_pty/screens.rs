//! Views: the screen, text, raw bytes; and the screen as a resource.

use serde_json::{Value, json};

use super::agent::{agent, body, did, fields, plain, read, rows, run, shell, start, write};
use crate::common::{McpTestClient, ServerFixture, text};

const UPDATED: &str = "notifications/resources/updated";

/// Prints, and waits.
async fn printed(client: &mut McpTestClient, script: &str, more: Value) -> (String, Value) {
    let script = format!("{script}; exec sleep 1000");
    let command = json!({"command": ["sh", "-c", script]});
    start(client, super::agent::with(command, more)).await
}

#[tokio::test]
async fn a_screen_is_reported_with_its_cursor_title_and_size() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let script = r"printf '\033]2;my title\007\033[2J\033[3;5Hhere'";
    let (_, result) = printed(&mut client, script, json!({"cols": 40, "rows": 10})).await;
    let screen = &fields(&result)["screen"];
    assert_eq!(screen["size"], json!({"cols": 40, "rows": 10}), "{result}");
    assert_eq!(screen["cursor"]["row"], 2);
    assert_eq!(screen["cursor"]["col"], 8);
    assert_eq!(screen["title"], "my title");
    assert_eq!(rows(&result), ["", "", "    here"]);
    insta::assert_snapshot!(plain(&result));
}

#[tokio::test]
async fn the_widest_screen_keeps_the_budget() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let script = "i=0; while [ $i -lt 100 ]; do printf '%0300d' 0; i=$((i+1)); done";
    let (id, result) = printed(&mut client, script, json!({"cols": 300, "rows": 100})).await;
    assert!(text(&result).chars().count() <= 20_000);
    let result = read(&mut client, &id, json!({"until": "idle"})).await;
    assert!(text(&result).chars().count() <= 20_000);
    assert!(rows(&result).len() >= 99, "{}", rows(&result).len());
    assert_eq!(fields(&result)["screen"]["cut"], true);
    assert!(
        text(&result).contains("[note: rows longer than"),
        "{}",
        text(&result)
    );
}

#[tokio::test]
async fn text_goes_on_from_an_offset() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    run(&mut client, &id, "PS1='> '; PS2=").await;
    let first = run(&mut client, &id, "echo one").await;
    let offset = fields(&first)["next_offset"].clone();
    run(&mut client, &id, "echo two").await;
    let more = json!({"view": "text", "offset": offset});
    let result = read(&mut client, &id, more).await;
    assert!(body(&result).contains("\ntwo\n"), "{}", text(&result));
    assert!(!body(&result).contains("one"), "{}", text(&result));
    let end = fields(&result)["next_offset"].clone();
    let more = json!({"view": "text", "offset": end});
    let result = read(&mut client, &id, more).await;
    assert!(text(&result).contains("no new output"), "{}", text(&result));
    let more = json!({"view": "text", "offset": 0, "limit": 5});
    let result = read(&mut client, &id, more).await;
    // A page does not end within a control sequence, with which this output begins.
    let next = fields(&result)["next_offset"].as_u64().unwrap();
    assert!((5..100).contains(&next), "{result}");
}

#[tokio::test]
async fn raw_output_is_paged_by_bytes() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let script = r"printf '\033[1mbold\033[0m \303\251'";
    let (id, _) = printed(&mut client, script, json!({})).await;
    let all = "\u{1b}[1mbold\u{1b}[0m é";
    let result = read(&mut client, &id, json!({"view": "raw"})).await;
    let expected = json!({
        "session": id, "data": all, "offset": 0, "next_offset": all.len(),
        "start_offset": 0, "end_offset": all.len(), "truncated": false
    });
    assert_eq!(result["structuredContent"], expected);
    // A character is never cut.
    let mut collected = String::new();
    let mut offset = 0;
    while offset < all.len() as u64 {
        let more = json!({"view": "raw", "offset": offset, "limit": 3});
        let page = read(&mut client, &id, more).await["structuredContent"].clone();
        collected.push_str(page["data"].as_str().unwrap());
        let next = page["next_offset"].as_u64().unwrap();
        assert!(next > offset, "{page}");
        offset = next;
    }
    assert_eq!(collected, all);
    let beyond = read(&mut client, &id, json!({"view": "raw", "offset": 99})).await;
    assert_eq!(beyond["structuredContent"]["data"], "");
}

#[tokio::test]
async fn raw_pages_keep_the_budget_and_tell_of_what_is_gone() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let script =
        r#"awk 'BEGIN { for (i = 0; i < 150000; i++) printf "\033[1m\033[0m" }'; echo end"#;
    let (id, _) = printed(&mut client, script, json!({})).await;
    read(&mut client, &id, json!({"pattern": "end"})).await;
    let result = read(&mut client, &id, json!({"view": "raw", "offset": 0})).await;
    assert!(text(&result).chars().count() <= 20_000);
    let page = &result["structuredContent"];
    assert_eq!(page["truncated"], true, "{page}");
    let start = page["start_offset"].as_u64().unwrap();
    assert_eq!(page["offset"], start);
    let end = page["end_offset"].as_u64().unwrap();
    assert!(end - start <= 1 << 20, "{start} {end}");
    assert!(page["next_offset"].as_u64().unwrap() > start);
}

#[tokio::test]
async fn a_new_size_reaches_the_program() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    assert_eq!(body(&run(&mut client, &id, "stty size").await), "24 80");
    let size = json!({"session": id, "cols": 132, "rows": 50});
    let result = did(&mut client, "pty_resize", size.clone()).await;
    assert_eq!(result["structuredContent"], size);
    assert_eq!(body(&run(&mut client, &id, "stty size").await), "50 132");
    let result = read(&mut client, &id, json!({})).await;
    assert_eq!(
        fields(&result)["screen"]["size"],
        json!({"cols": 132, "rows": 50})
    );
}

#[tokio::test]
async fn the_screen_is_a_resource() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let (id, _) = start(&mut client, json!({"command": ["cat"]})).await;
    let uri = format!("proc://{id}/screen");
    let listed = client.request("resources/list", json!({})).await;
    assert!(listed.to_string().contains(&uri), "{listed}");
    let templates = client.request("resources/templates/list", json!({})).await;
    assert!(templates.to_string().contains("proc://{id}/screen"));

    let subscribed = client
        .request("resources/subscribe", json!({"uri": uri}))
        .await;
    assert!(subscribed.get("result").is_some(), "{subscribed}");
    write(&mut client, &id, json!({"text": "seen"})).await;
    let updated = client.notification(UPDATED).await;
    assert_eq!(updated["uri"], uri.as_str());
    let read = client.request("resources/read", json!({"uri": uri})).await;
    let content = &read["result"]["contents"][0];
    let text = content["text"].as_str().unwrap();
    assert!(
        text.starts_with("[running | 80x24, cursor row 3 column 1]\nseen\nseen"),
        "{text}"
    );
    let rows = &content["_meta"]["ostler/result"]["rows"];
    assert_eq!(*rows, json!(["seen", "seen"]), "{read}");

    let complete = json!({
        "ref": {"type": "ref/resource", "uri": "proc://{id}/screen"},
        "argument": {"name": "id", "value": ""}
    });
    let other = did(&mut client, "exec", json!({"command": ["true"]})).await;
    let other = fields(&other)["id"].as_str().unwrap().to_owned();
    let completed = client.request("completion/complete", complete).await;
    assert_eq!(completed["result"]["completion"]["values"], json!([id]));
    let uri = format!("proc://{other}/screen");
    for method in ["resources/read", "resources/subscribe"] {
        let refused = client.request(method, json!({"uri": uri})).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("has no terminal"), "{refused}");
    }
    let unknown = json!({"uri": "proc://zzzzzzzz/screen"});
    let refused = client.request("resources/read", unknown).await;
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
}
