//! Parameters of starts about isolation.

use ostler_engine::StartRequest;
use ostler_model::{
    BackendName, Capability, IsolationLevel, Limits, NetworkAccess, PortForward, PortForwardError,
};

use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The levels.
pub(in crate::tools) const LEVELS: ParameterKind =
    ParameterKind::Choice(&["basic", "medium", "high", "container"]);
/// What runs the command; container alone means level container.
pub(in crate::tools) const BACKEND: Parameter = Parameter::optional(
    "backend",
    ParameterKind::Choice(&["local", "container"]),
    "",
);
/// The image of a container; alone it means level container.
pub(in crate::tools) const IMAGE: Parameter =
    Parameter::optional("image", ParameterKind::Text, "container: its image");
pub(in crate::tools) const NETWORK: Parameter = Parameter::optional(
    "network",
    ParameterKind::Hosts,
    "high: none, full or hosts; container: bridge or none",
);
pub(in crate::tools) const WORKSPACE: Parameter = Parameter::optional(
    "workspace",
    ParameterKind::Choice(&["direct", "overlay"]),
    "overlay: keep writes apart",
);
pub(in crate::tools) const ALLOW_DEGRADED: Parameter =
    Parameter::optional("allow_degraded", ParameterKind::List, "");
pub(in crate::tools) const FORWARD: Parameter =
    Parameter::optional("forward", ParameterKind::List, "");
pub(in crate::tools) const SECRETS: Parameter =
    Parameter::optional("secrets", ParameterKind::List, "By name, into env");
pub(in crate::tools) const APPROVAL: Parameter =
    Parameter::optional("approval", ParameterKind::Text, "");
pub(in crate::tools) const LIMITS: Parameter = Parameter::optional(
    "limits",
    ParameterKind::Amounts,
    "memory 512M, cpus 0.5, pids, disk 1G, files",
);

/// Takes the isolation parameters of a start from the arguments.
pub(in crate::tools) fn apply_isolation(
    request: &mut StartRequest,
    arguments: &mut Arguments,
) -> Result<(), ApiError> {
    apply_level(request, arguments)?;
    let in_container = request.options.level == Some(IsolationLevel::Container);
    if in_container && arguments.is_given("network") {
        request.options.container.network = Some(arguments.list("network").join(","));
    } else if arguments.is_given("network") {
        let words = arguments.list("network");
        let network = NetworkAccess::from_words(words.iter().map(String::as_str));
        let wrong = |error| ApiError::value(format!("parameter 'network': {error}"));
        request.options.sandbox.network = Some(network.map_err(wrong)?);
    }
    request.options.sandbox.overlay = arguments.text("workspace").as_deref() == Some("overlay");
    for word in arguments.list("allow_degraded") {
        let capability: Result<Capability, ostler_model::CapabilityError> = word.parse();
        let wrong = |error| ApiError::value(format!("parameter 'allow_degraded': {error}"));
        request
            .options
            .sandbox
            .allow_degraded
            .push(capability.map_err(wrong)?);
    }
    for word in arguments.list("forward") {
        let wrong = |error| ApiError::value(format!("parameter 'forward': {error}"));
        let forward: Result<PortForward, PortForwardError> = word.parse();
        request
            .options
            .sandbox
            .forwards
            .push(forward.map_err(wrong)?);
    }
    request.options.secrets = arguments.list("secrets");
    request.options.approval = arguments.text("approval");
    request.options.limits = parse_limits(arguments)?;
    Ok(())
}

/// Takes the level and the image of a container from the arguments.
pub(in crate::tools) fn apply_level(
    request: &mut StartRequest,
    arguments: &mut Arguments,
) -> Result<(), ApiError> {
    let image = arguments.text("image");
    let backend = arguments.text("backend").map(BackendName);
    let in_container = image.is_some() || backend == Some(BackendName::container());
    let implied = in_container.then_some(IsolationLevel::Container);
    request.options.backend = backend;
    let level = parse_level(arguments)?.or(implied);
    request.options.level = level.or(request.options.level);
    request.options.container.image = image;
    Ok(())
}

/// The requested level; none means the setting.
pub(in crate::tools) fn parse_level(
    arguments: &mut Arguments,
) -> Result<Option<IsolationLevel>, ApiError> {
    let word = arguments.text("isolation").map(|word| word.parse());
    word.transpose()
        .map_err(|error: ostler_model::isolation::IsolationLevelError| {
            ApiError::value(error.to_string())
        })
}

fn parse_limits(arguments: &mut Arguments) -> Result<Limits, ApiError> {
    let mut limits = Limits::default();
    let mut problems = Vec::new();
    for (name, given) in arguments.map("limits") {
        if let Err(error) = limits.set(&name, &given) {
            problems.push(format!("parameter 'limits': {error}"));
        }
    }
    if problems.is_empty() {
        Ok(limits)
    } else {
        Err(ApiError::value(problems.join("; ")))
    }
}
