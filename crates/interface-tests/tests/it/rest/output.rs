//! Output: raw, in pages, exported, cleared.

use super::*;

#[tokio::test]
async fn raw_output_follows_to_the_end() {
    let web = RestFixture::new().await;
    let script = r"echo one; printf '\377\n' >&2; read -r line; echo $line";
    let id = web
        .start(script, json!({"stdin": {"given": "two\n"}}))
        .await;
    let path = format!("/api/v1/executions/{id}/raw?follow=true");
    let (status, bytes) = web.raw(Method::GET, &path, Body::empty()).await;
    assert_eq!(status, 200);
    let (mut stdout, mut stderr, mut ended) = (Vec::new(), Vec::new(), false);
    for line in bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        match serde_json::from_slice(line).unwrap() {
            OutputFrame::Data {
                stream: ostler_model::StreamName::Stderr,
                data,
                ..
            } => {
                stderr.extend_from_slice(data.as_bytes());
            }
            OutputFrame::Data { data, .. } => stdout.extend_from_slice(data.as_bytes()),
            OutputFrame::End { end, .. } => ended = end.is_finished(),
            other @ (OutputFrame::Gap { .. } | OutputFrame::Problem { .. }) => panic!("{other:?}"),
        }
    }
    assert_eq!(
        (stdout.as_slice(), stderr.as_slice()),
        (&b"one\ntwo\n"[..], &b"\xff\n"[..])
    );
    assert!(ended);
    let (_, again) = web
        .raw(Method::GET, &path.replace("true", "false"), Body::empty())
        .await;
    assert!(again.iter().filter(|&&byte| byte == b'\n').count() > 1);
}

#[tokio::test]
async fn pages_go_on_where_the_last_one_ended() {
    let web = RestFixture::new().await;
    let id = web.run("seq 1 2500", json!({})).await;
    let (mut next, mut lines) = (String::from("0"), Vec::new());
    loop {
        let path = format!("/api/v1/executions/{id}/output?cursor={next}&limit=999");
        let (_, page) = web.get(&path).await;
        for line in page["lines"].as_array().unwrap() {
            lines.push(line["text"].as_str().unwrap().parse::<u32>().unwrap());
        }
        next = page["next"].as_str().unwrap().to_owned();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(lines, (1..=2500).collect::<Vec<_>>());
    let (_, page) = web
        .get(&format!("/api/v1/executions/{id}/output?tail=1"))
        .await;
    assert_eq!(page["lines"][0]["number"], 2500);
    let (_, page) = web
        .get(&format!("/api/v1/executions/{id}/output?head=1"))
        .await;
    assert_eq!(page["lines"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn exports_and_clearing() {
    let web = RestFixture::new().await;
    let id = web.run("echo kept", json!({})).await;
    let path = format!("/api/v1/executions/{id}");
    let (status, text) = web.get(&format!("{path}/export?format=text")).await;
    assert_eq!((status, text), (200, json!("kept\n")));
    let (status, problem) = web.get(&format!("{path}/export?format=xml")).await;
    assert_eq!(status, 422, "{problem}");
    let output = format!("{path}/output");
    let (status, dropped) = web.raw(Method::DELETE, &output, Body::empty()).await;
    assert_eq!(
        (status, parsed(&dropped)),
        (200, json!({"dropped_bytes": 5}))
    );
    let (_, page) = web.get(&output).await;
    assert_eq!(
        (&page["lines"], &page["gap"]),
        (&json!([]), &json!({"from": 0, "to": 5}))
    );
}
