//! Interpreters that print nothing without a terminal.

use super::*;

const HINT: &str = "exec with input \"tty\"";

#[tokio::test]
async fn an_interpreter_at_a_pipe_says_that_it_wants_a_terminal() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    for command in [
        json!("python3"),
        json!(["python3", "-q"]),
        json!("bash --norc"),
    ] {
        let given = json!({"command": command, "input": "open", "wait_ms": 30_000});
        let result = client.call("exec", given).await;
        assert_eq!(fields(&result)["why"], "prompt", "{result}");
        assert!(text(&result).contains(HINT), "{result}");
        let given = json!({"command": command});
        let result = client.call("exec", given).await;
        assert_eq!(fields(&result)["why"], "exit", "{result}");
        assert!(text(&result).contains(HINT), "{result}");
    }
    end(&bench).await;
}

#[tokio::test]
async fn what_reads_and_stays_mute_says_so_once_it_was_written_to() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let result = exec(&mut client, "cat > seen; :", json!({"input": "open"})).await;
    assert!(!text(&result).contains(HINT), "{result}");
    let more = json!({"ids": id(&result), "text": "a", "wait_ms": 30_000});
    let result = control(&mut client, "write", more).await;
    assert!(text(&result).contains(HINT), "{result}");
    end(&bench).await;
}

#[tokio::test]
async fn other_clients_get_no_notifications_of_terminals() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    for script in [
        "python3 -c 'print(1)'",
        "echo 'print(1)' | python3",
        "cat",
        "exec sleep 300",
    ] {
        let result = exec(&mut client, script, json!({"wait_ms": 500})).await;
        assert!(!text(&result).contains(HINT), "{result}");
    }
    let more = json!({"stdin": "print(1)"});
    let result = exec(&mut client, "python3", more).await;
    assert!(!text(&result).contains(HINT), "{result}");
    end(&bench).await;
}
