use std::net::SocketAddr;

use super::*;

fn bound(address: &str, process: &str, main: bool) -> ServicePort {
    ServicePort {
        address: address.parse::<SocketAddr>().unwrap(),
        pid: 42,
        process: process.to_owned(),
        main,
        tls: false,
    }
}

fn ready_report<'a>(ports: &'a [ServicePort], warnings: &'a [String]) -> ServiceReport<'a> {
    ServiceReport {
        id: "k3v9x0qa",
        process: ServiceProcess::Running(Some(42)),
        status: "ready",
        url: Some("http://localhost:3000/"),
        ports: ports.iter().collect(),
        evidence: Some("127.0.0.1:3000 listens; GET / answered 200"),
        warnings,
        waits_for: None,
    }
}

#[test]
fn a_start_is_reported_with_the_documented_sentences_with_what_is_known() {
    let ports = [
        bound("127.0.0.1:9229", "node", false),
        bound("0.0.0.0:3000", "node", true),
        bound("[::]:3000", "node", false),
    ];
    let warnings = ["asked for port 3000, got 3001".to_owned()];
    assert_eq!(
        render_started(&ready_report(&ports, &warnings)),
        "Service started with ID: k3v9x0qa. Status: ready. The service is running in the \
         background.\n\
         URL: http://localhost:3000/\n\
         Ports: 3000 (node), 9229 (node, debugger)\n\
         Evidence: 127.0.0.1:3000 listens; GET / answered 200\n\
         Warning: asked for port 3000, got 3001"
    );
    let bare = ServiceReport {
        url: None,
        evidence: None,
        status: "starting",
        ..ready_report(&[], &[])
    };
    assert_eq!(
        render_started(&bare),
        "Service started with ID: k3v9x0qa. Status: starting. The service is running in the \
         background."
    );
}

#[test]
fn failures_are_reported_with_the_documented_sentences() {
    assert_eq!(
        render_not_started("Working directory '/x' does not exist."),
        "Failed to start service: Working directory '/x' does not exist."
    );
    assert_eq!(
        render_not_ready(&timeout_reason(&ReadyCondition::Auto, 60_000), false),
        "Service failed to become ready: not ready within 60000ms"
    );
    assert_eq!(
        render_not_ready(&timeout_reason(&ReadyCondition::Log, 60_000), false),
        "Service failed to become ready: Service ready pattern not matched within 60000ms"
    );
    let health = ReadyCondition::Http {
        target: "/health".to_owned(),
    };
    assert_eq!(
        render_not_ready(&timeout_reason(&health, 500), false),
        "Service failed to become ready: Health check failed within 500ms"
    );
    assert_eq!(
        end_reason(Some("exit code 1"), false),
        "exit code 1 before it was ready"
    );
}

#[test]
fn the_end_of_a_ready_service_is_no_failure_to_become_ready() {
    assert_eq!(
        render_not_ready(&end_reason(Some("stopped by cli"), true), true),
        "Service was ready and is no longer: stopped by cli"
    );
    assert_eq!(
        render_not_ready(&end_reason(None, true), true),
        "Service was ready and is no longer: it ended with exit code 0"
    );
}

#[test]
fn a_running_command_is_reported_with_what_it_waits_for() {
    let waiting = ServiceReport {
        status: "listening",
        waits_for: Some("an answer from http://127.0.0.1:3000/".to_owned()),
        ..ready_report(&[], &[])
    };
    assert_eq!(
        render_still_running(&waiting),
        "It is still running: ID k3v9x0qa, pid 42; status listening; it waits for an answer \
         from http://127.0.0.1:3000/"
    );
}

#[test]
fn a_process_that_ended_is_not_reported_as_running() {
    let report = |phase, attempt, waits_for: &str| ServiceReport {
        status: "starting",
        process: ServiceProcess::new(phase, attempt, Some(42)),
        waits_for: Some(waits_for.to_owned()),
        ..ready_report(&[], &[])
    };
    assert_eq!(
        render_still_running(&report(Phase::Starting, 1, "its next attempt")),
        "It will be started again: ID k3v9x0qa; status starting; it waits for its next attempt"
    );
    assert_eq!(
        render_still_running(&report(Phase::Starting, 0, "its program to start")),
        "It is not running yet: ID k3v9x0qa; status starting; it waits for its program to start"
    );
}

#[test]
fn a_debugger_people_mean_is_no_debugger() {
    let alone = bound("127.0.0.1:5678", "", true);
    assert_eq!(render_ports(&[&alone]), "5678");
    let beside = bound("127.0.0.1:5678", "", false);
    assert_eq!(render_ports(&[&beside]), "5678 (debugger)");
}
