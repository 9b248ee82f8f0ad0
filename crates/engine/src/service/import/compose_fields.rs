//! The fields of one service of a compose file.

use std::io;

use ostler_model::duration;
use toml::{Table, Value};

use super::dotenv::{self, VariableReferences};
use super::names::AssignedNames;
use super::yaml::YamlNode;
use super::{ImportContext, ImportError, Omission, command};

/// Keys that are converted, or omitted with their own reason.
pub(super) const HANDLED: [&str; 11] = [
    "command",
    "entrypoint",
    "working_dir",
    "environment",
    "env_file",
    "ports",
    "healthcheck",
    "depends_on",
    "restart",
    "volumes",
    "tty",
];
/// The longest duration in a definition, in milliseconds: one day.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1000;

/// One service, with what its conversion needs.
pub(super) struct ComposeFields<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a YamlNode,
    pub(super) context: ImportContext<'a>,
    /// The variables of the `.env` file in the same directory.
    pub(super) variables: &'a [(String, String)],
    pub(super) names: &'a AssignedNames,
    pub(super) omissions: &'a mut Vec<Omission>,
}

impl ComposeFields<'_> {
    /// Records an omitted key.
    pub(super) fn omit(&mut self, at: &YamlNode, key: &str, reason: &str) {
        self.omissions.push(Omission {
            file: None,
            line: at.position.line,
            item: format!("{}.{key}", self.name),
            reason: reason.to_owned(),
        });
    }

    /// A text with its variables replaced; a variable without a value stays as it is and is
    /// recorded.
    fn interpolated(&mut self, node: &YamlNode, key: &str, text: &str) -> String {
        let lookup = |name: &str| {
            let found = self.variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        match command::interpolate(text, &lookup) {
            Ok(text) => text,
            Err(name) => {
                let reason =
                    format!("neither .env nor a default tells ${name}: write what is meant");
                self.omit(node, key, &reason);
                text.to_owned()
            }
        }
    }

    /// The arguments of the entry point, followed by those of the command.
    pub(super) fn command(&mut self) -> Result<Option<Value>, ImportError> {
        let mut words = Vec::new();
        for key in ["entrypoint", "command"] {
            let Some(node) = self.node.get(key) else {
                continue;
            };
            if let Some(line) = node.text() {
                let line = self.interpolated(node, key, line);
                let split = command::split_words(&line);
                words.extend(split.ok_or_else(|| node.position.error("a quote is not closed"))?);
                continue;
            }
            for item in node.items() {
                let word = item
                    .text()
                    .ok_or_else(|| item.position.error("has to be a text"))?;
                words.push(self.interpolated(item, key, word));
            }
        }
        let is_empty = words.first().is_none_or(String::is_empty);
        let words: Vec<Value> = words.into_iter().map(Value::from).collect();
        Ok((!is_empty).then(|| words.into()))
    }

    /// The bind mounts: `(host directory, container directory)`.
    pub(super) fn binds(&mut self) -> Vec<(String, String)> {
        let mut binds = Vec::new();
        let Some(volumes) = self.node.get("volumes") else {
            return binds;
        };
        for node in volumes.items() {
            let long = |key: &str| node.get(key).and_then(YamlNode::text);
            let pair = match node.text() {
                Some(text) => text.split_once(':'),
                None => long("source").zip(long("target")),
            };
            match pair {
                Some((here, there)) if here.starts_with(['.', '/']) => {
                    let there = there.split(':').next().unwrap_or_default();
                    binds.push((here.to_owned(), there.trim_end_matches('/').to_owned()));
                }
                Some(_) | None => {
                    self.omit(
                        node,
                        "volumes",
                        "there are no volumes: it keeps its data where it runs",
                    );
                }
            }
        }
        binds
    }

    /// The working directory on the host, as written in `ostler.toml`.
    pub(super) fn directory(&mut self, binds: &[(String, String)]) -> Option<String> {
        let build = self.node.get("build");
        let context = build.and_then(|it| it.text().or_else(|| it.get("context")?.text()));
        let context = context.unwrap_or_default();
        let Some((node, given)) = self
            .node
            .get("working_dir")
            .and_then(|it| Some((it, it.text()?)))
        else {
            return self.context.directory(context);
        };
        let to_host_path = |(here, there): &(String, String)| {
            let rest = given.strip_prefix(there.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{here}{rest}"))
        };
        if let Some(here) = binds.iter().find_map(to_host_path) {
            return self.context.directory(&here);
        }
        if given.starts_with('/') {
            let reason = format!("{given} is a directory of its image: say with cwd where it runs");
            self.omit(node, "working_dir", &reason);
            return self.context.directory(context);
        }
        self.context.directory(given)
    }

    /// The environment variables: those of its files, then its own.
    pub(super) fn environment(&mut self) -> Result<Table, ImportError> {
        let mut env = Table::new();
        for node in self
            .node
            .get("env_file")
            .map(YamlNode::items)
            .unwrap_or_default()
        {
            let path = node.text().or_else(|| node.get("path")?.text());
            let Some(path) = path else {
                self.omit(node, "env_file", "has no path");
                continue;
            };
            let is_required = node.get("required").and_then(YamlNode::text) != Some("false");
            let references = VariableReferences::Replaced(self.variables);
            match dotenv::read(self.context, path, references) {
                Ok(file) => {
                    self.omissions.extend(file.omissions);
                    let variables = file.variables.into_iter();
                    env.extend(variables.map(|(name, value)| (name, value.into())));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && !is_required => {}
                Err(error) => self.omit(node, "env_file", &format!("cannot be read: {error}")),
            }
        }
        let Some(own) = self.node.get("environment") else {
            return Ok(env);
        };
        for (name, node) in own.pairs() {
            self.variable(&mut env, node, name, node.text());
        }
        for node in own.items() {
            let text = node
                .text()
                .ok_or_else(|| node.position.error("has to be NAME=value"))?;
            let (name, value) = text
                .split_once('=')
                .map_or((text, None), |(name, value)| (name, Some(value)));
            self.variable(&mut env, node, name, value);
        }
        Ok(env)
    }

    fn variable(&mut self, env: &mut Table, node: &YamlNode, name: &str, value: Option<&str>) {
        let key = format!("environment.{name}");
        if name.is_empty() || name.contains(['=', '\0']) {
            return self.omit(node, &key, "is no name of a variable");
        }
        match value {
            Some(value) => {
                let value = self.interpolated(node, &key, value);
                env.insert(name.to_owned(), value.into());
            }
            None => self.omit(
                node,
                &key,
                "comes from who starts it: give it with env, or as a secret",
            ),
        }
    }

    /// The port it listens on: the first published port with the same number on both sides.
    pub(super) fn port(&mut self) -> Option<u16> {
        let ports = self
            .node
            .get("ports")
            .map(YamlNode::items)
            .unwrap_or_default();
        let mut found = None;
        for node in ports {
            let short = node
                .text()
                .map(|text| self.interpolated(node, "ports", text));
            let part = |key: &str| node.get(key).and_then(YamlNode::text).map(str::to_owned);
            let mapping = short.clone().or_else(|| part("target")).unwrap_or_default();
            let (published, target) = match &short {
                Some(text) => parse_port_mapping(text),
                None => (part("published"), part("target")),
            };
            let same = published.is_none() || published == target;
            let target = target
                .and_then(|it| it.parse::<u16>().ok())
                .filter(|it| *it > 0);
            match (target, found) {
                (Some(port), None) if same => found = Some(port),
                (Some(port), None) => {
                    let reason = format!(
                        "{mapping} publishes port {port} under another number: here it is reached where it listens"
                    );
                    self.omit(node, "ports", &reason);
                }
                (Some(_), Some(_)) => self.omit(
                    node,
                    "ports",
                    &format!(
                        "{mapping}: a service is told one port; further ones are found by themselves"
                    ),
                ),
                (None, _) => self.omit(node, "ports", &format!("{mapping} is no port")),
            }
        }
        found
    }

    /// The command of its health check, the interval, and the number of consecutive failures.
    pub(super) fn healthcheck(&mut self) -> Option<(Vec<String>, Option<String>, Option<i64>)> {
        let node = self.node.get("healthcheck")?;
        let test = node.get("test")?;
        let mut words: Vec<String> = match test.text() {
            Some(line) => vec!["CMD-SHELL".to_owned(), line.to_owned()],
            None => test
                .items()
                .iter()
                .filter_map(YamlNode::text)
                .map(str::to_owned)
                .collect(),
        };
        let disabled = node.get("disable").and_then(YamlNode::text) == Some("true");
        if disabled || words.len() < 2 || words[0] == "NONE" {
            return None;
        }
        let kind = words.remove(0);
        words = words
            .iter()
            .map(|word| self.interpolated(test, "healthcheck", word))
            .collect();
        if kind == "CMD-SHELL" {
            words = vec!["/bin/sh".to_owned(), "-c".to_owned(), words.join(" ")];
        }
        let interval = node
            .get("interval")
            .and_then(YamlNode::text)
            .and_then(parse_duration);
        let retries = node.get("retries").and_then(YamlNode::text);
        let retries = retries
            .and_then(|it| it.parse::<u16>().ok())
            .filter(|it| *it > 0);
        for key in ["timeout", "start_period", "start_interval"] {
            if let Some(node) = node.get(key) {
                self.omit(
                    node,
                    &format!("healthcheck.{key}"),
                    "has no counterpart; ready_timeout bounds the start",
                );
            }
        }
        Some((words, interval, retries.map(i64::from)))
    }

    /// The restart policy; none for the default `never`.
    pub(super) fn restart(&mut self) -> Option<Value> {
        let node = self.node.get("restart")?;
        let policy = node.text().unwrap_or_default();
        match policy.split_once(':').unwrap_or((policy, "")) {
            ("always" | "unless-stopped", _) => Some("always".into()),
            ("on-failure", "") => Some("on-failure".into()),
            ("on-failure", max) => {
                let mut table =
                    Table::from_iter([("policy".to_owned(), Value::from("on-failure"))]);
                if let Some(max) = max.parse::<u16>().ok().filter(|it| *it > 0) {
                    table.insert("max".to_owned(), i64::from(max).into());
                }
                Some(table.into())
            }
            ("no" | "false", _) => None,
            _ => {
                self.omit(node, "restart", "is no policy that is known");
                None
            }
        }
    }

    /// The dependencies, as `name:condition`; those on services that are not imported are dropped.
    pub(super) fn depends_on(&mut self) -> Vec<Value> {
        let Some(node) = self.node.get("depends_on") else {
            return Vec::new();
        };
        let named = node
            .items()
            .iter()
            .filter_map(|it| Some((it.text()?, it, None)));
        let conditions = node.pairs().iter();
        let conditions = conditions.map(|(name, it)| {
            (
                name.as_str(),
                it,
                it.get("condition").and_then(YamlNode::text),
            )
        });
        let mut dependencies: Vec<Value> = Vec::new();
        for (name, at, condition) in named.chain(conditions) {
            let Some(assigned) = self.names.get(name).filter(|_| name != self.name) else {
                self.omit(
                    at,
                    "depends_on",
                    &format!("'{name}' is not taken over: it is not waited for"),
                );
                continue;
            };
            let condition = match condition {
                Some("service_healthy") => "ready",
                Some("service_completed_successfully") => "completed",
                Some(_) | None => "started",
            };
            dependencies.push(format!("{assigned}:{condition}").into());
        }
        dependencies
    }
}

fn parse_port_mapping(text: &str) -> (Option<String>, Option<String>) {
    let text = text.split('/').next().unwrap_or_default();
    let mut parts = text.rsplit(':').map(str::to_owned);
    let target = parts.next();
    (parts.next(), target)
}

/// Converts `1m30s` to the form of definitions: `90s`.
fn parse_duration(text: &str) -> Option<String> {
    if text.contains(char::is_whitespace) {
        return None;
    }
    let millis = duration::as_millis(duration::parse_sum(text, &duration::CLOCK_UNITS)?);
    let fits = (1..=LONGEST_MS).contains(&millis);
    fits.then(|| {
        if millis.is_multiple_of(1000) {
            format!("{}s", millis / 1000)
        } else {
            format!("{millis}ms")
        }
    })
}
