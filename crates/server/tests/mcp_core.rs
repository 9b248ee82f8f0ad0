//! The three tools of profile `core`, each through whole conversations.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{Bench, Client, PATIENCE, settled, text};
use ostler_server::mcp::{GROUPS, ToolSet};
use serde_json::{Value, json};

/// The most bytes the answer to `tools/list` has in the default profile.
const TOOLS_LIST_BYTES: usize = 10_000;

async fn client(bench: &Bench) -> Client {
    bench.client_with("s", ToolSet::default()).await
}

async fn exec(client: &mut Client, script: &str, more: Value) -> Value {
    client
        .call("exec", with(json!({"script": script}), more))
        .await
}

/// Starts a script and answers its id at once.
async fn start(client: &mut Client, script: &str, more: Value) -> String {
    let result = exec(client, script, with(json!({"wait_ms": 0}), more)).await;
    assert_eq!(result["isError"], false, "{result}");
    id(&result)
}

async fn process(client: &mut Client, action: &str, more: Value) -> Value {
    client
        .call("process", with(json!({"action": action}), more))
        .await
}

async fn control(client: &mut Client, action: &str, more: Value) -> Value {
    let arguments = with(json!({"action": action}), more);
    client.call("process_control", arguments).await
}

/// The first result of a control.
async fn did(client: &mut Client, action: &str, more: Value) -> Value {
    let result = control(client, action, more).await;
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["results"][0].clone()
}

