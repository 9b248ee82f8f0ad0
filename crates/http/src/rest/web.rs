//! The page: signing in and out, and links that sign in.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{CACHE_CONTROL, ORIGIN, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use ostler_api::{WebLinkBody, WebSessionBody, WebSignInBody};
use ostler_interface::http::HttpProblem;
use ostler_model::{ErrorCode, Principal};

use super::caller::RequestCaller;
use super::extract::{JsonBody, NoBody};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use super::tokens::ManagedTokens;
use crate::listen::PeerAddr;
use crate::origin_check::requested_host;
use crate::tokens::{AccessToken, TokenValidity};
use crate::web::{
    PageCredentials, PageSession, SessionCookie, SignInError, SignInOutcome, SignInSecret,
    WebAccess, WebLinkError, cookie_name,
};

/// What to do where HTTP is configured and not served.
pub const HTTP_PROBLEM_HINT: &str = "end what listens there (`ss -ltnp` shows it) or set http.port \
                                     to another port, then `ostler shutdown`: the next daemon \
                                     serves it";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// `GET /api/v1/web/session`: who is signed in, and whether one needs to be.
pub(super) async fn session(
    RequestCaller(caller): RequestCaller,
    page: PageRequest,
    query_string: QueryString,
) -> RestResult<Json<WebSessionBody>> {
    query_string.check(&[])?;
    Ok(Json(match page.token {
        Some(token) => session_body(&token, None),
        None => open_body(caller.owner.principal),
    }))
}

/// `POST /api/v1/web/session`: signs a page in with a token, or with the code of a link. The answer
/// sets a cookie and has the page key; every request of the page needs both.
pub(super) async fn sign_in(
    State(state): State<RestState>,
    page: PageRequest,
    query_string: QueryString,
    JsonBody(body): JsonBody<WebSignInBody>,
) -> RestResult<Response> {
    query_string.check(&[])?;
    let secret = secret_of(body)?;
    let web = web_access(&state)?;
    let cookie = page.cookie(&web);
    let signing_in = move || web.sign_in(&secret, page.address);
    let signed_in = tokio::task::spawn_blocking(signing_in).await;
    let outcome = signed_in.map_err(|_| ostler_engine::Error::Closing)?;
    let mut response = match outcome {
        Ok(SignInOutcome::Page(session)) => signed_in_response(&session, &cookie)?,
        Ok(SignInOutcome::NotNeeded(principal)) => Json(open_body(principal)).into_response(),
        Err(error) => refusal(&error),
    };
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    Ok(response)
}

/// `DELETE /api/v1/web/session`: signs a page out. The cookie is deleted, and the token is revoked
/// where a link made it.
pub(super) async fn sign_out(
    State(state): State<RestState>,
    page: PageRequest,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Response> {
    query_string.check(&[])?;
    let web = web_access(&state)?;
    let cookie = page.cookie(&web);
    if let PageCredentials::Secrets(secrets) = page.credentials {
        let signing_out = move || web.sign_out(&secrets);
        let signed_out = tokio::task::spawn_blocking(signing_out).await;
        let signed_out = signed_out.map_err(|_| ostler_engine::Error::Closing)?;
        signed_out.map_err(|error| HttpProblem::new(error.code(), error.to_string(), None))?;
    }
    let deletion = cookie.delete().ok_or_else(no_cookie)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, deletion)]).into_response())
}

/// `POST /api/v1/web/codes`: makes a link that opens the page and signs in, once. Over the daemon's
/// socket only, as all routes of tokens.
pub(super) async fn open_link(
    State(state): State<RestState>,
    ManagedTokens(_): ManagedTokens,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<(StatusCode, Json<WebLinkBody>)> {
    query_string.check(&[])?;
    let link = web_access(&state)?.open_link(caller.owner.principal);
    let link = link.map_err(link_problem)?;
    let body = WebLinkBody {
        url: link.url,
        expires: link.expires,
    };
    Ok((StatusCode::CREATED, Json(body)))
}

/// What a request says of the page that sends it.
pub(super) struct PageRequest {
    /// The name of the page's cookie.
    cookie_name: String,
    /// Whether the page came by https, through a proxy.
    is_https: bool,
    /// Where the page is; none on the daemon's socket.
    address: Option<IpAddr>,
    credentials: PageCredentials,
    /// The token that the request was authenticated with.
    token: Option<AccessToken>,
}

impl<S: Sync> FromRequestParts<S> for PageRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let host = requested_host(&parts.uri, &parts.headers);
        let origin = parts.headers.get(ORIGIN);
        let address = parts.extensions.get::<PeerAddr>();
        let validity = parts.extensions.get::<TokenValidity>();
        Ok(Self {
            cookie_name: host.as_ref().map_or_else(String::new, cookie_name),
            is_https: origin.is_some_and(|origin| origin.as_bytes().starts_with(b"https://")),
            address: address.map(|PeerAddr(address)| *address),
            credentials: PageCredentials::of(parts),
            token: validity.map(|validity| validity.token().clone()),
        })
    }
}

