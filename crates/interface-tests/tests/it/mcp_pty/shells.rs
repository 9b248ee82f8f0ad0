//! `pty_run`: exit status, directory and exactly the output; and error cases.

use serde_json::json;

use super::agent::{agent, body, did, fields, plain, read, run, shell, start, write};
use crate::common::{ServerFixture, text};

#[tokio::test]
async fn a_shell_runs_one_command_after_another() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    for (script, status, output) in [
        ("echo hello", 0, "hello"),
        ("true", 0, ""),
        ("printf 'no newline'", 0, "no newline"),
        ("(exit 3)", 3, ""),
        ("echo out; echo err >&2; false", 1, "out\nerr"),
        ("printf 'a\\tb\\n\\n\\nc\\n'", 0, "a\tb\n\n\nc"),
        ("printf '\\033[31mred\\033[0m\\n'", 0, "red"),
        ("printf '10%%\\r100%%\\n'", 0, "100%"),
        ("for i in 1 2\ndo echo $i\ndone", 0, "1\n2"),
        ("cat <<'E'\na 'b' $c\nE", 0, "a 'b' $c"),
        ("echo grüße 你好 🎉", 0, "grüße 你好 🎉"),
        (
            "no-such-command-here",
            127,
            "bash: no-such-command-here: command not found",
        ),
    ] {
        let result = run(&mut client, &id, script).await;
        assert_eq!(body(&result), output, "{script}: {}", text(&result));
        assert_eq!(fields(&result)["end"], "finished", "{script}: {result}");
        assert_eq!(fields(&result)["exit_status"], status, "{script}");
    }
    let result = run(&mut client, &id, "cd /usr/lib && export MINE=kept").await;
    assert_eq!(fields(&result)["cwd"], "/usr/lib", "{result}");
    let result = run(&mut client, &id, "pwd; echo $MINE").await;
    assert_eq!(body(&result), "/usr/lib\nkept");
    insta::assert_snapshot!(plain(&result));
}

#[tokio::test]
async fn long_output_is_shown_at_both_ends_and_counted() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    for (count, name) in [(20_000, "whole"), (200_000, "in parts")] {
        let script = format!("printf begin; seq 1 {count}; printf 'the end'");
        let result = run(&mut client, &id, &script).await;
        let text = text(&result);
        assert!(text.chars().count() <= 20_000, "{name}");
        let body = body(&result);
        let lines: Vec<&str> = body.lines().collect();
        assert_eq!(lines[..2], ["begin1", "2"], "{name}: {text}");
        assert_eq!(
            lines[lines.len() - 2..],
            [&count.to_string(), "the end"],
            "{name}"
        );
        let mark = lines.iter().find(|line| line.starts_with("[… ")).unwrap();
        assert!(mark.contains("omitted; offset "), "{name}: {mark}");
        let omitted = fields(&result)["omitted"]["lines"].as_u64().unwrap();
        let omitted = usize::try_from(omitted).unwrap();
        assert_eq!(omitted + lines.len() - 1, count + 1, "{name}");
    }
}

#[tokio::test]
async fn what_takes_long_goes_on_and_can_be_waited_for_or_interrupted() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let gate = bench.work.path().join("gate");
    let fifo = gate.to_str().unwrap();
    run(&mut client, &id, &format!("mkfifo {fifo}")).await;
    let script = format!("echo begins; cat {fifo}; (exit 7)");
    let arguments = json!({"session": id, "script": script, "wait_ms": 700});
    let result = did(&mut client, "pty_run", arguments).await;
    assert_eq!(fields(&result)["end"], "running", "{result}");
    assert_eq!(body(&result), "begins");
    insta::assert_snapshot!(plain(&result));

    // It is busy meanwhile.
    let busy = json!({"session": id, "script": "echo no"});
    let busy = client.call("pty_run", busy).await;
    assert_eq!(busy["_meta"]["code"], "process_control_error", "{busy}");

    std::fs::write(&gate, "through the gate\n").unwrap();
    let next = &fields(&result)["next_offset"];
    let more = json!({"view": "text", "offset": next, "until": "prompt"});
    let seen = read(&mut client, &id, more).await;
    assert!(body(&seen).starts_with("through the gate"), "{seen}");
    assert_eq!(fields(&seen)["shell"]["state"], "prompt", "{seen}");
    assert_eq!(fields(&seen)["shell"]["status"], 7, "{seen}");
    let arguments = json!({"session": id, "offset": fields(&result)["offset"]});
    let result = did(&mut client, "pty_run", arguments).await;
    assert_eq!(body(&result), "begins\nthrough the gate");
    assert_eq!(fields(&result)["exit_status"], 7, "{result}");
    // What it took is the time of this wait, not of the command.
    assert!(text(&result).contains("exit 7, waited "), "{result}");
    assert!(fields(&result)["waited_time"].is_number(), "{result}");

    // Nothing runs after the prompt.
    let arguments = json!({"session": id, "offset": fields(&seen)["next_offset"]});
    let result = did(&mut client, "pty_run", arguments).await;
    let message = text(&result);
    assert!(
        message.contains("no end of a command was found from offset"),
        "{message}"
    );
    assert!(message.contains("run a command with script"), "{message}");

    let arguments = json!({"session": id, "script": "sleep 1000", "wait_ms": 300});
    did(&mut client, "pty_run", arguments).await;
    let more = json!({"keys": ["ctrl-c"], "until": "prompt"});
    let result = write(&mut client, &id, more).await;
    assert_eq!(fields(&result)["shell"]["status"], 130, "{result}");
    assert_eq!(body(&run(&mut client, &id, "echo well").await), "well");
}

