"""The network of a command of level high: nothing, a list, or everything."""

import json
import re
import socket
import urllib.request
from pathlib import Path

import anyio
import pytest

from harness import until
from harness.protected_env import FIRST, USERS_BY_INTERFACE, USERS, isolation
from harness.host_targets import own_address
from harness.isolation_client import INTERFACES, IsolationOptions

PYTHON = "python3"
#: Attempts on the network, by what they need to get through.
DIRECT = ("tcp_loopback", "tcp_address", "udp_address", "dns_query", "abstract_socket", "path_socket", "engine_socket")

#: One DNS question to the name server of resolv.conf: prints the answer's code and address.
ASK = """
import socket, struct, sys
server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))
name = b"".join(bytes([len(p)]) + p.encode() for p in sys.argv[1].split(".")) + b"\\0"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(5)
    s.sendto(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1), (server, 53))
    said = s.recv(1000)
code, answers = said[3] & 15, struct.unpack(">H", said[6:8])[0]
address = socket.inet_ntoa(said[-4:]) if answers else "-"
print("answer", code, answers, address)
if len(sys.argv) > 2 and answers:
    try:
        with socket.create_connection((address, int(sys.argv[2])), 5) as c: print("reached", c.recv(100).decode())
    except OSError as error: print("failed", error)
"""


def attempts(installation, user, interface, network, names):
    options = isolation(user, network=network)
    return INTERFACES[interface](installation, [PYTHON, "attempts.py", "facts.json", *names], options).attempts


def listed(installation, more=()):
    """An allow list of the test's own listener."""
    facts = installation.outside.facts
    return [f"{facts['address']}:{facts['tcp_port']}", *more]


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_a_listed_address_is_reached_and_nothing_else(protected_envs, user, interface):
    installation = protected_envs.of(user)
    tried = attempts(installation, user, interface, listed(installation), DIRECT)
    assert tried.pop("tcp_address")[0] == "did", tried
    assert {name: what for name, (what, _) in tried.items() if what != "denied"} == {}


@pytest.mark.parametrize("user", USERS)
def test_another_port_of_a_listed_address_is_not_reached(protected_envs, user):
    installation = protected_envs.of(user)
    facts = installation.outside.facts
    for network in ([f"{facts['address']}:9"], [facts["address"]]):
        tried = attempts(installation, user, "mcp", network, ["tcp_address"])
        assert tried["tcp_address"][0] == "denied", network


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_full_is_the_hosts_network_with_the_other_restrictions(protected_envs, user, interface):
    installation = protected_envs.of(user)
    tried = attempts(installation, user, interface, "full", [*DIRECT, "read_ssh", "write_over", "signal_host", "raw_socket", "packet_socket"])
    for name in ("tcp_loopback", "tcp_address", "udp_address", "dns_query"):
        assert tried[name][0] == "did", (name, tried[name])
    for name in ("read_ssh", "write_over", "signal_host", "raw_socket", "packet_socket", "path_socket", "engine_socket",
                 "abstract_socket"):
        assert tried[name][0] == "denied", (name, tried[name])


@pytest.mark.parametrize("user", USERS)
def test_names_that_are_not_listed_do_not_resolve(protected_envs, user):
    installation = protected_envs.of(user)
    options = isolation(user, network=["listed.example.org", "*.below.example.org"])
    for name in ("unlisted.example.org", "example.org", "below.example.org", "xlisted.example.org", "localhost.localdomain"):
        result = INTERFACES["cli"](installation, [PYTHON, "-c", ASK, name], options)
        assert re.search(r"answer [35] 0 -", result.text), (name, result.text)


@pytest.mark.parametrize("user", USERS)
def test_listed_names_have_unused_addresses(protected_envs, user):
    """Assigned without a query: only a connection makes the proxy resolve the name."""
    installation = protected_envs.of(user)
    options = isolation(user, network=["listed.example.org", "*.below.example.org"])
    for name in ("listed.example.org", "LISTED.Example.org", "a.b.below.example.org"):
        result = INTERFACES["cli"](installation, [PYTHON, "-c", ASK, name], options)
        assert re.search(r"answer 0 1 198\.1[89]\.", result.text), (name, result.text)


@pytest.mark.parametrize("user", USERS)
def test_no_name_of_the_hosts_table_is_preferred_to_the_proxy(protected_envs, user):
    """A listed name that it has would lead to an address that does not exist inside."""
    installation = protected_envs.of(user)
    table = ["cat", "/etc/hosts"]
    shown = INTERFACES["cli"](installation, table, isolation(user, network=["listed.example.org"])).text
    assert shown.startswith("127.0.0.1 localhost\n::1 localhost"), shown
    hosts = Path("/etc/hosts").read_text()
    full = INTERFACES["cli"](installation, table, isolation(user, network="full")).text
    assert full.startswith(hosts) and not shown.startswith(hosts), full


