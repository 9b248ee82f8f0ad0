"""Containers of an ordinary user who may use the engine: what needs no root at home must need none here. The cases are those
of the suite of all backends that look at processes, sockets or terminals from outside."""

import pytest
import test_backend_suite as suite
from harness.docker import DEBIAN, UID

pytestmark = pytest.mark.root


@pytest.fixture
def backend(make_container_backend, docker_engine):
    docker_engine.give_socket(UID)
    return make_container_backend(docker_engine, DEBIAN, user=UID)


CASES = (
    "test_exit_codes_are_passed_through",
    "test_the_streams_are_kept_apart_and_in_order",
    "test_open_input_takes_what_is_written_until_it_is_closed",
    "test_a_stop_ends_the_whole_tree",
    "test_what_the_leader_leaves_is_ended_and_counted",
    "test_it_goes_on_under_the_next_daemon",
    "test_a_pause_stops_the_whole_tree",
    "test_what_it_uses_is_sampled",
    "test_a_prompt_is_a_question",
    "test_a_terminal_has_a_size_a_name_and_job_control",
    "test_a_server_is_ready_and_answers",
)
globals().update({name: getattr(suite, name) for name in CASES})