fn with(mut arguments: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

fn fields(result: &Value) -> &Value {
    &result["_meta"]["ostler/result"]
}

fn id(result: &Value) -> String {
    let id = fields(result)["id"].as_str();
    id.unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn cursor(result: &Value) -> String {
    fields(result)["cursor"].as_str().unwrap().to_owned()
}

/// The lines between the header and what follows the output.
fn output(result: &Value) -> Vec<String> {
    let text = text(result);
    let lines = text.lines();
    let lines = lines.filter(|line| !line.starts_with('[') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// An answer with what differs from run to run replaced.
fn plain(result: &Value) -> String {
    let mut text = settled(&text(result));
    for (rule, by) in [
        (r"(?m)^\[[0-9a-z]{8} ", "[ID "),
        (r#""ids":\["[0-9a-z]{8}"\]"#, r#""ids":["ID"]"#),
        (r"process [0-9a-z]{8} ", "process ID "),
        (r"\d+\.\d+s\b", "TIME"),
        (r"cursor \d+\.\d+", "cursor CURSOR"),
        (r#""cursor":"\d+\.\d+""#, r#""cursor":"CURSOR""#),
    ] {
        text = regex::Regex::new(rule)
            .unwrap()
            .replace_all(&text, by)
            .into_owned();
    }
    text
}

#[tokio::test]
async fn the_default_list_of_tools_stays_small() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let answer = client.request("tools/list", json!({})).await;
    insta::assert_json_snapshot!(answer["result"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}
    });
    let mut modern = bench.stranger_with("s", ToolSet::default());
    let listed = modern.request("tools/list", json!({"_meta": meta})).await;
    for answer in [answer, listed] {
        let bytes = answer["result"].to_string().len();
        assert!(bytes <= TOOLS_LIST_BYTES, "{bytes} bytes");
        for tool in answer["result"]["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        }
    }
}

#[tokio::test]
async fn the_hello_explains_the_tools_it_offers() {
    let bench = Bench::new().await;
    for tools in [ToolSet::default(), ToolSet::of(&GROUPS)] {
        let client = bench.client_with("s", tools).await;
        let instructions = client.hello["instructions"].as_str().unwrap();
        insta::assert_snapshot!(settled(instructions));
        client.close().await;
    }
}

#[tokio::test]
async fn answers_read_alike() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let mut told = String::new();
    for arguments in [
        json!({"command": ["echo", "a  b", "$HOME", "*"]}),
        json!({"command": ["true"]}),
        json!({"script": "echo out; echo err >&2; exit 3"}),
        json!({"script": "kill -SEGV $$"}),
        json!({"script": "echo ${BASH_VERSION:+bash}", "shell": "bash"}),
        json!({"script": "echo out; exec sleep 300", "wait_ms": 400}),
        json!({"script": "exec sleep 300", "wait_ms": 0}),
        json!({"script": "echo out; exec sleep 300", "timeout": 1}),
        json!({"script": "sleep 300 & echo started"}),
        json!({"script": "echo ready on 80; exec sleep 300", "pattern": "ready on \\d+"}),
        json!({"script": "echo quiet; exec sleep 300", "idle_ms": 100}),
    ] {
        let asked = arguments.to_string();
        let result = client.call("exec", arguments).await;
        let is_error = result["isError"] == true;
        told.push_str(&format!("{asked} {is_error}\n{}\n\n", plain(&result)));
    }
    insta::assert_snapshot!(told);
    end(&bench).await;
}

#[tokio::test]
async fn programs_read_fields() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let result = exec(&mut client, "echo out; exit 3", json!({})).await;
    insta::assert_json_snapshot!(fields(&common::stable(&result)));
    assert!(result.get("structuredContent").is_none(), "{result}");
    let result = exec(&mut client, "exec sleep 300", json!({"wait_ms": 100})).await;
    insta::assert_json_snapshot!(fields(&common::stable(&result)));
    end(&bench).await;
}

#[tokio::test]
async fn a_command_gets_what_it_was_given() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.work.path().join("sub")).unwrap();
    let mut client = client(&bench).await;
    let script = "cat; echo $MINE; pwd; printf '\\304\\343\\n'";
    let more = json!({
        "stdin": "given\n", "env": {"MINE": "set"}, "cwd": "sub", "encoding": "gbk"
    });
    let result = exec(&mut client, script, more).await;
    let directory = format!("{}/sub", bench.directory());
    assert_eq!(output(&result), ["given", "set", &directory, "你"]);
    let result = exec(&mut client, "pwd; cat", json!({})).await;
    assert_eq!(output(&result), [bench.directory()]);
}

#[tokio::test]
async fn waiting_for_nothing_answers_at_once() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let begun = Instant::now();
    let id = start(&mut client, "exec sleep 300", json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    let result = process(&mut client, "detail", json!({"ids": [id]})).await;
    assert_eq!(
        result["structuredContent"]["processes"][0]["status"],
        "running"
    );
    end(&bench).await;
}

#[tokio::test]
async fn no_line_is_lost_or_doubled_between_two_answers() {
    const LINES: u32 = 4_000;
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = format!(
        "i=0; while [ $i -lt {LINES} ]; do echo $i; [ $((i % 200)) = 0 ] && printf half && \
         read -r line; i=$((i+1)); done"
    );
    let more = json!({"input": "open", "wait_ms": 50});
    let mut result = exec(&mut client, &script, more).await;
    let id = id(&result);
    let mut seen = Vec::new();
    while fields(&result)["status"] == "running" {
        take(&mut seen, &result);
        // It may just have ended.
        control(&mut client, "write", json!({"ids": [id], "text": ""})).await;
        let more = json!({"ids": [id], "cursor": cursor(&result), "wait_ms": 20});
        result = process(&mut client, "wait", more).await;
        let next = cursor(&result);
        // What came in between is read in a second answer, as any other.
        take(&mut seen, &result);
        let more = json!({"ids": [id], "cursor": next});
        result = process(&mut client, "output", more).await;
    }
    take(&mut seen, &result);
    let expected: Vec<u32> = (0..LINES).collect();
    assert_eq!(seen, expected);
}

/// The numbers of finished lines.
fn take(seen: &mut Vec<u32>, result: &Value) {
    assert!(fields(result).get("stdout_omitted").is_none(), "{result}");
    for line in output(result) {
        seen.extend(line.trim_start_matches("half").parse::<u32>());
    }
}

#[tokio::test]
async fn an_answer_comes_with_the_first_of_several() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        let script = format!("read -r line; echo {name} $line");
        ids.push(start(&mut client, &script, json!({"input": "open"})).await);
    }
    did(
        &mut client,
        "write",
        json!({"ids": [ids[1]], "text": "now"}),
    )
    .await;
    let result = process(&mut client, "wait", json!({"ids": ids})).await;
    assert_eq!(output(&result), ["two now"], "{result}");
    let states: Vec<&Value> = fields(&result)["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["status"])
        .collect();
    assert_eq!(states, ["running", "completed", "running"]);

    let result = process(
        &mut client,
        "wait",
        json!({"ids": ids, "all": true, "wait_ms": 50}),
    )
    .await;
    assert_eq!(output(&result), ["two now"], "{result}");
    let more = json!({"ids": [ids[0], ids[2]], "text": "all"});
    control(&mut client, "write", more).await;
    let result = process(&mut client, "wait", json!({"ids": ids, "all": true})).await;
    let shown: Vec<String> = output(&result)
        .into_iter()
        .filter(|l| !l.is_empty())
        .collect();
    assert_eq!(shown, ["one all", "two now", "three all"], "{result}");
    assert!(text(&result).matches(" exit 0, ").count() == 3, "{result}");
}

