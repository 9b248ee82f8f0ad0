//! The services of a compose file that have a command of their own.

use toml::{Table, Value};

use super::fields::{self, Fields};
use super::names::Names;
use super::yaml::{self, Node};
use super::{
    ImportContext, ImportError, ImportResult, Omission, SERVICES, Service, check_size, dotenv,
};

/// Keys of a file that say nothing about a service.
const SILENT: [&str; 3] = ["version", "name", "services"];
/// What of a service has no counterpart, and why. Those not listed have none either.
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

/// The services of a compose file: those with a `command` or an `entrypoint`.
///
/// # Errors
/// A text that is no YAML, or no compose file.
pub fn compose(text: &str, beside: ImportContext<'_>) -> Result<ImportResult, ImportError> {
    check_size(text)?;
    let root = yaml::read(text)?;
    let services = root.get("services");
    let services = services.ok_or_else(|| root.place.error("there are no 'services'"))?;
    if services.pairs().is_empty() || services.pairs().len() > SERVICES {
        let problem = format!("'services' has to be a map of 1 to {SERVICES} services");
        return Err(services.place.error(problem));
    }
    let variables = (beside.read)(".env")
        .map(|it| dotenv::read(&it))
        .unwrap_or_default();
    let mut names = Names::default();
    for (name, _) in services.pairs().iter().filter(|(_, node)| runs(node)) {
        names.give(name);
    }
    let mut imported = ImportResult::default();
    for (key, node) in root.pairs() {
        if !SILENT.contains(&key.as_str()) && !key.starts_with("x-") {
            let reason = "is about containers; there are none";
            imported.left.push(left(node, key, reason));
        }
    }
    for (name, node) in services.pairs() {
        let Some(given) = names.of(name) else {
            imported.left.push(left(node, name, &without_command(node)));
            continue;
        };
        let mut fields = Fields {
            name,
            node,
            beside,
            variables: &variables,
            names: &names,
            left: &mut imported.left,
        };
        match service(given, &mut fields)? {
            Some(service) => imported.services.push(service),
            None => fields.leave(node, "command", "has no words"),
        }
    }
    imported.left.sort_by_key(|it| it.line);
    Ok(imported)
}

fn runs(node: &Node) -> bool {
    ["command", "entrypoint"]
        .iter()
        .filter_map(|key| node.get(key))
        .any(|it| !it.items().is_empty())
}

fn without_command(node: &Node) -> String {
    let image = node.get("image").and_then(Node::text);
    match image {
        Some(image) => format!(
            "has no command: it is what the image {image} runs; define it with what runs here"
        ),
        None => {
            "has no command: it is what its image runs; define it with what runs here".to_owned()
        }
    }
}

fn left(node: &Node, what: &str, reason: &str) -> Omission {
    Omission {
        line: node.place.line,
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}

/// One service; none where it has no words to run.
fn service(name: &str, fields: &mut Fields<'_>) -> Result<Option<Service>, ImportError> {
    let Some(command) = fields.command()? else {
        return Ok(None);
    };
    let mut service = Service {
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
    checks(&mut service, fields);
    if let Some(restart) = fields.restart() {
        service.set("restart", restart);
    }
    let needs = fields.depends_on();
    if !needs.is_empty() {
        service.set("depends_on", needs);
    }
    if fields.node.get("tty").and_then(Node::text) == Some("true") {
        service.set("terminal", true);
    }
    for (key, node) in fields.node.pairs() {
        if !fields::TAKEN.contains(&key.as_str()) && !key.starts_with("x-") {
            let known = REASONS.iter().find(|(it, _)| it == key);
            fields.leave(
                node,
                key,
                known.map_or("has no counterpart", |(_, reason)| reason),
            );
        }
    }
    Ok(Some(service))
}

/// Its health check tells when it is ready, as `service_healthy` does, and that it stays well.
fn checks(service: &mut Service, fields: &mut Fields<'_>) {
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
