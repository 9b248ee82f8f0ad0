//! Renders imported definitions as an `ostler.toml`.

use super::ImportResult;

/// The services as an `ostler.toml`, with a comment on each whose name was changed.
#[must_use]
pub fn to_toml(imported: &ImportResult) -> String {
    let mut text = String::new();
    for service in &imported.services {
        if !text.is_empty() {
            text.push('\n');
        }
        if service.name != service.original {
            let original: String = service
                .original
                .chars()
                .filter(|it| !it.is_control())
                .collect();
            text.push_str(&format!("# it was called {original}\n"));
        }
        text.push_str(&format!("[services.{}]\n", key(&service.name)));
        for (name, value) in &service.keys {
            text.push_str(&format!("{name} = {value}\n"));
        }
    }
    text
}

/// A key, quoted where it contains a dot.
fn key(name: &str) -> String {
    if name.contains('.') {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}
