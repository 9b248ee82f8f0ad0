//! `ostler service down`: the reverse of `up`.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use clap::Args;
use ostler_api::{ServiceBody, StopBody};

use super::client::{AllWorkspacesArgs, service_client};
use super::manifest::no_services_error;
use super::stop_restart::{StopOptions, StopTarget, stop_targets};
use super::up::manifest_of;
use crate::batch::BatchExit;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;
use crate::paths::home;

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
    workspaces: AllWorkspacesArgs,
    /// At once, without a polite request
    #[arg(short, long)]
    force: bool,
    /// What became of each, as JSON
    #[arg(long)]
    json: bool,
}

/// Stops the running services that are defined.
///
/// # Errors
/// When the daemon cannot be reached.
pub(super) fn run(context: &CliContext, args: &DownArgs) -> CommandResult {
    let client = service_client(context, args.cwd.clone())?.with_workspaces(args.workspaces);
    let body = StopBody {
        force: args.force,
        ..StopBody::default()
    };
    block_on(async {
        let options = StopOptions {
            body,
            json: args.json,
        };
        if !args.names.is_empty() {
            let targets: Vec<StopTarget> = args
                .names
                .iter()
                .map(|name| StopTarget::from_name(name))
                .collect();
            return stop_targets(&client, &targets, &options).await;
        }
        let list = client.list_all().await?;
        let is_defined = |service: &ServiceBody| manifest_of(service).is_some();
        let defined: Vec<ServiceBody> = list.into_iter().filter(is_defined).collect();
        if defined.is_empty() && !args.workspaces.all_workspaces {
            return Err(no_services_error(client.cwd.as_path(), &home(&context.env)));
        }
        let mut exit = BatchExit::default();
        for services in by_workspace(defined) {
            exit.add_code(stop_targets(&client, &stop_order(&services), &options).await?);
        }
        Ok(exit.code())
    })
}

/// Groups services by workspace: names are unique within one.
fn by_workspace(services: Vec<ServiceBody>) -> Vec<Vec<ServiceBody>> {
    let mut all: BTreeMap<Option<String>, Vec<ServiceBody>> = BTreeMap::new();
    for service in services {
        let file = manifest_of(&service).map(str::to_owned);
        all.entry(file).or_default().push(service);
    }
    all.into_values().collect()
}

/// The running services, each before those it depends on.
fn stop_order(services: &[ServiceBody]) -> Vec<StopTarget> {
    let mut order = Vec::new();
    let mut visited = HashSet::new();
    for service in services {
        visit(service, services, &mut visited, &mut order);
    }
    order.reverse();
    let living_target = |name: String| {
        let living = services.iter().find(|it| it.living && it.name == name)?;
        let id = living.execution.as_ref().map(|info| info.id.clone());
        let selector = id.unwrap_or_else(|| name.clone());
        Some(StopTarget { name, selector })
    };
    order.into_iter().filter_map(living_target).collect()
}

/// Visits a service after its dependencies; a cycle is cut where it is entered.
fn visit<'a>(
    service: &'a ServiceBody,
    all: &'a [ServiceBody],
    visited: &mut HashSet<&'a str>,
    order: &mut Vec<String>,
) {
    if !visited.insert(&service.name) {
        return;
    }
    for dependency in &service.depends_on {
        if let Some(dependency_service) = all.iter().find(|it| it.name == dependency.name) {
            visit(dependency_service, all, visited, order);
        }
    }
    order.push(service.name.clone());
}

#[cfg(test)]
mod tests {
    use ostler_model::{Dependency, DependencyCondition};

    use super::*;

    fn service(name: &str, needs: &[&str], living: bool) -> ServiceBody {
        let need = |name: &&str| Dependency {
            name: (*name).to_owned(),
            condition: DependencyCondition::Ready,
        };
        ServiceBody {
            name: name.to_owned(),
            status: "ready".to_owned(),
            living,
            command: String::new(),
            defined_in: Some("/srv/ostler.toml".to_owned()),
            definition: None,
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
        let order = stop_order(&all);
        let names: Vec<&str> = order.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["web", "api", "db"]);
        let circle = [service("a", &["b"], true), service("b", &["a"], true)];
        assert_eq!(stop_order(&circle).len(), 2);
    }
}