#[tokio::test]
async fn a_wait_for_a_pattern_sees_what_comes_later() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "while read -r line; do echo did $line; done";
    let more = json!({"input": "open", "wait_ms": 0});
    let begun = exec(&mut client, script, more).await;
    let id = id(&begun);
    let params = json!({"name": "process", "arguments": {
        "action": "wait", "ids": [id], "pattern": "^did second$", "wait_ms": 40_000
    }});
    let waiting = client.send("tools/call", params).await;
    for line in ["first", "second"] {
        let arguments = json!({"action": "write", "ids": [id], "text": line});
        let params = json!({"name": "process_control", "arguments": arguments});
        client.send("tools/call", params).await;
    }
    let answer = client.answer(waiting).await;
    let result = &answer["result"];
    assert_eq!(fields(result)["why"], "pattern", "{result}");
    assert!(
        text(result).contains("[pattern matched: did second]"),
        "{result}"
    );

    let more = json!({
        "ids": [id], "pattern": "^did second$", "cursor": cursor(result), "wait_ms": 100
    });
    let result = process(&mut client, "wait", more).await;
    assert_eq!(
        fields(&result)["why"],
        "time",
        "only what came after the cursor counts: {result}"
    );
    end(&bench).await;
}

#[tokio::test]
async fn a_conversation_with_an_interpreter() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let begun = client
        .call(
            "exec",
            json!({"command": ["bc", "-q"], "input": "open", "wait_ms": 0}),
        )
        .await;
    let id = id(&begun);
    let mut at = cursor(&begun);
    for (text, answer) in [("6*7", "42"), ("2^64\n", "18446744073709551616")] {
        let more = json!({"ids": [id], "text": text});
        did(&mut client, "write", more).await;
        let more = json!({"ids": [id], "pattern": "^\\d+$", "cursor": at});
        let result = process(&mut client, "wait", more).await;
        assert_eq!(output(&result), [answer], "{result}");
        at = cursor(&result);
    }
    assert_eq!(
        did(&mut client, "close_input", json!({"ids": [id]})).await["result"],
        "input closed"
    );
    let result = process(&mut client, "wait", json!({"ids": [id], "cursor": at})).await;
    assert!(text(&result).contains(" exit 0, "), "{result}");
}

#[tokio::test]
async fn a_conversation_in_one_call_per_turn() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let command = json!({"command": ["bc", "-q"], "input": "open"});
    let begun = client.call("exec", command).await;
    assert_eq!(fields(&begun)["why"], "prompt", "{begun}");
    let id = id(&begun);
    for (text, answer) in [("6*7", "42"), ("last+1", "43")] {
        let more = json!({"ids": [id], "text": text, "wait_ms": 10_000});
        let result = control(&mut client, "write", more).await;
        assert_eq!(output(&result), [answer], "{result}");
        assert_eq!(fields(&result)["why"], "prompt", "{result}");
    }
    let more = json!({"ids": [id], "text": "quit", "wait_ms": 10_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains(" exit 0, "), "{result}");
}

