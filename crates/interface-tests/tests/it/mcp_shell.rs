//! The tools of profiles `shell_state` and `interaction`, each through whole conversations.

use std::time::Duration;

use crate::common::{McpTestClient, ServerFixture, normalize, normalize_text, text};
use ostler_engine::interaction::QuestionKind;
use ostler_engine::{Question, WaitFor};
use ostler_mcp::{ToolGroup, ToolSet};
use ostler_model::ExecutionId;
use regex::Regex;
use serde_json::{Value, json};

const DENIED: &str = "Process not found or access denied";

async fn client(bench: &ServerFixture, session: &str) -> McpTestClient {
    let tools = ToolSet::from_groups(&[ToolGroup::Shell, ToolGroup::Interaction]);
    bench.client_with(session, tools).await
}

/// A script in the background; its process id.
async fn start(client: &mut McpTestClient, script: &str) -> String {
    let arguments = json!({"command": script, "run_mode": "async"});
    let result = client.call("execute_shell", arguments).await;
    assert_eq!(result["isError"], false, "{result}");
    let id = &result["_meta"]["ostler/result"]["process_id"];
    id.as_str().unwrap().to_owned()
}

async fn ended(bench: &ServerFixture, session: &str, id: &str) {
    let caller = bench.caller(Some(session));
    let waited = bench.engine.wait(&caller, id, &WaitFor::Exit, None);
    waited.await.unwrap();
}

/// A result with varying values replaced.
fn normalize_result(result: &Value) -> Value {
    let masks = [
        (r#""process_id":"[^"]{8}""#, r#""process_id":"[id]""#),
        (r#"process_id: \\"[0-9a-z]{8}\\""#, "process_id: [id]"),
        (r"Process ID: [0-9a-z]{8}", "Process ID: [id]"),
        (r#""pid":\d+"#, r#""pid":0"#),
        (r#"\\"pid\\":\d+"#, r#"\"pid\":0"#),
        (
            r#"\\"process_id\\":\\"[^"]{8}\\""#,
            r#"\"process_id\":\"[id]\""#,
        ),
    ];
    let mut text = normalize(result).to_string();
    for (mask, by) in masks {
        let mask = Regex::new(mask).unwrap();
        text = mask.replace_all(&text, by).into_owned();
    }
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_list_of_tools_is_the_documents() {
    let bench = ServerFixture::new().await;
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Shell]))
        .await;
    let answer = client.request("tools/list", json!({})).await;
    insta::assert_json_snapshot!(answer["result"]);
}

#[tokio::test]
async fn the_list_of_tools_for_questions() {
    let bench = ServerFixture::new().await;
    let tools = ToolSet::from_groups(&[ToolGroup::Interaction]);
    let mut client = bench.client_with("s", tools).await;
    let answer = client.request("tools/list", json!({})).await;
    insta::assert_json_snapshot!(answer["result"]);
}

#[tokio::test]
async fn sync_answers_output_exit_code_and_time() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let arguments = json!({"command": "echo out; echo err >&2; exit 3"});
    let result = client.call("execute_shell", arguments).await;
    insta::assert_json_snapshot!(normalize_result(&result));
}

#[tokio::test]
async fn sync_ends_at_its_timeout_with_the_output_so_far() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let arguments = json!({"command": "echo before; sleep 300", "timeout": 1});
    let result = client.call("execute_shell", arguments).await;
    insta::assert_json_snapshot!(normalize_result(&result));
    let seconds = result["_meta"]["ostler/result"]["execution_time"].as_f64();
    assert!(seconds.unwrap() >= 1.0, "{result}");
}

#[tokio::test]
async fn a_background_process_lives_its_life() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let script = "echo one; echo two >&2; echo three; exec sleep 300";
    let arguments = json!({"command": script, "run_mode": "background", "timeout": 5});
    let started = client.call("execute_shell", arguments).await;
    insta::assert_json_snapshot!("shell_started", normalize_result(&started));
    let id = started["_meta"]["ostler/result"]["process_id"].clone();
    let caller = bench.caller(Some("s"));
    let three = ostler_journal::Pattern::new("three").unwrap();
    let printed = WaitFor::Pattern(three);
    let waited = bench
        .engine
        .wait(&caller, id.as_str().unwrap(), &printed, None);
    waited.await.unwrap();

    let arguments = json!({"process_id": id, "tail": {"n": 1}});
    let polled = client.call("poll_process", arguments).await;
    insta::assert_json_snapshot!("shell_polled", normalize_result(&polled));
    let arguments = json!({"process_id": id, "stream": "stdout", "mode": "head"});
    let read = client.call("read_process_output", arguments).await;
    insta::assert_json_snapshot!("shell_read", normalize_result(&read));
    let listed = client.call("list_processes", json!({})).await;
    insta::assert_json_snapshot!("shell_listed", normalize_result(&listed));
    let killed = client.call("kill_process", json!({"process_id": id})).await;
    insta::assert_json_snapshot!("shell_killed", normalize_result(&killed));
}

