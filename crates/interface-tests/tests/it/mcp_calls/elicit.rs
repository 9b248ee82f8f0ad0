//! Prompts of commands as questions to the person at the client, in both eras.

use ostler_engine::InteractionOutcome;
use ostler_engine::interaction::CancelReason;
use serde_json::{Value, json};

use super::sync::Bell;
use super::wire::{Setup, Wire, mcp_state, text};
use crate::common::ServerFixture;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Prompts once and prints the answer.
const ASKS: &str = "printf 'Proceed? [y/N] '; read a; echo \"got <$a>\"";

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn exec(script: &str, more: Value) -> Value {
    let mut arguments = json!({"command": script, "input": "open", "on_prompt": "ask"});
    for (name, value) in more.as_object().into_iter().flatten() {
        arguments[name] = value.clone();
    }
    json!({"name": "exec", "arguments": arguments})
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

/// The form a client of the handshake era is shown.
async fn form(wire: &mut Wire) -> Value {
    wire.until(|message| message["method"] == "elicitation/create")
        .await
}

fn machine(result: &Value) -> &Value {
    &result["_meta"]["ostler/result"]
}

/// The agent is not invited to answer a prompt that a person refused; it may stop the command.
fn assert_only_stop_is_offered(response: &str) {
    assert!(
        response.contains("[end it: process_control stop]"),
        "{response}"
    );
    assert!(!response.contains("write"), "{response}");
}

#[tokio::test]
async fn a_person_gets_the_question_while_the_call_waits() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).legacy(forms()).await;
    let call = wire.send("tools/call", exec(ASKS, json!({}))).await;
    let elicitation = form(&mut wire).await;
    let params = &elicitation["params"];
    assert!(
        params["message"]
            .as_str()
            .unwrap()
            .contains("Proceed? [y/N]"),
        "{elicitation}"
    );
    let field = &params["requestedSchema"]["properties"]["answer"];
    assert_eq!(field["enum"], json!(["y", "N"]), "{elicitation}");
    assert_eq!(params["requestedSchema"]["required"], json!(["answer"]));
    wire.respond(&elicitation["id"], accept("y")).await;
    let answer = wire.answer(call).await;
    assert!(text(&answer["result"]).contains("got <y>"), "{answer}");
    assert_eq!(answer["result"]["isError"], false);
}

#[tokio::test]
async fn an_invalid_answer_is_requested_again_and_the_agent_is_informed_of_a_refusal() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).legacy(forms()).await;
    let call = wire.send("tools/call", exec(ASKS, json!({}))).await;
    let elicitation = form(&mut wire).await;
    wire.respond(&elicitation["id"], accept("perhaps")).await;
    let again = form(&mut wire).await;
    let message = again["params"]["message"].as_str().unwrap();
    assert!(message.contains("not taken"), "{message}");
    wire.respond(&again["id"], json!({"action": "decline"}))
        .await;
    let answer = wire.answer(call).await;
    let response = text(&answer["result"]);
    assert!(
        response.contains("Proceed?") && response.contains("the person declined to answer"),
        "{response}"
    );
    assert_only_stop_is_offered(&response);
    let id = machine(&answer["result"])["id"].clone();
    let open = bench.engine.interactions(&bench.caller(None), true);
    assert!(open.is_empty(), "{open:?}");
    // It still waits, and the agent can answer.
    let written = json!({"ids": [id], "action": "write", "text": "n"});
    wire.call("process_control", written).await;
    wire.call("process", json!({"action": "wait", "ids": [id]}))
        .await;
    let shown = wire.call("command_ps_logs", json!({"pid": id})).await;
    assert!(text(&shown).contains("got <n>"), "{shown}");
}

#[tokio::test]
async fn an_answer_from_elsewhere_withdraws_the_form() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).legacy(forms()).await;
    let call = wire.send("tools/call", exec(ASKS, json!({}))).await;
    let elicitation = form(&mut wire).await;
    let caller = bench.caller(None);
    let open = bench.engine.interactions(&caller, true);
    let id = open[0].id.to_string();
    bench
        .engine
        .answer_interaction(&caller, &id, "y".to_owned())
        .await
        .unwrap();
    let withdrawn = wire
        .until(|message| message["method"] == "notifications/cancelled")
        .await;
    assert_eq!(withdrawn["params"]["requestId"], elicitation["id"]);
    let answer = wire.answer(call).await;
    assert!(text(&answer["result"]).contains("got <y>"), "{answer}");
}

