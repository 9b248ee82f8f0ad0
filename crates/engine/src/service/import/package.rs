//! Imports the scripts of a `package.json`.

use ostler_model::line_number;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::names::AssignedNames;
use super::{
    ImportContext, ImportError, ImportResult, ImportedService, Omission, SERVICES, check_text,
};

/// Scripts whose names imply that they start a server.
const COMMON_SCRIPTS: [&str; 3] = ["dev", "start", "serve"];
/// Package managers by their lock files.
const LOCK_FILES: [(&str, &str); 4] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
];

/// The parts of a `package.json` that the import reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PackageJson {
    scripts: Map<String, Value>,
    #[serde(rename = "packageManager")]
    package_manager: Option<String>,
}

/// Imports the scripts of a package that start a server: by `is_server`, or by their names.
///
/// # Errors
/// A text that is not JSON, or not a package.
pub fn package(
    text: &str,
    context: ImportContext<'_>,
    is_server: &dyn Fn(&str) -> bool,
) -> Result<ImportResult, ImportError> {
    let text = check_text(text)?;
    let package: PackageJson = serde_json::from_str(text).map_err(|error| ImportError {
        line: error.line().max(1),
        column: error.column().max(1),
        // The message without the position, which has its own fields.
        problem: error
            .to_string()
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned(),
    })?;
    let manager = manager(&package, context);
    let mut imported = ImportResult::default();
    let mut names = AssignedNames::default();
    for (script, value) in &package.scripts {
        let command = format!("{manager} run {script}");
        let reason = match value.as_str() {
            None => "is no text",
            Some(_) if !script.bytes().all(is_plain) => "has a name that a shell reads otherwise",
            Some(_) if imported.services.len() >= SERVICES => "is one service too many",
            Some(_) if COMMON_SCRIPTS.contains(&script.as_str()) || is_server(&command) => {
                let mut service = ImportedService {
                    name: names.assign(script),
                    original: script.clone(),
                    keys: Vec::new(),
                };
                service.set("command", command);
                if let Some(cwd) = context.directory("") {
                    service.set("cwd", cwd);
                }
                imported.services.push(service);
                continue;
            }
            Some(_) => "starts no server that is known",
        };
        imported.omissions.push(Omission {
            file: None,
            line: line_of(text, script),
            item: script.clone(),
            reason: reason.to_owned(),
        });
    }
    // JSON objects are unordered.
    imported
        .services
        .sort_by_key(|it| line_of(text, &it.original));
    imported.omissions.sort_by_key(|it| it.line);
    Ok(imported)
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_' | b'.' | b'/' | b'@')
}

fn manager(package: &PackageJson, context: ImportContext<'_>) -> &'static str {
    let declared = package.package_manager.as_deref().unwrap_or_default();
    let declared = declared.split('@').next().unwrap_or_default();
    let by_name = ["npm", "pnpm", "yarn", "bun"]
        .into_iter()
        .find(|it| *it == declared);
    let by_lock = || LOCK_FILES.iter().find(|(lock, _)| (context.exists)(lock));
    by_name.unwrap_or_else(|| by_lock().map_or("npm", |(_, manager)| manager))
}

/// The line of a script: the first one after `scripts` that begins with its name.
fn line_of(text: &str, script: &str) -> usize {
    let key = Value::from(script).to_string();
    let from = text.find("\"scripts\"").unwrap_or(0);
    let at = text[from..].find(&key).map_or(from, |at| from + at);
    line_number(text, at)
}