#[tokio::test]
async fn status_tools_say_the_same_twice() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let id = start(&mut client, "echo a").await;
    ended(&bench, "s", &id).await;
    for (tool, arguments) in [
        ("poll_process", json!({"process_id": id, "tail": {}})),
        ("list_processes", json!({})),
        ("kill_process", json!({"process_id": id})),
        ("interaction_list", json!({})),
    ] {
        let result = client.call(tool, arguments).await;
        let text: Value = serde_json::from_str(&text(&result)).unwrap();
        assert_eq!(text, result["structuredContent"], "{tool}");
    }
}

#[tokio::test]
async fn as_many_lines_as_the_document_gives() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let id = start(&mut client, "seq 1 200").await;
    ended(&bench, "s", &id).await;
    for (requested, given) in [(1, 1), (99, 99), (100, 100), (101, 100), (200, 100)] {
        for mode in ["head", "tail"] {
            let arguments =
                json!({"process_id": id, "stream": "stdout", "mode": mode, "lines": requested});
            let result = client.call("read_process_output", arguments).await;
            let read: Value = serde_json::from_str(&text(&result)).unwrap();
            assert_eq!(read["lines_requested"], given);
            assert_eq!(read["content"].as_array().unwrap().len(), given);
            let last = if mode == "head" { given } else { 200 };
            assert_eq!(read["content"][given - 1], last.to_string());
        }
        let arguments = json!({"process_id": id, "tail": {"n": requested}});
        let polled = client.call("poll_process", arguments).await;
        let lines = &polled["structuredContent"]["tail"]["lines"];
        assert_eq!(lines.as_array().unwrap().len(), given);
    }
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let bench = ServerFixture::new().await;
    let mut one = client(&bench, "one").await;
    let mut two = client(&bench, "two").await;
    let id = start(&mut one, "exec sleep 300").await;
    for (tool, more) in [
        ("poll_process", json!({})),
        ("read_process_output", json!({"stream": "stderr"})),
        ("kill_process", json!({})),
    ] {
        let mut arguments = more;
        arguments["process_id"] = id.clone().into();
        let foreign = two.call(tool, arguments.clone()).await;
        arguments["process_id"] = "zzzzzzzz".into();
        let unknown = two.call(tool, arguments).await;
        assert_eq!(foreign, unknown, "{tool}");
        assert!(text(&foreign).contains(DENIED), "{foreign}");
        assert_eq!(foreign["_meta"]["rpc"], -32603);
    }
    one.call("kill_process", json!({"process_id": id})).await;
}

#[tokio::test]
async fn wrong_arguments_are_reported_with_the_documented_sentences() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let mut answers = Vec::new();
    for (tool, arguments) in [
        ("execute_shell", json!({})),
        ("execute_shell", json!({"command": "\n"})),
        (
            "execute_shell",
            json!({"command": "true", "run_mode": "x", "timeout": 0}),
        ),
        (
            "execute_shell",
            json!({"command": "true", "isolation": "container"}),
        ),
        (
            "poll_process",
            json!({"tail": {"n": 0, "src": "both", "x": 1}}),
        ),
        ("poll_process", json!({"process_id": "x", "tail": 5})),
        (
            "read_process_output",
            json!({"process_id": "x", "lines": "many"}),
        ),
        ("list_processes", json!({"status_filter": "killed"})),
        ("interaction_answer", json!({"answer": "yes"})),
        (
            "interaction_answer",
            json!({"id": "i1", "answer": "yes", "cancel": true}),
        ),
        ("interaction_answer", json!({"id": "i1"})),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true);
        let rpc = &result["_meta"]["rpc"];
        answers.push(format!("{tool} {arguments}\n  {rpc} {}", text(&result)));
    }
    insta::assert_snapshot!(answers.join("\n"));
}

