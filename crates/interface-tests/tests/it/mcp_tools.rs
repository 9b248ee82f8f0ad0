//! The seven tools, each through a whole conversation.

use crate::common::{ServerFixture, normalize, normalize_text, text};
use serde_json::{Value, json};

#[tokio::test]
async fn the_list_of_tools_is_small_and_closed() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let answer = client.request("tools/list", json!({})).await;
    let tools = &answer["result"]["tools"];
    let bytes = tools.to_string().len();
    assert!(bytes <= 10_000, "{bytes} bytes");
    assert!(!tools.to_string().contains("\"format\""));
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    }
    insta::assert_json_snapshot!(tools);
}

#[tokio::test]
async fn the_hello_says_who_and_where() {
    let bench = ServerFixture::new().await;
    let client = bench.client("s").await;
    let hello = &client.hello;
    assert_eq!(hello["serverInfo"]["name"], "ostler");
    assert_eq!(hello["capabilities"]["tools"], json!({}));
    let instructions = hello["instructions"].as_str().unwrap();
    assert!(instructions.len() <= 1_024, "{}", instructions.len());
    insta::assert_snapshot!(normalize_text(instructions));
}

#[tokio::test]
async fn execute_answers_output_exit_code_and_time() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client
        .execute("echo out; echo err >&2; exit 3", json!({}))
        .await;
    insta::assert_json_snapshot!(normalize(&result));
}

#[tokio::test]
async fn execute_interprets_nothing() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let arguments = json!({
        "command": "printf", "args": ["%s\n", "$(id)", ";", "`rm`", "*", "a b", "\"q\""],
        "directory": bench.directory()
    });
    let result = client.call("command_execute", arguments).await;
    assert!(
        text(&result).starts_with("$(id)\n;\n`rm`\n*\na b\n\"q\"\n"),
        "{}",
        text(&result)
    );
}

#[tokio::test]
async fn execute_passes_stdin_variables_and_directory() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let more = json!({"stdin": "from stdin\n", "envs": {"MINE": "set"}, "directory": "."});
    let result = client.execute("cat; echo $MINE; pwd", more).await;
    let expected = format!("from stdin\nset\n{}\n", bench.directory());
    assert!(text(&result).starts_with(&expected), "{}", text(&result));
}

#[tokio::test]
async fn execute_without_stdin_reads_its_end() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client.execute("cat; echo done", json!({})).await;
    assert!(text(&result).starts_with("done\n"), "{}", text(&result));
}

#[tokio::test]
async fn execute_ends_at_its_timeout_with_the_output_so_far() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client
        .execute("echo before; sleep 300", json!({"timeout": 1}))
        .await;
    insta::assert_json_snapshot!(normalize(&result));
}

#[tokio::test]
async fn execute_tells_a_signal_from_a_code() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client.execute("kill -SEGV $$", json!({})).await;
    assert_eq!(result["isError"], false);
    assert!(
        text(&result).contains("exit_code: null (ended by SIGSEGV)"),
        "{}",
        text(&result)
    );
    assert_eq!(result["_meta"]["ostler/result"]["exit_code"], Value::Null);
}

#[tokio::test]
async fn execute_decodes_on_reading() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let script = r"printf '\304\343'; printf '\272'; printf '\303\n'";
    let result = client.execute(script, json!({"encoding": "gbk"})).await;
    assert!(text(&result).starts_with("你好\n"), "{}", text(&result));
    let script = r"printf 'h\000i\000\012\000\140\117\012\000'";
    let result = client
        .execute(script, json!({"encoding": "utf-16le"}))
        .await;
    assert!(text(&result).starts_with("hi\n你\n"), "{}", text(&result));
}

#[tokio::test]
async fn long_output_is_cut_counted_and_can_be_read_on() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client.execute("seq 1 100000", json!({})).await;
    let shown = text(&result);
    assert!(shown.chars().count() <= 20_000, "{}", shown.chars().count());
    assert!(
        shown.starts_with("1\n2\n3\n") && shown.contains("\n100000\n"),
        "{shown}"
    );
    let omitted = &result["_meta"]["ostler/result"]["stdout_omitted"];
    let numbers = shown.lines().filter(|line| line.parse::<u32>().is_ok());
    assert_eq!(
        numbers.count() as u64 + omitted["lines"].as_u64().unwrap(),
        100_000
    );

    let kept: usize = shown
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .map(|line| line.len() + 1)
        .sum();
    assert_eq!(kept as u64 + omitted["bytes"].as_u64().unwrap(), 588_895);

    let pid = result["_meta"]["ostler/result"]["id"].as_str().unwrap();
    let head = shown.lines().take_while(|line| !line.contains("omitted"));
    let head = head
        .filter_map(|line| line.parse::<u32>().ok())
        .last()
        .unwrap();
    let arguments = json!({
        "pid": pid, "since": omitted["cursor"], "add_time_prefix": false, "limit_lines": 3
    });
    let more = client.call("command_ps_logs", arguments).await;
    let next = more["content"][0]["text"].as_str().unwrap();
    assert!(next.starts_with(&format!("{}\n", head + 1)), "{next}");
}