impl PageRequest {
    fn cookie(&self, web: &WebAccess) -> SessionCookie {
        SessionCookie {
            name: self.cookie_name.clone(),
            url_prefix: web.url_prefix().to_owned(),
            is_secure: self.is_https,
        }
    }
}

fn web_access(state: &RestState) -> RestResult<WebAccess> {
    state.web.clone().ok_or_else(|| match &state.http_problem {
        Some(problem) => {
            let message = format!("HTTP is not served: {problem}");
            HttpProblem::new(ErrorCode::Initialization, message, None).with_hint(HTTP_PROBLEM_HINT)
        }
        None => {
            let problem = "this daemon serves no page: it does not serve HTTP";
            HttpProblem::new(ErrorCode::Initialization, problem, None)
                .with_hint("`ostler serve` does, or a daemon with the setting http.port")
        }
    })
}

fn secret_of(body: WebSignInBody) -> RestResult<SignInSecret> {
    match (body.token, body.code) {
        (Some(token), None) => Ok(SignInSecret::Token(token)),
        (None, Some(code)) => Ok(SignInSecret::Code(code)),
        (None, None) | (Some(_), Some(_)) => {
            let message = "the body: one of the fields 'token' and 'code' must be given";
            Err(HttpProblem::value(message))
        }
    }
}

fn session_body(token: &AccessToken, page_key: Option<String>) -> WebSessionBody {
    WebSessionBody {
        token_needed: true,
        principal: token.principal.clone(),
        scopes: token.scopes.iter().map(ToString::to_string).collect(),
        expires: token.expires,
        page_key,
    }
}

fn open_body(principal: Principal) -> WebSessionBody {
    WebSessionBody {
        token_needed: false,
        principal,
        scopes: Vec::new(),
        expires: None,
        page_key: None,
    }
}

fn signed_in_response(session: &PageSession, cookie: &SessionCookie) -> RestResult<Response> {
    let PageSession {
        halves,
        token,
        cookie_seconds,
    } = session;
    let cookie = cookie.set(&halves.cookie, *cookie_seconds);
    let cookie = cookie.ok_or_else(no_cookie)?;
    let body = session_body(token, Some(halves.page_key.clone()));
    Ok(([(SET_COOKIE, cookie)], Json(body)).into_response())
}

fn no_cookie() -> HttpProblem {
    HttpProblem::new(ErrorCode::Internal, "the cookie cannot be made", None)
}

/// The response for a sign-in that failed.
fn refusal(error: &SignInError) -> Response {
    let code = match error {
        SignInError::Tokens(error) => error.code(),
        SignInError::TooMany(_) => ErrorCode::QuotaExceeded,
        SignInError::UnknownToken | SignInError::ExpiredToken | SignInError::UnknownCode => {
            ErrorCode::Permission
        }
    };
    let problem = HttpProblem::new(code, error.to_string(), None);
    let (problem, header) = match error {
        SignInError::Tokens(_) => return problem.into_response(),
        SignInError::TooMany(limit) => {
            let seconds = limit.wait.as_secs() + 1;
            let problem = problem.with_hint(format!("try again in {seconds} s"));
            (problem, (RETRY_AFTER, HeaderValue::from(seconds)))
        }
        SignInError::UnknownToken | SignInError::ExpiredToken | SignInError::UnknownCode => {
            let hint = "make a link with `ostler token link`, or a token with `ostler token new`, \
                        on the daemon's machine";
            let challenge = r#"Bearer realm="ostler", error="invalid_token""#;
            let problem = problem.with_status(401).with_hint(hint);
            let challenge = HeaderValue::from_static(challenge);
            (problem, (WWW_AUTHENTICATE, challenge))
        }
    };
    let mut response = problem.into_response();
    response.headers_mut().insert(header.0, header.1);
    response
}

fn link_problem(error: WebLinkError) -> HttpProblem {
    let message = error.to_string();
    match error {
        WebLinkError::Full { wait } => {
            let hint = format!("open one of them, or wait {} s", wait.as_secs() + 1);
            HttpProblem::new(ErrorCode::QuotaExceeded, message, Some(hint))
        }
        WebLinkError::Random(_) => HttpProblem::new(ErrorCode::Internal, message, None),
    }
}
