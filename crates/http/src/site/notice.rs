//! The page of a program that was built without its web interface.

/// The page, as HTML; its links are below `prefix`.
pub(super) fn notice(prefix: &str, reason: &str) -> String {
    let reason = escaped(reason);
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Ostler</title>\n\
         <h1>Ostler runs, without its web interface</h1>\n\
         <p>This program has no page to show: {reason}.</p>\n\
         <p>To get it, install Node.js 20.19 or newer and build \
         again: <code>cargo run --release -- serve</code>.</p>\n\
         <p>Everything else is here: <code>ostler ps</code>, <code>ostler logs</code> and \
         <code>ostler help</code> at the command line, and <a href=\"{prefix}/api/docs\">REST</a>.\
         </p>\n"
    )
}

/// The text, as it stands in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_text() {
        let page = notice("/o", "npm said <script>&amp;");
        assert!(page.contains("npm said &lt;script&gt;&amp;amp;."), "{page}");
        assert!(page.contains("href=\"/o/api/docs\""), "{page}");
    }
}
