//! Tokens that may only read in projects.

use super::*;

/// The refusal of a tool names the missing scope.
fn assert_refused(result: &Value) {
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(result).contains("project:write"), "{result}");
}

#[tokio::test]
async fn who_may_only_read_sees_a_session_and_changes_nothing_in_it() {
    let web = HttpFixture::new().await;
    let writer = web.agent(&web.token).at("/mcp/s/a");
    let reader = web.secret("reader", "uid:0", &[TokenScope::ProjectRead]);
    let reader = web.agent(&reader).at("/mcp/s/a");
    let running = start_script(&writer, "sleep 120").await;
    assert_eq!(list_ids(&reader).await, std::slice::from_ref(&running));
    let detail = reader.call("command_ps_detail", json!({"pid": running}));
    assert_ne!(detail.await["isError"], true);

    assert_refused(&reader.call("command_execute", reader.script("true")).await);
    let started = reader.call("command_bg_start", reader.background("true"));
    assert_refused(&started.await);
    assert_refused(
        &reader
            .call("command_ps_stop", json!({"pid": running}))
            .await,
    );
    let ended = reader.delete().await;
    assert_eq!(ended.status, 403);
    assert!(ended.text().await.contains("project:write"));
    // The handshake era is refused, too.
    let old = reader.initialize().await;
    assert_refused(
        &old.call_initialized("command_execute", old.script("true"))
            .await,
    );
    assert_eq!(list_ids(&writer).await, std::slice::from_ref(&running));

    // The scope that was named lets it.
    let scopes = [TokenScope::ProjectRead, TokenScope::ProjectWrite];
    let both = web.agent(&web.secret("both", "uid:0", &scopes));
    let both = both.at("/mcp/s/a");
    let stopped = both.call("command_ps_stop", json!({"pid": running})).await;
    assert_ne!(stopped["isError"], true, "{stopped}");
    assert_eq!(both.delete().await.status, 204);
    web.close().await;
}