#[tokio::test]
async fn python_answers_as_if_typed_at() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let command = json!({"command": ["python3", "-i", "-q", "-u"], "input": "open"});
    let begun = client.call("exec", command).await;
    let id = id(&begun);
    let more = json!({"ids": [id], "text": "print(6*7)", "wait_ms": 10_000});
    let result = control(&mut client, "write", more).await;
    assert_eq!(output(&result)[0], "42", "{result}");
    let more = json!({"ids": [id], "text": "raise SystemExit(3)", "wait_ms": 10_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains(" exit 3, "), "{result}");
}

#[tokio::test]
async fn a_prompt_comes_back_with_how_to_answer() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "printf 'Continue? [y/N] '; read -r answer; echo got $answer";
    let result = exec(
        &mut client,
        script,
        json!({"input": "open", "until": "prompt"}),
    )
    .await;
    insta::assert_snapshot!(plain(&result));
    assert_eq!(fields(&result)["prompt"]["secret"], false, "{result}");
    let id = id(&result);
    let listed = process(&mut client, "list", json!({})).await;
    let listed = &listed["structuredContent"]["processes"][0];
    assert_eq!(listed["waiting_for_input"], "Continue? [y/N] ", "{listed}");
    did(&mut client, "write", json!({"ids": [id], "text": "y"})).await;
    let more = json!({"ids": [id], "cursor": cursor(&result)});
    let result = process(&mut client, "wait", more).await;
    assert!(text(&result).contains("got y"), "{result}");
    let result = exec(&mut client, script, json!({"until": "prompt"})).await;
    assert_eq!(
        fields(&result)["why"],
        "exit",
        "at end of file nothing is asked: {result}"
    );
}

#[tokio::test]
async fn a_line_to_be_told_of_comes_with_a_later_answer() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "while read -r line; do echo did $line; done";
    let more = json!({"input": "open", "wait_ms": 0, "notify": "^did it$"});
    let id = id(&exec(&mut client, script, more).await);
    let told = did(
        &mut client,
        "notify",
        json!({"ids": [id], "pattern": "^did that$"}),
    )
    .await;
    assert_eq!(told["result"], "you will be told when a line matches");
    let mut news = String::new();
    for line in ["this", "it", "that"] {
        let result = control(&mut client, "write", json!({"ids": [id], "text": line})).await;
        news.push_str(&told_besides(&result));
    }
    let begun = Instant::now();
    while !(news.contains("did it") && news.contains("did that")) {
        assert!(begun.elapsed() < PATIENCE, "{news}");
        let result = process(&mut client, "list", json!({})).await;
        news.push_str(&told_besides(&result));
    }
    assert_eq!(
        news.matches("[news: ").count(),
        news.lines().count(),
        "{news}"
    );
    end(&bench).await;
}

#[tokio::test]
async fn a_cancelled_call_takes_its_tree_along() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "sleep 300 & echo $! >> pids; setsid sleep 300 & echo $! >> pids; \
                  echo $$ >> pids; mv pids begun; wait";
    let params = json!({"name": "exec", "arguments": {"script": script, "wait_ms": 40_000}});
    let call = client.send("tools/call", params).await;
    let begun = bench.work.path().join("begun");
    appeared(&begun).await;
    client
        .notify("notifications/cancelled", json!({"requestId": call}))
        .await;
    running(&bench, 0).await;
    let pids = std::fs::read_to_string(&begun).unwrap();
    assert_eq!(pids.lines().count(), 3);
    for pid in pids.lines() {
        assert!(!lives(pid), "{pid} is still there");
    }
}

