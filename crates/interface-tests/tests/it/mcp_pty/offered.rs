//! The tool list, and its descriptions.

use ostler_mcp::{ToolGroup, ToolSet};
use serde_json::json;

use crate::common::{ServerFixture, normalize_text};

/// The most bytes the tools of terminals have in `tools/list`.
const TOOLS_BYTES: usize = 6_000;

#[tokio::test]
async fn the_list_of_tools_is_small_and_closed() {
    let bench = ServerFixture::new().await;
    let tools = ToolSet::from_groups(&[ToolGroup::Pty]);
    let mut client = bench.client_with("s", tools).await;
    let answer = client.request("tools/list", json!({})).await;
    let bytes = answer["result"].to_string().len();
    insta::assert_json_snapshot!(answer["result"]);
    assert!(bytes <= TOOLS_BYTES, "{bytes} bytes");
    for tool in answer["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    }
    let hello = client.hello["instructions"].as_str().unwrap();
    insta::assert_snapshot!(normalize_text(hello));
}
