//! Terminals by single requests: screen, raw output, keys, size.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_api::{
    InputPieceBody, KeysBody, KeysResponse, ResizeBody, ScreenBody, TerminalOutputBody,
};
use ostler_engine::{TerminalInput, TerminalPageQuery};
use ostler_model::ByteString;
use ostler_terminal::{InputPiece, Key, KeyError};

use super::caller::RequestCaller;
use super::extract::{JsonBody, SessionPathId};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::screen_body;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The largest offset in a query.
const OFFSET_LIMIT: i64 = i64::MAX;
/// The most input pieces of one request.
const PIECES: usize = 10_000;

const OUTPUT: &[Parameter] = &[
    Parameter::optional(
        "offset",
        ParameterKind::Integer(0, OFFSET_LIMIT),
        "The first byte",
    ),
    Parameter::optional(
        "limit",
        ParameterKind::Integer(1, OFFSET_LIMIT),
        "At most so many bytes",
    ),
];

/// `GET /api/v1/executions/{id}/screen`: the screen of a terminal session.
pub(super) async fn screen(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    query_string: QueryString,
) -> RestResult<Json<ScreenBody>> {
    query_string.check(&[])?;
    let screen = state.engine.screen(&caller, &id).await?;
    Ok(Json(screen_body(screen)))
}

/// `GET /api/v1/executions/{id}/terminal/output`: raw output of a terminal session.
pub(super) async fn output(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    query_string: QueryString,
) -> RestResult<Json<TerminalOutputBody>> {
    let arguments = query_string.check(OUTPUT)?;
    let query = TerminalPageQuery {
        offset: arguments.count("offset"),
        limit: arguments.count("limit"),
    };
    let page = state.engine.read_terminal(&caller, &id, query).await?;
    Ok(Json(TerminalOutputBody {
        data: ByteString::from(page.data),
        offset: page.offset,
        next_offset: page.next_offset,
        start_offset: page.start_offset,
        end_offset: page.end_offset,
        truncated: page.truncated,
    }))
}

/// `POST /api/v1/executions/{id}/keys`: types text and keys into a terminal session.
pub(super) async fn keys(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    JsonBody(body): JsonBody<KeysBody>,
) -> RestResult<Json<KeysResponse>> {
    if body.pieces.len() > PIECES {
        let message = format!(
            "field 'pieces' has {} entries; allowed: {PIECES}",
            body.pieces.len()
        );
        return Err(HttpProblem::value(message));
    }
    let pieces = body.pieces.into_iter().enumerate();
    let typing = TerminalInput {
        pieces: pieces
            .map(|(index, body)| parse_piece(index, body))
            .collect::<RestResult<_>>()?,
        lease: None,
    };
    let typed = state.engine.send_input(&caller, &id, typing).await?;
    Ok(Json(KeysResponse {
        bytes: typed.bytes,
        taken: typed.accepted,
    }))
}

fn parse_piece(index: usize, body: InputPieceBody) -> RestResult<InputPiece> {
    Ok(match body {
        InputPieceBody::Text(text) => InputPiece::Text(text),
        InputPieceBody::Paste(text) => InputPiece::Paste(text),
        InputPieceBody::Key(name) => {
            let to_problem =
                |error: KeyError| HttpProblem::value(format!("field 'pieces[{index}]': {error}"));
            InputPiece::Key(name.parse::<Key>().map_err(to_problem)?)
        }
        InputPieceBody::Base64(given) => {
            let to_problem = |_| HttpProblem::value(format!("field 'pieces[{index}]': no base64"));
            InputPiece::Raw(STANDARD.decode(given).map_err(to_problem)?)
        }
    })
}

/// `POST /api/v1/executions/{id}/resize`: resizes a terminal session.
pub(super) async fn resize(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    JsonBody(body): JsonBody<ResizeBody>,
) -> RestResult<StatusCode> {
    let resized = state
        .engine
        .resize_terminal(&caller, &id, body.into(), None);
    resized.await?;
    Ok(StatusCode::NO_CONTENT)
}