#[tokio::test]
async fn a_stubborn_tree_is_stopped_all_the_same() {
    let bench = Bench::with(|settings| settings.grace = Duration::from_millis(300)).await;
    let mut client = client(&bench).await;
    let script = "trap '' TERM INT; (setsid sh -c 'trap \"\" TERM; echo $$ >> pids; \
                  mv pids begun; while :; do sleep 1; done') & echo $$ >> pids; \
                  while :; do sleep 1; done";
    let id = start(&mut client, script, json!({})).await;
    let begun = bench.work.path().join("begun");
    appeared(&begun).await;
    let more = json!({"ids": [id], "reason": "enough"});
    let told = did(&mut client, "stop", more).await;
    assert_eq!(told["signal"], "SIGKILL", "{told}");
    assert_eq!(told["status"], "terminated", "{told}");
    assert!(
        told["result"].as_str().unwrap().contains("enough"),
        "{told}"
    );
    assert!(told.get("survivors").is_none(), "{told}");
    for pid in std::fs::read_to_string(&begun).unwrap().lines() {
        assert!(!lives(pid), "{pid} is still there");
    }
    let again = did(&mut client, "stop", json!({"ids": [id]})).await;
    assert!(
        again["result"]
            .as_str()
            .unwrap()
            .starts_with("it had ended"),
        "{again}"
    );
}

#[tokio::test]
async fn ten_at_once() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let mut calls = Vec::new();
    for number in 0..10 {
        let script = format!("touch {number}; until [ -e 9 ]; do :; done; echo {number}");
        let params = json!({"name": "exec", "arguments": {"script": script}});
        calls.push((number, client.send("tools/call", params).await));
    }
    for (number, result) in client.answers(calls).await {
        assert_eq!(output(&result), [number.to_string()], "{result}");
    }
}

#[tokio::test]
async fn one_failure_among_several_ids_is_told_beside_the_others() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let runs = start(&mut client, "exec sleep 300", json!({})).await;
    let over = id(&exec(&mut client, "echo over", json!({})).await);
    let ids = json!({"ids": [runs, "zzzzzzzz", over]});
    let result = control(&mut client, "clean", ids.clone()).await;
    let results = result["structuredContent"]["results"].as_array().unwrap();
    let told: Vec<&str> = results
        .iter()
        .map(|it| it["result"].as_str().unwrap())
        .collect();
    assert_eq!(
        told,
        [
            "failed: it is still running; stop it first",
            "failed: Process not found or access denied",
            "success",
        ]
    );
    assert_eq!(result["isError"], false);
    let same: Value = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(same, result["structuredContent"]);
    let result = control(&mut client, "stop", json!({"ids": ["zzzzzzzz", over]})).await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["code"], "process_not_found");
    end(&bench).await;
}

#[tokio::test]
async fn signals_input_and_output_are_controlled() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "trap 'echo usr1' USR1; echo on; while :; do read -r line && echo got $line; done";
    let result = exec(
        &mut client,
        script,
        json!({"input": "open", "pattern": "on"}),
    )
    .await;
    let id = id(&result);
    let told = did(
        &mut client,
        "signal",
        json!({"ids": [id], "signal": "usr1"}),
    )
    .await;
    assert_eq!(told["result"], "SIGUSR1 sent");
    let result = process(&mut client, "wait", json!({"ids": [id], "pattern": "usr1"})).await;
    assert_eq!(fields(&result)["why"], "pattern");
    let more = json!({"ids": [id], "text": "a", "enter": false});
    assert_eq!(
        did(&mut client, "write", more).await["result"],
        "1 bytes written"
    );
    did(&mut client, "write", json!({"ids": [id], "text": "b"})).await;
    let result = process(
        &mut client,
        "wait",
        json!({"ids": [id], "pattern": "got ab"}),
    )
    .await;
    assert_eq!(fields(&result)["why"], "pattern", "{result}");
    let told = did(&mut client, "clear_output", json!({"ids": [id]})).await;
    assert!(
        told["result"].as_str().unwrap().ends_with("dropped"),
        "{told}"
    );
    let result = process(&mut client, "output", json!({"ids": [id]})).await;
    assert!(output(&result).is_empty(), "{result}");
    did(&mut client, "stop", json!({"ids": [id], "force": true})).await;
}

