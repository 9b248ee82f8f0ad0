//! What the daemon's machine can enforce, found out by doing it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use axum::Json;
use axum::extract::State;
use ostler_api::DoctorBody;
use ostler_interface::http::HttpProblem;
use ostler_model::ErrorCode;

use super::caller::RequestCaller;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

/// The result of an examination, or why there is none.
pub type HostExamination<'a> =
    Pin<Box<dyn Future<Output = Result<DoctorBody, String>> + Send + 'a>>;

/// Examines the machine. It takes seconds: one examination at a time, which ends also when nobody
/// waits for it any more.
pub trait HostExaminer: Send + Sync + fmt::Debug {
    /// Examines it now.
    fn examine(&self) -> HostExamination<'_>;
}

/// `GET /api/v1/doctor`: examines the machine: what `ostler doctor` shows.
pub(super) async fn doctor(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<DoctorBody>> {
    query_string.check(&[])?;
    if !caller.sees_all() {
        let message = "the machine is examined for those who see all of it: a token needs the scope \
                       sessions:all, and none that names a project";
        return Err(HttpProblem::new(ErrorCode::Permission, message, None));
    }
    let Some(examiner) = state.examiner.clone() else {
        let message = "this server examines no machine; `ostler doctor` does";
        return Err(HttpProblem::new(ErrorCode::Environment, message, None));
    };
    let examined = state.unless_shutting_down(examiner.examine()).await?;
    let problem = |message| HttpProblem::new(ErrorCode::Environment, message, None);
    Ok(Json(examined.map_err(problem)?))
}
