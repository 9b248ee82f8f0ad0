//! `ostler service down`: the reverse of `up`.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use clap::Args;
use ostler_server::wire::{ServiceBody, StopBody};

use super::ask::{WorkspaceArgs, desk};
use super::control::{StopTarget, Stopping, stop_each};
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
    #[command(flatten)]
    workspaces: WorkspaceArgs,
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
    let desk = desk(setup, args.cwd.clone())?.over(args.workspaces);
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
            let meant: Vec<StopTarget> = args
                .names
                .iter()
                .map(|name| StopTarget::called(name))
                .collect();
            return stop_each(&desk, &meant, &stopping).await;
        }
        let list = desk.every().await?;
        let defined: Vec<ServiceBody> = list.into_iter().filter(in_a_file).collect();
        if defined.is_empty() && !args.workspaces.all_workspaces {
            return Err(nothing_defined(desk.cwd.as_path(), &home(&setup.env)));
        }
        let mut code = 0;
        for one in by_workspace(defined) {
            let stopped = stop_each(&desk, &reverse(&one), &stopping).await?;
            code = if code == 0 { stopped } else { code };
        }
        Ok(code)
    })
}

/// Each workspace's own: names hold within it.
fn by_workspace(services: Vec<ServiceBody>) -> Vec<Vec<ServiceBody>> {
    let mut all: BTreeMap<Option<String>, Vec<ServiceBody>> = BTreeMap::new();
    for service in services {
        all.entry(service.defined_in.clone())
            .or_default()
            .push(service);
    }
    all.into_values().collect()
}

/// Those that live, each before what it depends on.
fn reverse(services: &[ServiceBody]) -> Vec<StopTarget> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    for service in services {
        visit(service, services, &mut seen, &mut order);
    }
    order.reverse();
    let lives = |name: String| {
        let living = services.iter().find(|it| it.living && it.name == name)?;
        let id = living.execution.as_ref().map(|info| info.id.clone());
        let by = id.unwrap_or_else(|| name.clone());
        Some(StopTarget { name, by })
    };
    order.into_iter().filter_map(lives).collect()
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
            workspace: None,
            depends_on: needs.iter().map(need).collect(),
            waits_for: None,
            dismissed: false,
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
        let order = reverse(&all);
        let names: Vec<&str> = order.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["web", "api", "db"]);
        let circle = [service("a", &["b"], true), service("b", &["a"], true)];
        assert_eq!(reverse(&circle).len(), 2);
    }
}