#[tokio::test]
async fn both_streams_share_a_reply() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client
        .execute("seq 1 100000; seq 1 100000 >&2", json!({}))
        .await;
    let shown = text(&result);
    assert!(shown.chars().count() <= 20_000, "{}", shown.chars().count());
    let fields = &result["_meta"]["ostler/result"];
    for stream in ["stdout", "stderr"] {
        let omitted = &fields[format!("{stream}_omitted")];
        assert!(omitted["bytes"].as_u64().unwrap() > 500_000, "{fields}");
        assert!(omitted["lines"].as_u64().unwrap() > 90_000, "{fields}");
    }
}

#[tokio::test]
async fn redraws_and_colours_do_not_reach_the_reply() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let script = r"i=0; while [ $i -lt 10000 ]; do printf '\rat %5d of 10000 [##########################]' $i; i=$((i+1)); done; printf '\r\033[32mdone\033[0m\033[K\n'";
    let result = client.execute(script, json!({})).await;
    assert_eq!(result["content"][0]["text"], "done", "{}", text(&result));
}

#[tokio::test]
async fn a_huge_line_is_shown_by_its_ends() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let script = "printf begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end; echo after";
    let result = client.execute(script, json!({})).await;
    let shown = result["content"][0]["text"].as_str().unwrap();
    assert!(shown.starts_with("beginxxx"), "{shown}");
    assert!(shown.contains("a line of 3000009 bytes"), "{shown}");
    assert!(shown.ends_with("xxxend\nafter"), "{shown}");
}

#[tokio::test]
async fn blocks_hold_limit_lines() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client
        .execute("seq 1 5; echo e >&2", json!({"limit_lines": 2}))
        .await;
    let blocks = result["content"].as_array().unwrap();
    let texts: Vec<&str> = blocks.iter().map(|b| b["text"].as_str().unwrap()).collect();
    assert_eq!(texts[..4], ["1\n2", "3\n4", "5", "[stderr]\ne"]);
}

#[tokio::test]
async fn leftovers_are_ended_and_reported() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let result = client.execute("sleep 300 & echo started", json!({})).await;
    let shown = text(&result);
    assert!(
        shown.contains("1 processes it left behind were ended"),
        "{shown}"
    );
    assert_eq!(result["isError"], false);
}

#[tokio::test]
async fn a_background_process_lives_its_life() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let arguments = client.script(
        "echo one; echo two >&2; exec sleep 300",
        json!({"description": "a server", "labels": ["web", "dev"]}),
    );
    let started = client.call("command_bg_start", arguments).await;
    insta::assert_json_snapshot!("started", normalize(&started));
    let pid = started["structuredContent"]["pid"]
        .as_str()
        .unwrap()
        .to_owned();

    let arguments = json!({"labels": ["web", "dev"], "status": "running"});
    let listed = client.call("command_ps_list", arguments).await;
    insta::assert_json_snapshot!("listed", normalize(&listed));

    let logs = client
        .call("command_ps_logs", json!({"pid": pid, "with_stderr": true}))
        .await;
    insta::assert_json_snapshot!("logs", normalize(&logs));

    let detail = client.call("command_ps_detail", json!({"pid": pid})).await;
    insta::assert_json_snapshot!("detail", normalize(&detail));

    let refused = client
        .call("command_ps_clean", json!({"pids": [pid, "zzzzzzzz"]}))
        .await;
    insta::assert_json_snapshot!("not_cleaned", normalize(&refused));

    let arguments = json!({"pid": pid, "reason": "enough"});
    let stopped = client.call("command_ps_stop", arguments).await;
    insta::assert_json_snapshot!("stopped", normalize(&stopped));

    let cleaned = client
        .call("command_ps_clean", json!({"pids": [pid]}))
        .await;
    insta::assert_json_snapshot!("cleaned", normalize(&cleaned));
    let gone = client.call("command_ps_detail", json!({"pid": pid})).await;
    insta::assert_json_snapshot!("gone", normalize(&gone));
}