#[tokio::test]
async fn a_cancelled_call_withdraws_its_form_and_ends_its_command() {
    let bench = ServerFixture::new().await;
    let mut bell = Bell::new(bench.work.path());
    let mut wire = Setup::new(&bench).legacy(forms()).await;
    let script = format!("echo $$ > bell; {ASKS}");
    let call = wire.send("tools/call", exec(&script, json!({}))).await;
    let process = bell.process().await;
    let elicitation = form(&mut wire).await;
    wire.cancel(call).await;
    let withdrawn = wire
        .until(|message| message["method"] == "notifications/cancelled")
        .await;
    assert_eq!(withdrawn["params"]["requestId"], elicitation["id"]);
    process.gone().await;
    // Its question ends with it.
    let answer = bench
        .engine
        .wait_for_answer(&bench.caller(None), "i1")
        .await;
    let ended = InteractionOutcome::Cancelled(CancelReason::ExecutionEnded);
    assert_eq!(answer.unwrap(), ended);
}

#[tokio::test]
async fn a_person_who_takes_their_time_does_not_hold_the_call() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).legacy(forms()).await;
    let call = wire
        .send("tools/call", exec(ASKS, json!({"wait_ms": 1_500})))
        .await;
    let elicitation = form(&mut wire).await;
    let withdrawn = wire
        .until(|message| message["method"] == "notifications/cancelled")
        .await;
    assert_eq!(withdrawn["params"]["requestId"], elicitation["id"]);
    let answer = wire.answer(call).await;
    let response = text(&answer["result"]);
    let open = bench.engine.interactions(&bench.caller(None), true);
    assert_eq!(open.len(), 1);
    assert!(response.contains(&open[0].id.to_string()), "{response}");
}

#[tokio::test]
async fn without_forms_and_for_secrets_the_agent_is_informed() {
    let bench = ServerFixture::new().await;
    let secret = "printf 'Password: '; read a; echo";
    for (script, capabilities) in [(ASKS, json!({})), (secret, forms())] {
        for modern in [false, true] {
            let mut wire = match modern {
                true => Setup::new(&bench).modern(capabilities.clone()),
                false => Setup::new(&bench).legacy(capabilities.clone()).await,
            };
            let result = wire.result("tools/call", exec(script, json!({}))).await;
            let elicitation = wire
                .received
                .iter()
                .filter(|it| it.1["method"] == "elicitation/create");
            assert_eq!(elicitation.count(), 0);
            let response = text(&result);
            assert!(response.contains("interaction i"), "{response}");
            let id = machine(&result)["id"].clone();
            wire.call("process_control", json!({"ids": [id], "action": "stop"}))
                .await;
        }
    }
    let open = bench.engine.interactions(&bench.caller(None), true);
    assert!(open.is_empty(), "{open:?}");
}

/// The question of a call of revision 2026-07-28: its key and state.
fn question(result: &Value) -> (String, String) {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    (
        key.clone(),
        result["requestState"].as_str().unwrap().to_owned(),
    )
}

fn again(mut params: Value, (key, state): (&str, &str), reply: Value) -> Value {
    params["requestState"] = state.into();
    params["inputResponses"] = json!({key: reply});
    params
}

