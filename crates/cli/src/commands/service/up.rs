//! `ostler service up`: what `ostler.toml` and the API define.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use hyper::Method;
use ostler_model::{ErrorCode, IsolationLevel};
use ostler_server::wire::{ServiceBody, UpBody, UppedBody};

use super::answer::{How, awaited, left, refused};
use super::ask::{Desk, approved, desk};
use super::board::{Board, Row};
use super::manifest::nothing_defined;
use super::waiting::{Interrupt, Over, START_GRACE, WaitArgs, watched};
use crate::client::Body;
use crate::commands::parse;
use crate::error::{CommandError, Outcome};
use crate::paths::home;
use crate::setup::{Setup, block_on};

/// What `up` takes.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Only these, with what they depend on
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    wait: WaitArgs,
    /// Where ostler.toml is looked for, upwards; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// How far to wall off those whose definition does not say: basic, medium, high
    #[arg(long, value_name = "LEVEL", value_parser = parse::level)]
    isolation: Option<IsolationLevel>,
    /// Everything known of them, as JSON
    #[arg(long)]
    json: bool,
}

/// Brings up services.
///
/// # Errors
/// When nothing is defined, or something cannot be started or waited for.
pub(super) fn run(setup: &Setup, args: UpArgs) -> Outcome {
    let how = How {
        json: args.json,
        single: false,
    };
    let desk = desk(setup, args.cwd)?;
    let mut body = body(setup, &desk, args.names);
    body.isolation = args.isolation.or(body.isolation);
    bring(setup, (desk, body), args.wait, how)
}

/// Brings up one that is defined.
///
/// # Errors
/// As [`run`].
pub(super) fn ensure(setup: &Setup, name: String, wait: WaitArgs, json: bool) -> Outcome {
    let desk = desk(setup, None)?;
    let body = body(setup, &desk, vec![name]);
    bring(
        setup,
        (desk, body),
        wait,
        How {
            json,
            single: false,
        },
    )
}

fn body(setup: &Setup, desk: &Desk, names: Vec<String>) -> UpBody {
    let policy = setup.config.front_policy();
    UpBody {
        cwd: desk.cwd.clone(),
        names,
        base_env: setup.env.to_texts(),
        isolation: policy.isolation,
        allowed: policy.allowed_commands,
        cli: true,
        ..UpBody::default()
    }
}

fn bring(setup: &Setup, (desk, mut body): (Desk, UpBody), wait: WaitArgs, how: How) -> Outcome {
    let mut board = Board::new(setup, how.json);
    block_on(async {
        if body.names.is_empty() {
            body.names = of_the_workspace(setup, &desk).await?;
        }
        let mut interrupt = Interrupt::catch()?;
        let names: HashSet<&str> = body.names.iter().map(String::as_str).collect();
        let look = || rows(&desk, &names);
        let asked = ask(&desk, &body);
        let seats = (&mut board, &mut interrupt);
        let upped = match watched(asked, seats, START_GRACE, look).await? {
            Over::Done(upped) => upped.services,
            Over::Interrupted(late) => {
                let late = late.map(|upped| upped.services).unwrap_or_default();
                return Ok(left(&late));
            }
        };
        let how = How {
            single: how.single || upped.len() == 1,
            ..how
        };
        awaited(&desk.client, upped, wait, how, (&mut board, &mut interrupt)).await
    })
}

/// The names the workspace's `ostler.toml` defines: what is defined by other means is brought
/// up by name only.
async fn of_the_workspace(setup: &Setup, desk: &Desk) -> Result<Vec<String>, CommandError> {
    let list = desk.every().await?;
    let defined = list.into_iter().filter(in_a_file);
    let names: Vec<String> = defined.map(|service| service.name).collect();
    if names.is_empty() {
        return Err(nothing_defined(desk.cwd.as_path(), &home(&setup.env)));
    }
    Ok(names)
}

async fn ask(desk: &Desk, body: &UpBody) -> Result<UppedBody, CommandError> {
    let told = format!("service up {}", body.names.join(" "));
    let asked = approved(&desk.client, &told, |approval| async move {
        let body = UpBody {
            approval,
            ..body.clone()
        };
        let body = Body::json(&body)?;
        desk.client
            .call(Method::POST, "/api/v1/services/up", body)
            .await
    });
    match asked.await {
        Err(error) if error.code() == Some(ErrorCode::ProcessNotFound) => {
            let name = body.names.first().map_or("", String::as_str);
            desk.or_suggest(name, Err(error)).await
        }
        answer => answer.map_err(refused),
    }
}

/// Whether it stands in an `ostler.toml`.
pub(super) fn in_a_file(service: &ServiceBody) -> bool {
    service
        .defined_in
        .as_deref()
        .is_some_and(|place| place != "api")
}

/// What is seen of the services that are brought up.
async fn rows(desk: &Desk, names: &HashSet<&str>) -> Vec<Row> {
    let list = desk.every().await.unwrap_or_default();
    let wanted = |service: &&ServiceBody| names.contains(service.name.as_str());
    list.iter().filter(wanted).map(Row::of).collect()
}