#[tokio::test]
async fn status_tools_say_the_same_twice() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("exit 0", json!({})).await;
    client.wait_end(&pid).await;
    for (tool, arguments) in [
        ("command_ps_list", json!({})),
        ("command_ps_detail", json!({"pid": pid})),
        ("command_ps_stop", json!({"pid": pid})),
        ("command_ps_clean", json!({"pids": [pid]})),
    ] {
        let result = client.call(tool, arguments).await;
        let text: Value = serde_json::from_str(&text(&result)).unwrap();
        assert_eq!(text, result["structuredContent"], "{tool}");
    }
}

#[tokio::test]
async fn logs_by_tail_grep_and_time() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client
        .start("seq 1 50; echo 'key=value other=thing'", json!({}))
        .await;
    client.wait_end(&pid).await;
    let mut logs = async |more: Value| {
        let mut arguments = json!({"pid": pid, "add_time_prefix": false});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let result = client.call("command_ps_logs", arguments).await;
        let blocks = result["content"].as_array().unwrap();
        let last = blocks.len() - 1;
        let texts: Vec<&str> = blocks[..last]
            .iter()
            .map(|b| b["text"].as_str().unwrap())
            .collect();
        texts.join("\n")
    };
    assert_eq!(logs(json!({"tail": 2})).await, "50\nkey=value other=thing");
    assert_eq!(logs(json!({"grep": "^4[0-2]$"})).await, "40\n41\n42");
    let content = json!({"grep": r"\w+(?==thing)", "grep_mode": "content"});
    assert_eq!(logs(content).await, "other");
    assert_eq!(logs(json!({"until": "1h"})).await, "");
    assert_eq!(
        logs(json!({"since": "10m", "tail": 1})).await,
        "key=value other=thing"
    );
    assert_eq!(logs(json!({"since": "2099-01-01T00:00:00"})).await, "");
    assert_eq!(logs(json!({"tail": 0})).await, "");
}

#[tokio::test]
async fn logs_carry_times_as_requested() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("echo line", json!({})).await;
    client.wait_end(&pid).await;
    let result = client.call("command_ps_logs", json!({"pid": pid})).await;
    assert_eq!(
        normalize_text(&text(&result)),
        "[time] line\n-----\n[status: completed, exit code 0]"
    );
    let arguments = json!({"pid": pid, "time_prefix_format": "%Y|"});
    let result = client.call("command_ps_logs", arguments).await;
    let year = jiff::Zoned::now().year();
    assert!(
        text(&result).starts_with(&format!("{year}| line")),
        "{}",
        text(&result)
    );
}

#[tokio::test]
async fn following_collects_until_the_end() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client
        .start("echo a; read -r line; echo b", json!({"stdin": "x\n"}))
        .await;
    let arguments = json!({"pid": pid, "follow_seconds": 45, "add_time_prefix": false});
    let result = client.call("command_ps_logs", arguments).await;
    assert_eq!(
        text(&result),
        "a\nb\n-----\n[status: completed, exit code 0]"
    );
}

#[tokio::test]
async fn following_nothing_answers_at_once() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("exec sleep 300", json!({})).await;
    let arguments = json!({"pid": pid, "follow_seconds": 0});
    let result = client.call("command_ps_logs", arguments).await;
    let expected = "[no output matches]\n[status: running; later output: since=[cursor]]";
    assert_eq!(normalize_text(&text(&result)), expected);
    client
        .call("command_ps_stop", json!({"pid": pid, "force": true}))
        .await;
}

#[tokio::test]
async fn a_timed_out_background_process_is_terminated() {
    let bench = ServerFixture::new().await;
    let mut client = bench.client("s").await;
    let pid = client.start("exec sleep 300", json!({"timeout": 1})).await;
    client.wait_end(&pid).await;
    let detail = client.call("command_ps_detail", json!({"pid": pid})).await;
    let detail = &detail["structuredContent"];
    assert_eq!(detail["status"], "terminated");
    assert_eq!(detail["exit_code"], Value::Null);
    assert!(
        detail["error_message"]
            .as_str()
            .unwrap()
            .starts_with("timed out"),
        "{detail}"
    );
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let bench = ServerFixture::new().await;
    let mut one = bench.client("one").await;
    let mut two = bench.client("two").await;
    let pid = one.start("exec sleep 300", json!({})).await;
    let foreign = two.call("command_ps_detail", json!({"pid": pid})).await;
    let unknown = two
        .call("command_ps_detail", json!({"pid": "zzzzzzzz"}))
        .await;
    assert_eq!(foreign, unknown);
    assert!(
        text(&foreign).contains("Process not found or access denied"),
        "{foreign}"
    );
    let listed = two.call("command_ps_list", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0);
    one.call("command_ps_stop", json!({"pid": pid, "force": true}))
        .await;
}
