"""Level high denies, each denial with its control: the same attempt gets through at medium."""

import functools

import pytest

from harness.protected_env import USERS, isolation
from harness.isolation_client import INTERFACES, IsolationOptions

#: Who gets through at level medium: everybody, only root, or nobody on some machines (a kernel
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
    # What the kernel counts per user, of which a cell has a share; and what tells of the host.
    "many_inotify_instances": BOTH, "many_pending_signals": BOTH, "many_timers": BOTH, "many_message_queues": BOTH,
    "much_locked_memory": ROOT, "raise_limits": NONE, "see_host_devices": BOTH,
    # The network.
    "raw_socket": ROOT, "packet_socket": ROOT, "vsock_socket": NONE, "crypto_socket": NONE,
    "tcp_loopback": BOTH, "tcp_address": BOTH, "udp_loopback": BOTH, "udp_address": BOTH, "dns_query": BOTH,
    "icmp_address": ROOT, "abstract_socket": BOTH, "path_socket": BOTH, "engine_socket": BOTH,
    "interfaces": BOTH,
}
#: What may seem to work inside, on something private; the host's own is looked at instead.
PRIVATE = ("write_home",)


@pytest.fixture(scope="module")
def outcome(places):
    """What every attempt came to, all of them tried by one command."""

    @functools.cache
    def tried(who, face, level):
        place = places.of(who)
        words = ["python3", "attempts.py", "facts.json", *DENIED, *(PRIVATE if level == "high" else ())]
        asked = isolation(who) if level == "high" else IsolationOptions(level=level)
        ran = INTERFACES[face](place, words, asked)
        # What one medium run has done to a file is not for the next.
        unwritten(place)
        return ran.attempts

    def unwritten(place):
        precious = place.outside.precious
        precious.write_text(place.outside.secret + "\n")

    return tried


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("name", DENIED)
def test_medium_lets_it_through(outcome, who, name):
    control = DENIED[name]
    if control == NONE or (control == ROOT and who != "root"):
        pytest.skip("no control: refused by the kernel itself for this caller")
    what, detail = outcome(who, "cli", "medium")[name]
    assert what == "did", detail


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("name", DENIED)
def test_high_denies(outcome, who, face, name):
    what, detail = outcome(who, face, "high")[name]
    assert what == "denied", (what, detail)


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("who", USERS)
def test_nothing_outside_was_touched(places, outcome, who, face):
    place = places.of(who)
    outcome(who, face, "high")
    place.outside.assert_unharmed()
    left = [entry.name for entry in place.work.iterdir() if entry.name.startswith(("made-", "device-", "disk-"))]
    assert left == []


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("who", USERS)
def test_every_attempt_was_tried(outcome, who, face):
    tried = outcome(who, face, "high")
    assert set(tried) == {*DENIED, *PRIVATE}
    broken = {name: detail for name, (what, detail) in tried.items() if what == "broken"}
    assert broken == {}
