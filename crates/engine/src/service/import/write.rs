//! Renders imported definitions as an `ostler.toml`.

use super::ImportResult;

/// The services as text, with what each was called where that cannot be its name here.
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

/// A name with a dot needs quotes.
fn key(name: &str) -> String {
    if name.contains('.') {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}
