"""Level high denies, each denial with its control: the same attempt gets through at medium."""

import functools

import pytest

from harness.protected_env import USERS, isolation
from harness.isolation_client import INTERFACES, IsolationOptions

#: Which users succeed at level medium: all, only root, or none on some machines (a kernel
#: without the feature; the filter is then tested by the denial alone).
BOTH, ROOT, NONE = "both", "root", "none"

DENIED = {
    # Files outside.
    "write_beside": BOTH, "write_over": BOTH, "write_system": ROOT, "write_root": ROOT, "write_sys": ROOT,
    "write_cgroup": ROOT, "remove_precious": BOTH, "chmod_precious": BOTH, "write_state": BOTH,
    "write_other_execution": BOTH, "read_shadow": ROOT, "read_ssh": BOTH, "read_ssh_tilde": BOTH,
    "read_netrc": BOTH, "read_aws": BOTH, "read_outside": BOTH, "list_state": BOTH,
    "read_other_execution": BOTH, "read_config": BOTH, "shm_file": BOTH,
    # Ways around the view.
    "by_symlink_made_inside": BOTH, "by_symlink_found": BOTH, "by_symlink_of_directory": BOTH,
    "by_hard_link": BOTH, "by_dots": BOTH, "by_proc_root": BOTH, "by_descriptors": NONE,
    "by_descriptor_of_host": BOTH, "inherited_descriptors": NONE, "by_bind": BOTH, "by_handle": ROOT,
    "by_chroot": ROOT, "by_rename_race": BOTH, "raw_disk": NONE, "make_device": ROOT,
    # Processes outside.
    "signal_host": BOTH, "signal_engine": BOTH, "pidfd_host": BOTH, "ptrace_host": BOTH, "ptrace_child": BOTH,
    "read_host_memory": BOTH, "process_vm": BOTH, "see_host_pid": BOTH, "see_host_processes": BOTH,
    "share_memory": BOTH, "set_host_name": ROOT,
    # Rights.
    "new_user_namespace": BOTH, "new_user_namespace_by_clone": BOTH, "new_user_namespace_by_clone3": BOTH,
    "new_other_namespaces": ROOT, "mount_tmpfs": BOTH, "remount_writable": BOTH, "unmount_own": ROOT,
    "open_file_system": BOTH, "open_tree_clone": BOTH, "pivot": BOTH, "capabilities": BOTH,
    "new_privileges": BOTH, "setuid_program": BOTH, "make_setuid": BOTH, "become_user": ROOT,
    "io_uring": BOTH, "bpf_map": NONE, "keyring": BOTH, "perf_event": NONE, "user_faults": ROOT,
    "type_into_terminal": BOTH, "type_into_terminal_in_high_bits": BOTH, "other_line_discipline": BOTH,
    "other_line_discipline_in_high_bits": BOTH, "watch_file_system": BOTH,
    # Resources that the kernel counts per user, of which a jail has a share; and facts about the host.
    "many_inotify_instances": BOTH, "many_pending_signals": BOTH, "many_timers": BOTH, "many_message_queues": BOTH,
    "much_locked_memory": ROOT, "raise_limits": NONE, "see_host_devices": BOTH,
    # The network.
    "raw_socket": ROOT, "packet_socket": ROOT, "vsock_socket": NONE, "crypto_socket": NONE,
    "tcp_loopback": BOTH, "tcp_address": BOTH, "udp_loopback": BOTH, "udp_address": BOTH, "dns_query": BOTH,
    "icmp_address": ROOT, "abstract_socket": BOTH, "path_socket": BOTH, "engine_socket": BOTH,
    "interfaces": BOTH,
}
#: Attempts that may seem to succeed inside, on private objects; the host's own are checked instead.
PRIVATE = ("write_home",)


@pytest.fixture(scope="module")
def outcome(protected_envs):
    """The results of all attempts, made by one command."""

    @functools.cache
    def attempts_of(user, interface, level):
        installation = protected_envs.of(user)
        words = ["python3", "attempts.py", "facts.json", *DENIED, *(PRIVATE if level == "high" else ())]
        options = isolation(user) if level == "high" else IsolationOptions(level=level)
        result = INTERFACES[interface](installation, words, options)
        # What one medium run has done to a file is not for the next.
        unwritten(installation)
        return result.attempts

    def unwritten(installation):
        precious = installation.outside.precious
        precious.write_text(installation.outside.secret + "\n")

    return attempts_of


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", DENIED)
def test_medium_lets_it_through(outcome, user, name):
    control = DENIED[name]
    if control == NONE or (control == ROOT and user != "root"):
        pytest.skip("no control: refused by the kernel itself for this caller")
    what, detail = outcome(user, "cli", "medium")[name]
    assert what == "did", detail


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", DENIED)
def test_high_denies(outcome, user, interface, name):
    what, detail = outcome(user, interface, "high")[name]
    assert what == "denied", (what, detail)


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("user", USERS)
def test_nothing_outside_was_touched(protected_envs, outcome, user, interface):
    installation = protected_envs.of(user)
    outcome(user, interface, "high")
    installation.outside.assert_unharmed()
    left = [entry.name for entry in installation.work.iterdir() if entry.name.startswith(("made-", "device-", "disk-"))]
    assert left == []


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("user", USERS)
def test_every_attempt_was_tried(outcome, user, interface):
    attempts_of = outcome(user, interface, "high")
    assert set(attempts_of) == {*DENIED, *PRIVATE}
    broken = {name: detail for name, (what, detail) in attempts_of.items() if what == "broken"}
    assert broken == {}
