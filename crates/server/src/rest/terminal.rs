//! Terminals by requests: screen, raw output, keys, size.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_engine::{TerminalQuery, Typing};
use ostler_model::Text;
use ostler_terminal::{Key, KeyError, Piece};

use super::answer::Answer;
use super::caller::Asking;
use super::extract::{Body, Session};
use super::query::Asked;
use super::state::RestState;
use crate::params::{Kind, Parameter};
use crate::wire::{
    KeysBody, PieceBody, Problem, ResizeBody, ScreenBody, TerminalOutputBody, TypedBody,
};

/// The largest offset a query can name.
const OFFSET_LIMIT: i64 = i64::MAX;
/// Pieces that can be typed at once.
const PIECES: usize = 10_000;

const OUTPUT: &[Parameter] = &[
    Parameter::optional("offset", Kind::Integer(0, OFFSET_LIMIT), "The first byte"),
    Parameter::optional(
        "limit",
        Kind::Integer(1, OFFSET_LIMIT),
        "At most so many bytes",
    ),
];

/// `GET /api/v1/executions/{id}/screen`.
pub(super) async fn screen(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Session(id): Session,
    asked: Asked,
) -> Answer<Json<ScreenBody>> {
    asked.check(&[])?;
    Ok(Json(state.engine.screen(&caller, &id).await?))
}

/// `GET /api/v1/executions/{id}/terminal/output`.
pub(super) async fn output(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Session(id): Session,
    asked: Asked,
) -> Answer<Json<TerminalOutputBody>> {
    let arguments = asked.check(OUTPUT)?;
    let query = TerminalQuery {
        offset: arguments.count("offset"),
        limit: arguments.count("limit"),
    };
    let page = state.engine.read_terminal(&caller, &id, query).await?;
    Ok(Json(TerminalOutputBody {
        data: Text::from(page.data),
        offset: page.offset,
        next_offset: page.next_offset,
        start_offset: page.start_offset,
        end_offset: page.end_offset,
        truncated: page.truncated,
    }))
}

/// `POST /api/v1/executions/{id}/keys`.
pub(super) async fn keys(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Session(id): Session,
    Body(body): Body<KeysBody>,
) -> Answer<Json<TypedBody>> {
    if body.pieces.len() > PIECES {
        let message = format!(
            "field 'pieces' has {} entries; allowed: {PIECES}",
            body.pieces.len()
        );
        return Err(Problem::value(message));
    }
    let pieces = body.pieces.into_iter().enumerate();
    let typing = Typing {
        pieces: pieces.map(piece).collect::<Answer<_>>()?,
        lease: None,
    };
    let typed = state.engine.type_in(&caller, &id, typing).await?;
    Ok(Json(TypedBody {
        bytes: typed.bytes,
        taken: typed.taken,
    }))
}

fn piece((place, body): (usize, PieceBody)) -> Answer<Piece> {
    Ok(match body {
        PieceBody::Text(text) => Piece::Text(text),
        PieceBody::Paste(text) => Piece::Paste(text),
        PieceBody::Key(name) => {
            let told =
                |error: KeyError| Problem::value(format!("field 'pieces[{place}]': {error}"));
            Piece::Key(name.parse::<Key>().map_err(told)?)
        }
        PieceBody::Base64(given) => {
            let told = |_| Problem::value(format!("field 'pieces[{place}]': no base64"));
            Piece::Raw(STANDARD.decode(given).map_err(told)?)
        }
    })
}

/// `POST /api/v1/executions/{id}/resize`.
pub(super) async fn resize(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Session(id): Session,
    Body(body): Body<ResizeBody>,
) -> Answer<StatusCode> {
    let resized = state
        .engine
        .resize_terminal(&caller, &id, body.into(), None);
    resized.await?;
    Ok(StatusCode::NO_CONTENT)
}
