//! Lists and details.

use super::*;

#[tokio::test]
async fn lists_and_details_are_structured() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let more = json!({"description": "a server", "labels": ["web", "dev"]});
    let id = start(&mut client, "exec sleep 300", more).await;
    exec(&mut client, "exit 7", json!({})).await;
    let result = process(&mut client, "list", json!({})).await;
    assert_eq!(result["structuredContent"]["total"], 2);
    assert_eq!(result["structuredContent"]["running"], 1);
    let result = process(&mut client, "list", json!({"labels": ["web"]})).await;
    insta::assert_json_snapshot!(crate::common::normalize(&result)["structuredContent"]);
    let result = process(&mut client, "detail", json!({"ids": [id]})).await;
    let detail = &result["structuredContent"]["processes"][0];
    assert_eq!(
        (&detail["id"], &detail["description"]),
        (&json!(id), &json!("a server"))
    );
    let same: Value = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(same, result["structuredContent"]);
    end(&bench).await;
}

#[tokio::test]
async fn a_list_is_a_window_that_begins_with_what_runs() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let running = start(&mut client, "exec sleep 300", json!({})).await;
    for n in 0..45 {
        let script = if n % 15 == 0 { "exit 1" } else { "true" };
        exec(&mut client, script, json!({})).await;
    }
    let (mut ids, mut next) = (Vec::new(), None::<String>);
    for _ in 0..10 {
        let more = next
            .take()
            .map_or(json!({}), |next| json!({"cursor": next}));
        let result = process(&mut client, "list", more).await;
        assert!(text(&result).len() <= 6_000, "{}", text(&result).len());
        let list = &result["structuredContent"];
        assert_eq!((&list["total"], &list["running"]), (&json!(46), &json!(1)));
        let processes = list["processes"].as_array().unwrap();
        assert!(processes.len() <= 20);
        ids.extend(
            processes
                .iter()
                .map(|it| it["id"].as_str().unwrap().to_owned()),
        );
        next = list["next"].as_str().map(str::to_owned);
        if next.is_none() {
            break;
        }
    }
    assert_eq!(ids[0], running);
    let all: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), all.len()), (46, 46));
    for (status, count) in [("running", 1), ("ended", 45), ("failed", 3)] {
        let result = process(&mut client, "list", json!({"status": status})).await;
        assert_eq!(result["structuredContent"]["total"], count, "{result}");
    }
    let bad = process(&mut client, "list", json!({"cursor": "812.4"})).await;
    assert_eq!(bad["isError"], true, "{bad}");
}
