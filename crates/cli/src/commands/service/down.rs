//! `ostler service down`: the reverse of `up`.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use ostler_server::wire::{ServiceBody, StopBody};

use super::ask::desk;
use super::control::{Stopping, stop_each};
use super::manifest::nothing_defined;
use super::up::in_a_file;
use crate::error::Outcome;
use crate::paths::home;
use crate::setup::{Setup, block_on};

/// What `down` takes.
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Only these, and what depends on them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Where ostler.toml is looked for, upwards; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// At once, without a polite request
    #[arg(short, long)]
    force: bool,
    /// What became of each, as JSON
    #[arg(long)]
    json: bool,
}

/// Stops what is defined and lives.
///
/// # Errors
/// When the daemon cannot be asked.
pub(super) fn run(setup: &Setup, args: &DownArgs) -> Outcome {
    let desk = desk(setup, args.cwd.clone())?;
    let body = StopBody {
        force: args.force,
        ..StopBody::default()
    };
    block_on(async {
        let stopping = Stopping {
            body,
            json: args.json,
        };
        if !args.names.is_empty() {
            return stop_each(&desk, &args.names, &stopping).await;
        }
        let list = desk.every().await?;
        let defined: Vec<ServiceBody> = list.into_iter().filter(in_a_file).collect();
        if defined.is_empty() {
            return Err(nothing_defined(desk.cwd.as_path(), &home(&setup.env)));
        }
        stop_each(&desk, &reverse(&defined), &stopping).await
    })
}

/// Names of those that live, each before what it depends on.
fn reverse(services: &[ServiceBody]) -> Vec<String> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    for service in services {
        visit(service, services, &mut seen, &mut order);
    }
    order.reverse();
    let lives = |name: &String| services.iter().any(|it| it.living && it.name == *name);
    order.into_iter().filter(lives).collect()
}

/// After what it depends on; a circle is cut where it is entered.
fn visit<'a>(
    service: &'a ServiceBody,
    all: &'a [ServiceBody],
    seen: &mut HashSet<&'a str>,
    order: &mut Vec<String>,
) {
    if !seen.insert(&service.name) {
        return;
    }
    for dependency in &service.depends_on {
        if let Some(found) = all.iter().find(|it| it.name == dependency.name) {
            visit(found, all, seen, order);
        }
    }
    order.push(service.name.clone());
}

#[cfg(test)]
mod tests {
    use ostler_model::{Condition, Dependency};

    use super::*;

    fn service(name: &str, needs: &[&str], living: bool) -> ServiceBody {
        let need = |name: &&str| Dependency {
            name: (*name).to_owned(),
            condition: Condition::Ready,
        };
        ServiceBody {
            name: name.to_owned(),
            status: "ready".to_owned(),
            living,
            command: String::new(),
            defined_in: Some("/srv/ostler.toml".to_owned()),
            depends_on: needs.iter().map(need).collect(),
            waits_for: None,
            notes: Vec::new(),
            execution: None,
        }
    }

    #[test]
    fn what_depends_goes_first() {
        let all = [
            service("api", &["db", "cache"], true),
            service("cache", &[], false),
            service("db", &[], true),
            service("web", &["api"], true),
        ];
        assert_eq!(reverse(&all), ["web", "api", "db"]);
        let circle = [service("a", &["b"], true), service("b", &["a"], true)];
        assert_eq!(reverse(&circle).len(), 2);
    }
}
