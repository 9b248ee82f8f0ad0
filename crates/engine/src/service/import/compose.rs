//! Imports the services of a compose file that have a command of their own.

use toml::{Table, Value};

use super::compose_fields::{self, ComposeFields};
use super::dotenv::{self, VariableReferences};
use super::names::AssignedNames;
use super::yaml::{self, YamlNode};
use super::{
    ImportContext, ImportError, ImportResult, ImportedService, Omission, SERVICES, check_text,
};

/// Top-level keys that do not define services.
const SILENT: [&str; 3] = ["version", "name", "services"];
/// Keys of a service that have no counterpart, with the reason shown to the user. Unlisted keys get
/// a general reason.
const REASONS: [(&str, &str); 15] = [
    (
        "image",
        "no container is run: what its command names has to be installed here",
    ),
    (
        "build",
        "no image is built: what its command names has to be installed here",
    ),
    (
        "networks",
        "services share the network of this machine: names of services are no hosts, use localhost",
    ),
    (
        "links",
        "services share the network of this machine: use localhost",
    ),
    ("extra_hosts", "services share the names of this machine"),
    ("hostname", "services share the name of this machine"),
    (
        "container_name",
        "there is no container; its name here is that of the service",
    ),
    (
        "deploy",
        "one process of each is run; limits are settings of the engine",
    ),
    (
        "profiles",
        "all that is defined is brought up unless it is named",
    ),
    (
        "extends",
        "what another file or service brings has to be written here",
    ),
    ("expose", "every port can be reached from this machine"),
    ("logging", "output is kept by the engine"),
    (
        "secrets",
        "give it as a secret of the engine, not in this file",
    ),
    ("user", "it runs as who starts it"),
    ("privileged", "it runs with the rights of who starts it"),
];

/// Imports the services of a compose file that have a `command` or an `entrypoint`.
///
/// # Errors
/// A text that is not YAML, or not a compose file.
pub fn compose(text: &str, context: ImportContext<'_>) -> Result<ImportResult, ImportError> {
    let text = check_text(text)?;
    let root = yaml::parse(text)?;
    let services = root.get("services");
    let services = services.ok_or_else(|| root.position.error("there are no 'services'"))?;
    if services.pairs().is_empty() || services.pairs().len() > SERVICES {
        let problem = format!("'services' has to be a map of 1 to {SERVICES} services");
        return Err(services.position.error(problem));
    }
    let variables = dotenv::read_default(context, VariableReferences::Replaced(&[]));
    let mut names = AssignedNames::default();
    for (name, _) in services
        .pairs()
        .iter()
        .filter(|(_, node)| has_command(node))
    {
        names.assign(name);
    }
    let mut imported = ImportResult {
        omissions: variables.omissions,
        ..ImportResult::default()
    };
    for (key, node) in root.pairs() {
        if !SILENT.contains(&key.as_str()) && !key.starts_with("x-") {
            let reason = "is about containers; there are none";
            imported.omissions.push(omission(node, key, reason));
        }
    }
    for (name, node) in services.pairs() {
        let Some(assigned) = names.get(name) else {
            imported
                .omissions
                .push(omission(node, name, &missing_command_reason(node)));
            continue;
        };
        let mut fields = ComposeFields {
            name,
            node,
            context,
            variables: &variables.variables,
            names: &names,
            omissions: &mut imported.omissions,
        };
        match import_service(assigned, &mut fields)? {
            Some(service) => imported.services.push(service),
            None => fields.omit(node, "command", "has no words"),
        }
    }
    imported
        .omissions
        .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(imported)
}

fn has_command(node: &YamlNode) -> bool {
    ["command", "entrypoint"]
        .iter()
        .filter_map(|key| node.get(key))
        .any(|it| !it.items().is_empty())
}

fn missing_command_reason(node: &YamlNode) -> String {
    let image = node.get("image").and_then(YamlNode::text);
    match image {
        Some(image) => format!(
            "has no command: it is what the image {image} runs; define it with what runs here"
        ),
        None => {
            "has no command: it is what its image runs; define it with what runs here".to_owned()
        }
    }
}

fn omission(node: &YamlNode, what: &str, reason: &str) -> Omission {
    Omission {
        file: None,
        line: node.position.line,
        item: what.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Imports one service; none where it has no command.
fn import_service(
    name: &str,
    fields: &mut ComposeFields<'_>,
) -> Result<Option<ImportedService>, ImportError> {
    let Some(command) = fields.command()? else {
        return Ok(None);
    };
    let mut service = ImportedService {
        name: name.to_owned(),
        original: fields.name.to_owned(),
        keys: Vec::new(),
    };
    service.set("command", command);
    let binds = fields.binds();
    if let Some(cwd) = fields.directory(&binds) {
        service.set("cwd", cwd);
    }
    let env = fields.environment()?;
    if !env.is_empty() {
        service.set("env", env);
    }
    if let Some(port) = fields.port() {
        service.set("port", i64::from(port));
    }
    import_healthcheck(&mut service, fields);
    if let Some(restart) = fields.restart() {
        service.set("restart", restart);
    }
    let dependencies = fields.depends_on();
    if !dependencies.is_empty() {
        service.set("depends_on", dependencies);
    }
    if fields.node.get("tty").and_then(YamlNode::text) == Some("true") {
        service.set("terminal", true);
    }
    for (key, node) in fields.node.pairs() {
        if !compose_fields::HANDLED.contains(&key.as_str()) && !key.starts_with("x-") {
            let known = REASONS.iter().find(|(it, _)| it == key);
            fields.omit(
                node,
                key,
                known.map_or("has no counterpart", |(_, reason)| reason),
            );
        }
    }
    Ok(Some(service))
}

/// Converts its health check: it decides readiness (as `service_healthy` does) and health
/// afterwards.
fn import_healthcheck(service: &mut ImportedService, fields: &mut ComposeFields<'_>) {
    let Some((exec, interval, failures)) = fields.healthcheck() else {
        return;
    };
    let exec: Vec<Value> = exec.into_iter().map(Value::from).collect();
    let mut health = Table::new();
    health.insert("exec".to_owned(), exec.clone().into());
    if let Some(interval) = interval {
        health.insert("interval".to_owned(), interval.into());
    }
    if let Some(failures) = failures {
        health.insert("failures".to_owned(), failures.into());
    }
    let ready = Table::from_iter([("exec".to_owned(), Value::from(exec))]);
    service.set("ready", ready);
    service.set("health", health);
}
