//! Tokens for access over HTTP, managed by the daemon's user over its socket.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use ostler_api::{NewTokenBody, TokenBody, TokenCreatedBody, TokensBody};
use ostler_interface::http::HttpProblem;
use ostler_model::{ErrorCode, RequestChannel, Scope, Timestamp};

use super::caller::{RequestCaller, daemon_principal};
use super::extract::{JsonBody, NoBody, PathId};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use crate::tokens::{AccessToken, NewToken, TokenError, TokenScope, TokenStore, token_principal};

/// `GET /api/v1/tokens`: the tokens. Over the daemon's socket only, as all routes of tokens.
pub(super) async fn list(
    ManagedTokens(store): ManagedTokens,
    query_string: QueryString,
) -> RestResult<Json<TokensBody>> {
    query_string.check(&[])?;
    let tokens = blocking(move || {
        let tokens = store.list()?;
        Ok(tokens.iter().map(|it| token_body(it, &store)).collect())
    });
    Ok(Json(TokensBody {
        tokens: tokens.await?,
    }))
}

/// `POST /api/v1/tokens`: creates a token; the answer has its secret.
pub(super) async fn create(
    ManagedTokens(store): ManagedTokens,
    JsonBody(body): JsonBody<NewTokenBody>,
) -> RestResult<(StatusCode, Json<TokenCreatedBody>)> {
    let (name, expires) = (body.name.clone(), body.expires);
    let new = new_token(body)?;
    let principal = new.principal.clone();
    let secret = blocking(move || store.create(new)).await?;
    let body = TokenCreatedBody {
        name,
        principal,
        expires,
        token: secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(body)))
}

/// `DELETE /api/v1/tokens/{name}`: revokes a token; what it opened ends.
pub(super) async fn revoke(
    ManagedTokens(store): ManagedTokens,
    PathId(name): PathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<StatusCode> {
    query_string.check(&[])?;
    blocking(move || store.revoke(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The tokens, for a caller who may manage them: a token authenticates any principal.
pub(super) struct ManagedTokens(pub(super) TokenStore);

impl FromRequestParts<RestState> for ManagedTokens {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &RestState) -> Result<Self, HttpProblem> {
        let RequestCaller(caller) = RequestCaller::from_request_parts(parts, state).await?;
        let owner = &caller.owner;
        let is_manager = owner.channel == RequestChannel::Local
            && caller.scope == Scope::Principal
            && owner.principal == daemon_principal();
        if !is_manager {
            let message = "tokens are managed by the daemon's user over its socket";
            let problem = HttpProblem::new(ErrorCode::Permission, message, None);
            return Err(problem.with_hint("`ostler token` does that"));
        }
        state.tokens.clone().map(Self).ok_or_else(|| {
            let message = "this daemon has no tokens";
            HttpProblem::new(ErrorCode::Storage, message, None)
        })
    }
}

fn new_token(body: NewTokenBody) -> RestResult<NewToken> {
    let NewTokenBody {
        name,
        principal,
        scopes,
        expires,
    } = body;
    let principal = match principal {
        Some(name) => token_principal(&name)
            .map_err(|allowed| HttpProblem::value(format!("field 'principal': {allowed}")))?,
        None => daemon_principal(),
    };
    if let Some(at) = expires.filter(|at| *at <= Timestamp::now()) {
        let message = format!("field 'expires' is {at}; allowed: a time in the future");
        return Err(HttpProblem::value(message));
    }
    let scopes = scopes.iter().map(|name| scope(name));
    Ok(NewToken {
        name,
        principal,
        scopes: scopes.collect::<RestResult<_>>()?,
        expires,
    })
}

fn scope(name: &str) -> RestResult<TokenScope> {
    let scope = name.parse::<TokenScope>();
    scope.map_err(|error| HttpProblem::value(format!("field 'scopes': {error}")))
}

fn token_body(token: &AccessToken, store: &TokenStore) -> TokenBody {
    TokenBody {
        name: token.name.clone(),
        principal: token.principal.clone(),
        scopes: token.scopes.iter().map(ToString::to_string).collect(),
        created: token.created,
        expires: token.expires,
        used: store.last_use(token),
    }
}

async fn blocking<T: Send + 'static>(
    action: impl FnOnce() -> Result<T, TokenError> + Send + 'static,
) -> RestResult<T> {
    let result = tokio::task::spawn_blocking(action).await;
    let aborted = |_| HttpProblem::new(ErrorCode::Internal, "the work on tokens was aborted", None);
    let result = result.map_err(aborted)?;
    result.map_err(|error| HttpProblem::new(error.code(), error.to_string(), None))
}