#[tokio::test]
async fn output_is_read_in_parts() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "seq 1 50; printf '\\033[31mred\\033[0m\\n'; echo err >&2";
    let id = id(&exec(&mut client, script, json!({})).await);
    let mut read = async |more: Value| {
        let result = process(&mut client, "output", with(json!({"ids": [id]}), more)).await;
        assert_eq!(result["isError"], false, "{result}");
        let text = text(&result);
        text.split_once('\n')
            .map_or_else(String::new, |(_, rest)| rest.to_owned())
    };
    assert_eq!(read(json!({"tail": 2})).await, "red\n[stderr]\nerr");
    assert_eq!(
        read(json!({"tail": 2, "stream": "stdout"})).await,
        "50\nred"
    );
    assert_eq!(read(json!({"stream": "stderr"})).await, "[stderr]\nerr");
    assert_eq!(read(json!({"grep": "^4[89]$"})).await, "48\n49");
    assert_eq!(
        read(json!({"since": "10m", "tail": 1})).await,
        "[stderr]\nerr"
    );
    assert_eq!(read(json!({"since": "2099-01-01T00:00:00Z"})).await, "");
    let raw = read(json!({"raw": true, "stream": "stdout", "cursor": "141"})).await;
    assert_eq!(raw, "\u{1b}[31mred\u{1b}[0m\n");
}

#[tokio::test]
async fn raw_output_is_read_on_without_splitting_a_character() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "i=0; while [ $i -lt 700 ]; do printf '你好é'; i=$((i+1)); done";
    let id = id(&exec(&mut client, script, json!({})).await);
    let mut all = String::new();
    let mut at = "0".to_owned();
    loop {
        let more = json!({"ids": [id], "raw": true, "cursor": at, "max_chars": 2000});
        let result = process(&mut client, "output", more).await;
        let text = text(&result);
        assert!(text.chars().count() <= 2000, "{}", text.chars().count());
        let body = text.lines().find(|line| !line.starts_with('['));
        all.push_str(body.unwrap());
        at = cursor(&result);
        if fields(&result)["more"] == false {
            break;
        }
    }
    assert_eq!(all, "你好é".repeat(700));
}

#[tokio::test]
async fn answers_stay_within_the_size_asked_for() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let script = "seq 1 100000; seq 1 100000 >&2; exec sleep 300";
    for max_chars in [2_000, 5_000, 20_000] {
        let more = json!({"max_chars": max_chars, "idle_ms": 300});
        let result = exec(&mut client, script, more).await;
        let chars = text(&result).chars().count();
        assert!(
            chars <= max_chars && chars > max_chars / 3,
            "{chars} of {max_chars}"
        );
        assert_eq!(links(&result), [format!("proc://{}/log", id(&result))]);
        assert!(fields(&result)["stdout_omitted"]["lines"].as_u64().unwrap() > 90_000);
    }
    let ids: Vec<Value> =
        process(&mut client, "list", json!({})).await["structuredContent"]["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].clone())
            .collect();
    for max_chars in [20_000, 4_000, 2_000] {
        let more = json!({"ids": ids, "max_chars": max_chars});
        let result = process(&mut client, "output", more).await;
        let chars = text(&result).chars().count();
        assert!(chars <= max_chars && chars > max_chars / 3, "{chars}");
    }
    end(&bench).await;
}