@pytest.mark.parametrize("user", USERS)
def test_a_listed_name_is_no_way_to_private_addresses(protected_envs, user):
    """`localhost` is 127.0.0.1 outside: refused, unless a rule names addresses."""
    installation = protected_envs.of(user)
    port = installation.outside.facts["tcp_port"]
    options = isolation(user, network=[f"localhost:{port}"])
    result = INTERFACES["cli"](installation, [PYTHON, "-c", ASK, "localhost", str(port)], options)
    assert installation.outside.secret not in result.text and "over" not in result.text, result.text
    assert "reached" not in result.text or re.search(r"reached\s*$", result.text), result.text


@pytest.mark.parametrize("user", USERS)
def test_decisions_are_reported_and_listed(protected_envs, user):
    installation = protected_envs.of(user)
    label = f"decisions-{user}"
    options = isolation(user, network=[*listed(installation), "listed.example.org"], labels=(label,))
    script = f"{PYTHON} attempts.py facts.json tcp_address; {PYTHON} -c \"$0\" unlisted.example.net"
    result = INTERFACES["mcp"](installation, ["sh", "-c", script, ASK], options)
    assert "unlisted.example.net" in result.text.split("[")[-1] or "not reached" in result.text, result.text
    [entry] = installation.json("ps", "-a", "--label", label)
    decisions = installation.rest("GET", f"/api/v1/executions/{entry['id']}/network")["decisions"]
    hosts = {it["host"] for it in decisions}
    assert {installation.outside.facts["address"], "unlisted.example.net"} <= hosts, decisions
    [directory] = [path for path in installation.executions() if path.name == installation.json("info", entry["id"])["uuid"]]
    lines = [json.loads(line) for line in (directory / "network.jsonl").read_text().splitlines()]
    # The last one adds up.
    assert all({"at", "host", "decision"} <= set(line) for line in lines if "summary" not in line), lines


@pytest.mark.parametrize("user", USERS)
def test_loopback_servers_work_behind_an_allow_list_on_the_listed_port(protected_envs, user):
    installation = protected_envs.of(user)
    port = installation.outside.facts["tcp_port"]
    script = (f"import socket\ns = socket.socket(); s.bind(('0.0.0.0', {port})); s.listen()\n"
              f"c = socket.create_connection(('127.0.0.1', {port}), 2); s.accept()[0].sendall(b'own'); print(c.recv(9))\n"
              f"with socket.create_connection(('{installation.outside.facts['address']}', {port}), 2) as o: print(o.recv(99))")
    result = INTERFACES["cli"](installation, [PYTHON, "-c", script], isolation(user, network=listed(installation)))
    assert "own" in result.text and installation.outside.secret in result.text, result.text


@pytest.mark.parametrize("user", USERS)
def test_the_list_holds_without_the_daemon(protected_envs, user):
    """The proxy belongs to the execution: it continues while the daemon is killed and restarted."""
    installation = protected_envs.of(user)
    facts = installation.outside.facts
    script = ("import os, socket, time\nprint('up', flush=True)\n"
              "while not os.path.exists('go'): time.sleep(0.05)\n"
              f"with socket.create_connection(('{facts['address']}', {facts['tcp_port']}), 5) as c: print(c.recv(99).decode())\n")
    directory = installation.dir / f"gate-{user}"
    directory.mkdir(exist_ok=True)
    installation.give(directory)
    options = isolation(user, network=listed(installation))
    done = installation.cli("run", "-d", *options.words(), "--cwd", directory, "--", PYTHON, "-c", script)
    pid = done.stdout.decode().strip()
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout, 10)
    installation.kill_daemon()
    (directory / "go").touch()
    assert installation.cli("wait", pid, check=False).returncode == 0
    assert installation.outside.secret.encode() in installation.cli("logs", pid, "--raw").stdout