#[tokio::test]
async fn a_call_is_repeated_with_the_answer() {
    let bench = ServerFixture::new().await;
    let setup = Setup::new(&bench);
    let shared = setup.mcp_state.clone();
    let mut wire = setup.modern(forms());
    let two = "printf 'Name: '; read a; printf 'Proceed? [y/N] '; read b; echo \"got <$a> <$b>\"";
    let params = exec(two, json!({"env": {"B": "2", "A": "1"}}));
    let first = wire.result("tools/call", params.clone()).await;
    let (key, state) = question(&first);
    assert_eq!(machine(&first)["status"], "running");

    // Sealed: not for other arguments, other sessions, or changed.
    let mut other = Setup {
        mcp_state: shared,
        session: "beta",
        ..Setup::new(&bench)
    }
    .modern(forms());
    let right = again(params.clone(), (&key, &state), accept("Ada"));
    let foreign = other.request("tools/call", right.clone()).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let mut wrong = right.clone();
    wrong["arguments"]["script"] = "true".into();
    let refused = wire.request("tools/call", wrong).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let mut broken = right.clone();
    broken["requestState"] = format!("{state}x").into();
    let refused = wire.request("tools/call", broken).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");

    let second = wire.result("tools/call", right.clone()).await;
    let (next_key, next_state) = question(&second);
    assert_ne!(next_key, key);
    // The state can be used once.
    let used = wire.request("tools/call", right).await;
    assert_eq!(used["error"]["code"], -32602, "{used}");
    // No answer, or an invalid one: the form is opened again.
    let missing = again(params.clone(), ("nothing", &next_state), accept("y"));
    let (same, state) = question(&wire.result("tools/call", missing).await);
    assert_eq!(same, next_key);
    let unfit = again(params.clone(), (&same, &state), accept("perhaps"));
    let (same, state) = question(&wire.result("tools/call", unfit).await);
    assert_eq!(same, next_key);
    let last = again(params, (&same, &state), accept("y"));
    let result = wire.result("tools/call", last).await;
    assert!(text(&result).contains("got <Ada> <y>"), "{result}");
    // One command did it all.
    let listed = wire.call("command_ps_list", json!({})).await;
    assert_eq!(
        listed["structuredContent"]["processes"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "{listed}"
    );
}

#[tokio::test]
async fn a_declined_question_is_not_put_again() {
    let bench = ServerFixture::new().await;
    let mut wire = Setup::new(&bench).modern(forms());
    let params = exec(ASKS, json!({}));
    let (key, state) = question(&wire.result("tools/call", params.clone()).await);
    let declined = again(params, (&key, &state), json!({"action": "cancel"}));
    let result = wire.result("tools/call", declined).await;
    assert_eq!(result["resultType"], "complete", "{result}");
    let response = text(&result);
    assert!(
        response.contains("Proceed?") && response.contains("the person dismissed the question"),
        "{response}"
    );
    assert_only_stop_is_offered(&response);
}

#[tokio::test]
async fn a_task_requires_input_while_its_command_asks() {
    let bench = ServerFixture::new().await;
    let setup = Setup {
        mcp_state: mcp_state(&bench.engine, 100),
        ..Setup::new(&bench)
    };
    let mut capabilities = forms();
    capabilities["extensions"] = json!({TASKS: {}});
    let mut wire = setup.modern(capabilities);
    let script = format!("sleep 0.5; {ASKS}");
    let created = wire.result("tools/call", exec(&script, json!({}))).await;
    assert_eq!(created["resultType"], "task", "{created}");
    let task = created["taskId"].clone();
    // Until it asks.
    wire.call(
        "process",
        json!({"action": "wait", "ids": [task], "until": "prompt"}),
    )
    .await;
    let seen = wire.result("tasks/get", json!({"taskId": task})).await;
    assert_eq!(seen["status"], "input_required", "{seen}");
    let (key, request) = seen["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let unknown = json!({"taskId": task, "inputResponses": {"i999": accept("y")}});
    wire.result("tasks/update", unknown).await;
    let wrong = json!({"taskId": task, "inputResponses": {key: accept("perhaps")}});
    let refused = wire.request("tasks/update", wrong).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let answered = json!({"taskId": task, "inputResponses": {key: accept("y")}});
    wire.result("tasks/update", answered).await;
    wire.call("process", json!({"action": "wait", "ids": [task]}))
        .await;
    let seen = wire.result("tasks/get", json!({"taskId": task})).await;
    assert_eq!(seen["status"], "completed", "{seen}");
    assert!(text(&seen["result"]).contains("got <y>"), "{seen}");
}
