//! Command templates.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use ostler_api::{CommandTemplateBody, CommandTemplatesBody};
use ostler_interface::convert::{command_template_body, command_templates_body};
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_interface::templates::find_template;

use super::caller::RequestCaller;
use super::extract::PathId;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

const CWD: Parameter = Parameter::optional(
    "cwd",
    ParameterKind::Text,
    "The absolute path of a directory, to include the templates of its project",
);

const LIST: &[Parameter] = &[
    Parameter::optional(
        "category",
        ParameterKind::Text,
        "Only those of this category",
    ),
    CWD,
];

const ONE: &[Parameter] = &[CWD];

/// `GET /api/v1/command-templates`: the command templates.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<CommandTemplatesBody>> {
    let mut arguments = query_string.check(LIST)?;
    let category = arguments.text("category");
    let directory = directory(&mut arguments)?;
    let projects = &caller.projects.visible;
    let catalog = state.templates.load(directory, projects).await?;
    Ok(Json(command_templates_body(&catalog, category.as_deref())))
}

/// `GET /api/v1/command-templates/{template}`: one command template.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(id): PathId,
    query_string: QueryString,
) -> RestResult<Json<CommandTemplateBody>> {
    let mut arguments = query_string.check(ONE)?;
    let directory = directory(&mut arguments)?;
    let projects = &caller.projects.visible;
    let catalog = state.templates.load(directory, projects).await?;
    let entry =
        find_template(&catalog, &id).map_err(|error| HttpProblem::from(error).with_status(404))?;
    Ok(Json(command_template_body(entry)))
}

fn directory(arguments: &mut Arguments) -> RestResult<Option<PathBuf>> {
    match arguments.text("cwd") {
        Some(cwd) if !cwd.starts_with('/') => Err(HttpProblem::value(
            "parameter 'cwd' is no absolute path; allowed: the absolute path of a directory",
        )),
        cwd => Ok(cwd.map(PathBuf::from)),
    }
}