@pytest.mark.parametrize("user", USERS)
def test_large_transfers_pass_whole(protected_envs, user):
    """Both ways through the proxy, with half-closes."""
    import hashlib
    import threading

    installation = protected_envs.of(user)
    size = 32 << 20
    with socket.socket() as listener:
        listener.bind((own_address(), 0))
        listener.listen()
        port = listener.getsockname()[1]
        digest = hashlib.sha256()

        def serve():
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(1 << 16):
                    digest.update(data)
                for _ in range(size >> 20):
                    connection.sendall(b"z" * (1 << 20))

        http_daemon = threading.Thread(target=serve, daemon=True)
        http_daemon.start()
        script = (f"import socket\nc = socket.create_connection(('{own_address()}', {port}), 5)\n"
                  f"for _ in range({size >> 20}): c.sendall(b'y' * (1 << 20))\n"
                  "c.shutdown(socket.SHUT_WR)\ntotal = 0\n"
                  "while data := c.recv(1 << 16): total += len(data)\nprint('got', total)")
        result = INTERFACES["cli"](installation, [PYTHON, "-c", script], isolation(user, network=[f"{own_address()}:{port}"]))
        http_daemon.join(20)
    assert f"got {size}" in result.text, result.text
    assert digest.hexdigest() == hashlib.sha256(b"y" * size).hexdigest()


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("network", [["https://a.example"], ["a b"], [""], ["*.*.org"], ["a.example:0"], ["a.example:99999"], ["full", "a.example"], "so me"])
def test_networks_that_are_none_are_refused(protected_envs, interface, network):
    result = INTERFACES[interface](protected_envs.of(USERS[0]), ["echo", "ran"], IsolationOptions(network=network))
    assert "ran" not in result.text.split(), result.text
    assert "network" in result.text or "host" in result.text, result.text


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_network_needs_level_high(protected_envs, interface):
    """At lower levels a list would not be enforced."""
    options = IsolationOptions(level="medium", network=["a.example"])
    result = INTERFACES[interface](protected_envs.of(USERS[0]), ["echo", "ran"], options)
    assert "ran" not in result.text.split() and "high" in result.text, result.text


#: Serves one connection on the command's own loopback, and reports that it listens.
SERVE = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    print("listening", flush=True)
    caller, _ = listener.accept()
    with caller: caller.sendall(b"from inside " + caller.recv(100))
"""


@pytest.mark.parametrize("network", ["none", "listed"])
@pytest.mark.parametrize("user", USERS)
def test_a_port_of_the_host_leads_to_a_server_inside(protected_envs, user, network):
    installation = protected_envs.of(user)
    outside = free_port()
    options = isolation(user, network=listed(installation) if network == "listed" else "none", forward=[f"{outside}:4321"])

    async def ask():
        async with installation.agent() as agent:
            began = await agent.call(
                "exec", command=[PYTHON, "-c", SERVE, "4321"], until="pattern", pattern="listening",
                wait_ms=20_000, **options.arguments())
            with socket.create_connection(("127.0.0.1", outside), 5) as caller:
                caller.sendall(b"hello")
                response = caller.recv(100)
            return began, response

    began, response = anyio.run(ask)
    assert response == b"from inside hello", began.text
    until(lambda: refuses(outside), what="the port is given back")


@pytest.mark.parametrize("user", USERS)
def test_a_port_that_is_taken_is_no_start(protected_envs, user):
    installation = protected_envs.of(user)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = holder.getsockname()[1]
        result = INTERFACES["cli"](installation, ["true"], isolation(user, forward=[f"{taken}:80"]))
    assert result.exit_code != 0 and f"cannot forward port {taken}:80" in result.text, result.text


def test_only_level_high_forwards(protected_envs):
    installation = protected_envs.of("root")
    result = INTERFACES["cli"](installation, ["true"], IsolationOptions(level="medium", forward=("8080",)))
    assert result.exit_code != 0 and "forward" in result.text and "level high" in result.text, result.text


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def refuses(port):
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("user", FIRST)
def test_the_url_of_a_service_in_its_own_network_is_that_of_the_forwarded_port(protected_envs, user):
    """A stranger listens on the host's port of the same number: nothing is said of it, and nobody is sent there."""
    installation = protected_envs.of(user)
    outside = free_port()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        inside = stranger.getsockname()[1]
        server = ("--", "python3", "-m", "http.server", "--bind", "127.0.0.1", inside)
        for name, forward, url in (("shut", [], None), ("open", [f"{outside}:{inside}"], f"http://localhost:{outside}/")):
            words = isolation(user, forward=forward).words()
            said = installation.cli("service", "start", "--name", name, *words, *server)
            text = (said.stdout + said.stderr).decode()
            assert "is shared with" not in text and f"localhost:{inside}" not in text, text
            service = installation.json("info", "@last")["service"]
            assert service["url"] == url and service["ports"], service
            if url:
                with urllib.request.urlopen(url, timeout=10) as response:
                    assert b"Directory listing" in response.read()
                installation.kill_daemon()
                assert installation.json("info", "@last")["service"]["url"] == url
            installation.cli("service", "stop", name)