#[tokio::test]
async fn a_sync_script_is_seen_running_by_others() {
    let bench = ServerFixture::new().await;
    let mut one = client(&bench, "s").await;
    let mut two = client(&bench, "s").await;
    let call = json!({
        "name": "execute_shell",
        "arguments": {"command": "while [ ! -e go ]; do sleep 0.05; done; echo went"}
    });
    let call = one.send("tools/call", call).await;
    let process = loop {
        let listed = two.call("list_processes", json!({})).await;
        let process = &listed["structuredContent"]["processes"][0];
        if process["status"] == "running" {
            break process.clone();
        }
    };
    assert!(process["pid"].is_number(), "{process}");
    std::fs::write(bench.work.path().join("go"), "").unwrap();
    let answer = one.wait_response(call).await;
    assert!(text(&answer["result"]).starts_with("went\n"), "{answer}");
}

/// Starts a command that reads its input, and opens a question about it.
async fn asking(
    bench: &ServerFixture,
    client: &mut McpTestClient,
    question: Question,
) -> (ExecutionId, String) {
    let caller = bench.caller(Some("s"));
    let command = ["sh", "-c", "read -r line; echo \"got $line\""];
    let mut request = ostler_engine::StartRequest::argv(command, bench.directory());
    request.stdin = ostler_engine::StdinRequest::Open;
    let info = bench.engine.start(&caller, request).await.unwrap();
    let question = Question {
        execution: Some(info.id),
        ..question
    };
    let interaction = bench.engine.open_interaction(&caller, question).unwrap();
    let listed = client.call("interaction_list", json!({})).await;
    let response = listed["structuredContent"]["interactions"][0]["id"].clone();
    assert_eq!(response, interaction.id.to_string());
    (info.id, response.as_str().unwrap().to_owned())
}

/// A result with the ids and times of interactions and their processes replaced.
fn normalize_question(result: &Value) -> Value {
    let mut text = normalize(result).to_string();
    for (mask, by) in [
        (
            r#"\\?"execution\\?":\\?"[0-9a-z]{8}\\?""#,
            r#""execution [id]""#,
        ),
        (r"process [0-9a-z]{8}", "process [id]"),
    ] {
        let mask = Regex::new(mask).unwrap();
        text = mask.replace_all(&text, by).into_owned();
    }
    Value::String(normalize_text(&text))
}

#[tokio::test]
async fn a_question_is_listed_and_answered() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let question = Question {
        default: Some("no".to_owned()),
        timeout: Duration::from_secs(60),
        ..Question::new(
            QuestionKind::Confirmation,
            "\u{1b}[1mOverwrite?\u{1b}[0m [y/N] ",
        )
    };
    let (process, id) = asking(&bench, &mut client, question).await;
    let listed = client.call("interaction_list", json!({})).await;
    let entry = &listed["structuredContent"]["interactions"][0];
    assert_eq!(listed["structuredContent"]["total"], 1);
    assert_eq!(entry["kind"], "confirmation");
    assert_eq!(entry["message"], "Overwrite? [y/N] ");
    assert_eq!(entry["default"], "no");
    assert_eq!(entry["execution"], process.short());
    assert!(entry["expires"].as_str() > entry["created"].as_str());
    assert!(entry.get("secret").is_none() && entry.get("options").is_none());

    let refused = json!({"id": id, "answer": "perhaps"});
    let refused = client.call("interaction_answer", refused).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["_meta"]["code"], "interaction_error");

    let answer = json!({"id": id, "answer": "yes"});
    let answered = client.call("interaction_answer", answer.clone()).await;
    assert_eq!(
        answered["structuredContent"]["status"], "answered",
        "{answered}"
    );
    ended(&bench, "s", &process.short()).await;
    let arguments = json!({"process_id": process.short(), "stream": "stdout"});
    let read = client.call("read_process_output", arguments).await;
    assert!(text(&read).contains("got y"), "{read}");

    let again = client.call("interaction_answer", answer).await;
    assert!(text(&again).contains("no longer open"), "{again}");
    let listed = client.call("interaction_list", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0);
}

/// A session has at most 32 open questions; with long messages they exceed one answer.
#[tokio::test]
async fn more_questions_than_fit_are_gone_through_by_the_cursor() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let caller = bench.caller(Some("s"));
    let mut requested = Vec::new();
    for _ in 0..32 {
        let question = Question::new(QuestionKind::InputRequest, "why? ".repeat(200));
        let interaction = bench.engine.open_interaction(&caller, question).unwrap();
        requested.insert(0, interaction.id.to_string());
    }
    let mut response: Vec<String> = Vec::new();
    let mut arguments = json!({});
    loop {
        let listed = client.call("interaction_list", arguments).await;
        let list = &listed["structuredContent"];
        assert_eq!(list["total"], 32);
        let page = list["interactions"].as_array().unwrap();
        response.extend(page.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        let left = list["omitted"].as_u64().unwrap_or_default();
        assert_eq!(response.len() as u64 + left, 32, "{list}");
        if left == 0 {
            break;
        }
        assert!(text(&listed).chars().count() <= 12_000);
        arguments = json!({"cursor": list["next"]});
    }
    assert_eq!(response, requested, "newest first, none twice");
    let bad = client
        .call("interaction_list", json!({"cursor": "i1"}))
        .await;
    assert!(text(&bad).contains("parameter 'cursor' is 'i1'"), "{bad}");
}