#[tokio::test]
async fn lists_and_details_are_structured() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let more = json!({"description": "a server", "labels": ["web", "dev"]});
    let id = start(&mut client, "exec sleep 300", more).await;
    exec(&mut client, "exit 7", json!({})).await;
    let result = process(&mut client, "list", json!({})).await;
    assert_eq!(result["structuredContent"]["total"], 2);
    assert_eq!(result["structuredContent"]["running"], 1);
    let result = process(&mut client, "list", json!({"labels": ["web"]})).await;
    insta::assert_json_snapshot!(common::stable(&result)["structuredContent"]);
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
async fn what_is_kept_outlives_its_session() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let kept = start(&mut client, "exec sleep 300", json!({"keep": true})).await;
    let ends = start(&mut client, "exec sleep 300", json!({})).await;
    let session = bench.caller(Some("s"));
    bench.engine.end_session(&session).await.unwrap();
    let principal = bench.caller(None);
    assert!(
        !bench
            .engine
            .info(&principal, &kept)
            .unwrap()
            .state
            .is_finished()
    );
    assert!(bench.engine.info(&principal, &ends).is_err());
    let stop = ostler_engine::StopRequest {
        force: true,
        ..Default::default()
    };
    bench.engine.stop(&principal, &kept, stop).await.unwrap();
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let bench = Bench::new().await;
    let mut one = client(&bench).await;
    let mut two = bench.client_with("other", ToolSet::default()).await;
    let id = start(&mut one, "exec sleep 300", json!({})).await;
    for action in ["output", "wait", "detail"] {
        let foreign = process(&mut two, action, json!({"ids": [id]})).await;
        let unknown = process(&mut two, action, json!({"ids": ["zzzzzzzz"]})).await;
        let (foreign, unknown) = (text(&foreign), text(&unknown));
        assert_eq!(
            foreign.replace(&id, "ID"),
            unknown.replace("zzzzzzzz", "ID")
        );
        assert!(
            foreign.contains("Process not found or access denied"),
            "{foreign}"
        );
    }
    for action in ["stop", "clean", "close_input", "clear_output"] {
        let foreign = control(&mut two, action, json!({"ids": [id]})).await;
        assert_eq!(
            foreign["_meta"]["code"], "process_not_found",
            "{action} {foreign}"
        );
    }
    let listed = process(&mut two, "list", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0);
    end(&bench).await;
}

/// A tool and what is wrong with its arguments.
const BAD_CALLS: &str = r#"
exec {}
exec {"command": ["ls"], "script": "ls"}
exec {"command": "ls -l"}
exec {"command": []}
exec {"command": [""]}
exec {"command": ["ls", 7]}
exec {"command": ["no-such-program"]}
exec {"command": ["ls -l"]}
exec {"command": ["ls"], "shell": "bash"}
exec {"script": ["ls"]}
exec {"script": "ls", "shell": "no-such-shell"}
exec {"script": "ls", "cwd": ""}
exec {"script": "ls", "cwd": "missing"}
exec {"script": "ls", "directory": "/"}
exec {"script": "ls", "stdin": "a", "input": "open"}
exec {"script": "ls", "input": "closed"}
exec {"script": "ls", "wait_ms": -1}
exec {"script": "ls", "wait_ms": "10"}
exec {"script": "ls", "timeout": 0}
exec {"script": "ls", "until": "soon"}
exec {"script": "ls", "until": "pattern"}
exec {"script": "ls", "until": "exit", "pattern": "a"}
exec {"script": "ls", "until": "pattern", "pattern": "a", "idle_ms": 5}
exec {"script": "ls", "pattern": "a(b"}
exec {"script": "ls", "notify": "["}
exec {"script": "ls", "network": ["a.org"]}
exec {"script": "ls", "isolation": "high", "network": ["https://a.org"]}
exec {"script": "ls", "isolation": "high", "network": 7}
exec {"script": "ls", "workspace": "overlay"}
exec {"script": "ls", "allow_degraded": ["moat"]}
exec {"script": "ls", "secrets": ["NOBODY_HAS_IT"]}
exec {"script": "ls", "limits": {"ram": "1G", "memory": "much"}}
exec {"script": "ls", "limits": {"pids": [1]}}
exec {"script": "ls", "isolation": "container"}
exec {"script": "ls", "isolation": "total"}
exec {"script": "ls", "encoding": "klingon"}
exec {"script": "ls", "max_chars": 100}
exec {"script": "ls", "on_prompt": "guess"}
exec {"script": "ls", "env": {"A=B": "c"}}
process {}
process {"action": "kill"}
process {"action": "list", "ids": ["zzzzzzzz"]}
process {"action": "output"}
process {"action": "output", "ids": []}
process {"action": "output", "ids": "zzzzzzzz"}
process {"action": "output", "ids": ["zzzzzzzz"]}
process {"action": "output", "ids": ["not an id"]}
process {"action": "output", "ids": ["zzzzzzzz", "yyyyyyyy"], "cursor": "0"}
process {"action": "output", "ids": ["zzzzzzzz"], "cursor": "end"}
process {"action": "output", "ids": ["zzzzzzzz"], "since": "yesterday"}
process {"action": "output", "ids": ["zzzzzzzz"], "raw": true, "tail": 3}
process {"action": "output", "ids": ["zzzzzzzz"], "wait_ms": 3}
process {"action": "wait", "ids": ["zzzzzzzz"], "until": "soon"}
process {"action": "detail", "ids": ["zzzzzzzz"], "tail": 3}
process_control {"action": "write", "ids": ["zzzzzzzz"]}
process_control {"action": "write", "ids": ["zzzzzzzz"], "text": "a"}
process_control {"action": "signal", "ids": ["zzzzzzzz"], "signal": "LOUD"}
process_control {"action": "stop"}
process_control {"action": "stop", "ids": ["zzzzzzzz"], "signal": "KILL"}
process_control {"action": "notify", "ids": ["zzzzzzzz"], "pattern": "("}
"#;