#[tokio::test]
async fn a_question_comes_back_with_how_to_answer() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let result = run(
        &mut client,
        &id,
        "read -p 'Your name? ' name; echo hi $name",
    )
    .await;
    assert_eq!(fields(&result)["end"], "prompt", "{result}");
    assert_eq!(fields(&result)["prompt"]["text"], "Your name?", "{result}");
    insta::assert_snapshot!(plain(&result));
    let result = write(&mut client, &id, json!({"text": "Ada"})).await;
    assert!(body(&result).contains("hi Ada"), "{}", text(&result));
    assert_eq!(fields(&result)["shell"]["status"], 0);
}

#[tokio::test]
async fn a_secret_is_a_persons_to_type() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let script = "read -rs -p 'Password: ' secret; echo; echo ${#secret}";
    let result = run(&mut client, &id, script).await;
    assert_eq!(fields(&result)["prompt"]["secret"], true, "{result}");
    insta::assert_snapshot!(plain(&result));
    let result = write(&mut client, &id, json!({"text": "hush"})).await;
    assert!(body(&result).contains('4'), "{}", text(&result));
    assert!(!text(&result).contains("hush"), "{}", text(&result));
}

#[tokio::test]
async fn an_incomplete_command_says_so() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let result = run(&mut client, &id, "echo \"open").await;
    assert_eq!(fields(&result)["end"], "incomplete", "{result}");
    assert!(text(&result).contains("waits for the rest of the command"));
    let result = write(
        &mut client,
        &id,
        json!({"text": "closed\"", "until": "prompt"}),
    )
    .await;
    assert!(body(&result).contains("open\nclosed"), "{}", text(&result));
}

#[tokio::test]
async fn the_end_of_the_shell_is_an_answer() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let result = run(&mut client, &id, "echo bye; exit 3").await;
    assert_eq!(fields(&result)["end"], "shell_ended", "{result}");
    assert_eq!(fields(&result)["exit_code"], 3, "{result}");
    assert!(body(&result).contains("bye"), "{}", text(&result));
    insta::assert_snapshot!(plain(&result));
}

#[tokio::test]
async fn a_program_in_the_shells_place_goes_on() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    let id = shell(&mut client).await;
    let result = run(&mut client, &id, "exec cat").await;
    assert_ne!(fields(&result)["why"], "exit", "{result}");
    assert_eq!(fields(&result)["status"], "running", "{result}");
    assert!(!text(&result).contains("pty_start"), "{}", text(&result));
    let result = write(&mut client, &id, json!({"text": "still here"})).await;
    assert!(
        body(&result).contains("still here\nstill here"),
        "{}",
        text(&result)
    );
}

#[tokio::test]
async fn zsh_and_fish_tell_as_bash_does() {
    let bench = ServerFixture::new().await;
    let mut client = agent(&bench).await;
    for kind in ["zsh", "fish"] {
        let home = bench.directory();
        let arguments = json!({"shell": kind, "env": {"HOME": home}});
        let (id, _) = start(&mut client, arguments).await;
        let result = run(&mut client, &id, "echo one; sh -c 'exit 5'").await;
        assert_eq!(body(&result), "one", "{kind}: {}", text(&result));
        assert_eq!(fields(&result)["exit_status"], 5, "{kind}");
        let result = run(&mut client, &id, "cd /usr; printf 'no newline'").await;
        assert_eq!(body(&result), "no newline", "{kind}: {}", text(&result));
        assert_eq!(fields(&result)["cwd"], "/usr", "{kind}");
    }
}