#[tokio::test]
async fn a_question_can_be_given_up() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let question = Question::new(QuestionKind::InputRequest, "Name: ");
    let (process, id) = asking(&bench, &mut client, question).await;
    let arguments = json!({"id": id, "cancel": true, "reason": "not needed"});
    let cancelled = client.call("interaction_answer", arguments).await;
    assert_eq!(cancelled["structuredContent"]["status"], "cancelled");
    assert_eq!(cancelled["structuredContent"]["execution"], process.short());
    let listed = client.call("interaction_list", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0);
    let arguments = json!({"process_id": process.short()});
    client.call("kill_process", arguments).await;
}

#[tokio::test]
async fn a_choice_of_many_is_listed_in_part_and_accepted_by_number() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench, "s").await;
    let question = Question {
        options: (1..=100)
            .map(|n| format!("{n}) {}", "x".repeat(300)))
            .collect(),
        ..Question::new(QuestionKind::ChoiceSelection, "Which?")
    };
    let (process, id) = asking(&bench, &mut client, question).await;
    let listed = client.call("interaction_list", json!({})).await;
    assert!(text(&listed).chars().count() <= 20_000);
    let entry = &listed["structuredContent"]["interactions"][0];
    assert_eq!(entry["options"].as_array().unwrap().len(), 20);
    assert_eq!(entry["options_omitted"], 80);
    let arguments = json!({"id": id, "answer": "77"});
    client.call("interaction_answer", arguments).await;
    ended(&bench, "s", &process.short()).await;
    let arguments = json!({"process_id": process.short(), "stream": "stdout"});
    let read = client.call("read_process_output", arguments).await;
    assert!(text(&read).contains("got 77"), "{read}");
}

#[tokio::test]
async fn secrets_are_not_taken_here() {
    let bench = ServerFixture::new().await;
    let question = || Question {
        secret: true,
        ..Question::new(QuestionKind::InputRequest, "Password: ")
    };
    let mut plain = client(&bench, "s").await;
    let (_, id) = asking(&bench, &mut plain, question()).await;
    let listed = plain.call("interaction_list", json!({})).await;
    let entry = &listed["structuredContent"]["interactions"][0];
    assert_eq!(
        (&entry["secret"], &entry["default"]),
        (&json!(true), &Value::Null)
    );
    let arguments = json!({"id": id, "answer": "hunter2"});
    let refused = plain.call("interaction_answer", arguments.clone()).await;
    insta::assert_snapshot!("secret_without_control", normalize_question(&refused));

    let tools = ToolSet::from_groups(&[ToolGroup::Core, ToolGroup::Interaction]);
    let mut core = bench.client_with("s", tools).await;
    let refused = core.call("interaction_answer", arguments).await;
    insta::assert_snapshot!("secret_with_control", normalize_question(&refused));
    let arguments = json!({"id": id, "cancel": true});
    let cancelled = core.call("interaction_answer", arguments).await;
    assert_eq!(cancelled["structuredContent"]["status"], "cancelled");
}

#[tokio::test]
async fn questions_of_others_are_not_seen() {
    let bench = ServerFixture::new().await;
    let mut one = client(&bench, "s").await;
    let mut two = client(&bench, "two").await;
    let question = Question::new(QuestionKind::InputRequest, "Name: ");
    let (_, id) = asking(&bench, &mut one, question).await;
    let listed = two.call("interaction_list", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0);
    for arguments in [json!({"answer": "me"}), json!({"cancel": true})] {
        let mut foreign = arguments.clone();
        foreign["id"] = id.clone().into();
        let mut unknown = arguments;
        unknown["id"] = "i999".into();
        let foreign = two.call("interaction_answer", foreign).await;
        let unknown = two.call("interaction_answer", unknown).await;
        assert_eq!(foreign, unknown);
        assert!(
            text(&foreign).contains("not found or access denied"),
            "{foreign}"
        );
    }
}