#[tokio::test]
async fn bad_input_says_what_where_and_what_is_allowed() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let mut told = String::new();
    let calls = BAD_CALLS.trim().lines();
    for (tool, arguments) in calls.filter_map(|line| line.split_once(' ')) {
        let given: Value = serde_json::from_str(arguments).unwrap();
        let result = client.call(tool, given).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let code = result["_meta"]["code"].as_str().unwrap();
        assert!(text(&result).starts_with(&format!("{code}: ")), "{result}");
        let said = settled(&text(&result).replace(&bench.directory(), "[directory]"));
        told.push_str(&format!(
            "{tool} {arguments}\n  {}\n",
            said.replace('\n', "\n  ")
        ));
    }
    let filter = ostler_engine::ListFilter::default();
    assert!(bench.engine.list(&bench.caller(None), &filter).is_empty());
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn what_has_no_input_says_how_to_get_one() {
    let bench = Bench::new().await;
    let mut client = client(&bench).await;
    let id = start(&mut client, "exec sleep 300", json!({})).await;
    let result = control(&mut client, "write", json!({"ids": [id], "text": "a"})).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("input \"open\""), "{result}");
    did(&mut client, "stop", json!({"ids": [id], "force": true})).await;
    let result = control(&mut client, "write", json!({"ids": [id], "text": "a"})).await;
    assert!(text(&result).contains("the process has ended"), "{result}");
}

/// What an answer tells of besides.
fn told_besides(result: &Value) -> String {
    let text = text(result);
    let news = text.lines().filter(|line| line.starts_with("[news: "));
    news.map(|line| format!("{line}\n")).collect()
}

/// The resources an answer points at.
fn links(result: &Value) -> Vec<String> {
    let blocks = result["content"].as_array().unwrap().iter();
    let links = blocks.filter(|block| block["type"] == "resource_link");
    links
        .map(|link| link["uri"].as_str().unwrap().to_owned())
        .collect()
}

/// Ends what a test leaves running.
async fn end(bench: &Bench) {
    let session = bench.caller(Some("s"));
    bench.engine.end_session(&session).await.unwrap();
}

/// Waits until as many executions run.
async fn running(bench: &Bench, count: u64) {
    let mut activity = bench.engine.activity();
    let reached = activity.wait_for(|&running| running == count);
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    reached.expect("in time").unwrap();
}

/// Waits until a file is there.
async fn appeared(path: &Path) {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    while !path.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} never came", path.display());
        ticks.tick().await;
    }
}

/// Whether a process is there and no zombie.
fn lives(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
