//! The forms of a command.

use super::*;

#[tokio::test]
async fn a_text_is_a_script_and_a_list_is_a_program() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let result = exec(
        &mut client,
        "echo ${BASH_VERSION:+bash} | tr a-z A-Z",
        json!({}),
    )
    .await;
    assert_eq!(output(&result), ["BASH"], "{result}");
    let list = json!({"command": ["echo", "$HOME", "|", "tr"]});
    let result = client.call("exec", list).await;
    assert_eq!(output(&result), ["$HOME | tr"], "{result}");
}

#[tokio::test]
async fn sh_runs_a_script_where_bash_is_missing() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let bin = bench.work.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    let more = json!({"env": {"PATH": bin.to_str().unwrap()}});
    let result = exec(&mut client, "echo $0 runs", more).await;
    assert_eq!(output(&result), ["sh runs"], "{result}");
}

#[tokio::test]
async fn rare_things_stand_in_options_or_by_themselves() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    for more in [
        json!({"options": {"shell": "sh", "labels": ["a"], "keep": null}}),
        json!({"shell": "sh", "labels": ["a"]}),
        json!({"options": {"shell": "sh"}, "labels": ["a"]}),
    ] {
        let result = exec(&mut client, "echo $0", more).await;
        assert_eq!(output(&result), ["sh"], "{result}");
    }
    let listed = process(&mut client, "list", json!({"labels": ["a"]})).await;
    assert_eq!(listed["structuredContent"]["total"], 3, "{listed}");
}

#[tokio::test]
async fn older_names_are_taken() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let result = client.call("exec", json!({"script": "echo out"})).await;
    assert_eq!(output(&result), ["out"], "{result}");
    let id = id(&result);
    for more in [json!({"ids": [id]}), json!({"ids": id}), json!({"id": id})] {
        let result = process(&mut client, "output", more).await;
        assert_eq!(output(&result), ["out"], "{result}");
    }
    let cleaned = control_ok(&mut client, "clean", json!({"ids": id})).await;
    assert_eq!(cleaned["result"], "success");
}
