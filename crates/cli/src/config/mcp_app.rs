//! The page of the MCP App: one of the files of the web interface.

use ostler_http::WebFiles;
use ostler_mcp::AppPage;

/// The file with the page.
const PATH: &str = "mcp_app.html";

/// The page among these files.
#[derive(Debug)]
pub(super) struct WebAppPage(pub(super) WebFiles);

impl AppPage for WebAppPage {
    fn is_there(&self) -> bool {
        self.0.contains(PATH)
    }

    fn html(&self) -> Option<String> {
        String::from_utf8(self.0.read(PATH)?).ok()
    }
}
