//! Machines that lack an isolation feature: level high is refused, with the name of the missing
//! feature.

use ostler_model::isolation_resolve::{IsolationRequest, resolve_isolation};
use ostler_model::{ByteString, Capability, IsolationLevel, SandboxSpec};

use crate::report::{Outcome, Report, holds};

pub(crate) fn without_landlock(report: &mut Report) {
    let said = ostler_sandbox::landlock::supported();
    report.that(
        "Landlock is not switched on",
        holds(said == Err(rustix::io::Errno::OPNOTSUPP), || {
            format!("{said:?}")
        }),
    );
    report.that(
        "level high is refused for Landlock",
        refused(Capability::Landlock),
    );
}

pub(crate) fn without_namespaces(report: &mut Report) {
    report.that(
        "level high is refused for namespaces",
        refused(Capability::Namespaces),
    );
}

/// Checks that it is refused for this feature, with a reason, and not for this feature once it may
/// be missing.
fn refused(missing: Capability) -> Outcome {
    let (_, abilities) = ostler_sandbox::probe(false);
    let requested = |degradable: &[Capability]| IsolationRequest {
        level: IsolationLevel::High,
        confinement: Some(SandboxSpec {
            workspace: Some(ByteString::from("/data/work".to_owned())),
            ..SandboxSpec::default()
        }),
        degradable: degradable.to_vec(),
        ..IsolationRequest::default()
    };
    let unmet = resolve_isolation(requested(&[]), &abilities)
        .err()
        .ok_or("not refused")?;
    let named = unmet.missing.iter().find(|it| it.ability == missing);
    let named = named.ok_or_else(|| format!("refused, but: {unmet}"))?;
    holds(!named.reason.is_empty(), || "without a reason".to_owned())?;
    let allowed = resolve_isolation(requested(&[missing]), &abilities);
    let still = allowed.err().map(|unmet| unmet.missing).unwrap_or_default();
    holds(still.iter().all(|it| it.ability != missing), || {
        format!("refused although allowed: {still:?}")
    })
}
