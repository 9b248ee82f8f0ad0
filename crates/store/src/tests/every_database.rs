//! Each case on each database.

use super::cases;
use super::fixture::Fixture;
use super::server::TestDatabaseServer;

/// Makes a test of each case for files, and one of all cases for a server: it takes a second to
/// start.
macro_rules! on_every_database {
    ($(cases::$name:ident,)*) => {
        mod sqlite {
            $(
                #[test]
                fn $name() {
                    crate::tests::cases::$name(crate::tests::Fixture::sqlite());
                }
            )*
        }

        #[test]
        fn the_same_holds_on_postgresql() {
            let server = TestDatabaseServer::start();
            $(
                println!("{}", stringify!($name));
                cases::$name(Fixture::postgres(server.settings(stringify!($name))));
            )*
        }
    };
}

on_every_database! {
    cases::a_row_holds_what_the_ledger_says,
    cases::every_condition_selects,
    cases::a_session_sees_its_own_and_what_was_passed_to_its_project,
    cases::who_is_limited_to_projects_sees_their_rows,
    cases::pages_continue_while_rows_are_added,
    cases::a_killed_updater_loses_and_doubles_no_row,
    cases::changes_of_one_group_and_of_many_make_the_same_rows,
    cases::a_reset_history_is_made_anew,
    cases::a_group_does_not_follow_a_reset,
    cases::the_history_of_another_ledger_is_made_anew,
    cases::an_end_without_totals_has_none_and_the_first_end_counts,
    cases::a_start_that_is_repeated_under_its_id_begins_its_row_anew,
    cases::a_run_under_the_id_of_a_removed_one_has_the_row,
    cases::a_process_that_could_not_be_started_is_an_attempt_and_no_start,
    cases::any_text_can_be_searched_for,
    cases::old_rows_expire_and_running_ones_stay,
    cases::statistics_count_the_same_command_only,
}
