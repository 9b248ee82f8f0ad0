//! The terminal requirements, one test each, through the library alone: functions (REQ-001 to
//! REQ-013, REQ-005A) and qualities (NFR-001 to NFR-003, NFR-005). The acceptance criterion is
//! above each test.
//!
//! Each test runs twice: with sessions that end with this program, and with this program as the
//! zygote, where they outlive it.

mod engine_fixture;
mod qualities;
mod requirements;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use ostler::process::{ZYGOTE_ARGUMENT, zygote_main};

use engine_fixture::{EMBEDDER_ARGUMENT, ZygoteMode, run};

/// One trial per test and zygote configuration.
macro_rules! trials {
    ($($module:ident::$test:ident),* $(,)?) => {
        vec![$(
            Trial::test(concat!(stringify!($test), "::in_process"), || {
                run(ZygoteMode::No, $module::$test)
            }),
            Trial::test(concat!(stringify!($test), "::kept"), || {
                run(ZygoteMode::Yes, $module::$test)
            }),
        )*]
    };
}

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.as_deref() == Some(ZYGOTE_ARGUMENT) {
        zygote_main();
    }
    if first.as_deref() == Some(EMBEDDER_ARGUMENT) {
        return engine_fixture::embed();
    }
    let trials = trials![
        requirements::req_001_spawn_answers_an_id_and_the_session_runs,
        requirements::req_002_spawn_takes_arguments_directory_environment_and_size,
        requirements::req_003_output_is_seen_while_the_program_prints,
        requirements::req_004_output_is_had_whole_and_an_unknown_session_is_an_error,
        requirements::req_005_the_view_keeps_the_newest_megabyte,
        requirements::req_005a_output_is_read_by_offset_and_limit,
        requirements::req_006_text_and_keys_reach_the_program,
        requirements::req_007_status_tells_how_it_ended,
        requirements::req_008_kill_by_term_kill_and_int,
        requirements::req_009_list_has_every_session,
        requirements::req_010_ended_sessions_are_cleaned_and_expire,
        requirements::req_011_a_new_size_reaches_the_program,
        requirements::req_012_events_of_output_and_of_the_end_once,
        requirements::req_013_destroy_ends_everything,
        qualities::nfr_001_fifty_sessions_at_once,
        qualities::nfr_002_output_is_reported_as_it_comes,
        qualities::nfr_003_fifty_sessions_fit,
        qualities::nfr_005_an_abnormal_end_is_reported_and_leaves_no_zombie,
        qualities::nfr_005_no_session_is_lost_or_left_when_the_program_is_killed,
        qualities::nfr_005_every_exit_is_reported_once_under_load,
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
