"""What of the network a command of level high reaches: nothing, a list, or everything."""

import json
import re
import socket

import anyio
import pytest

from harness import until
from harness.protected_env import USERS_BY_INTERFACE, USERS, isolation
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


def attempts(place, who, face, network, names):
    asked = isolation(who, network=network)
    return INTERFACES[face](place, [PYTHON, "attempts.py", "facts.json", *names], asked).attempts


def listed(place, more=()):
    """An allow list of the test's own listener."""
    facts = place.outside.facts
    return [f"{facts['address']}:{facts['tcp_port']}", *more]


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_a_listed_address_is_reached_and_nothing_else(places, who, face):
    place = places.of(who)
    tried = attempts(place, who, face, listed(place), DIRECT)
    assert tried.pop("tcp_address")[0] == "did", tried
    assert {name: what for name, (what, _) in tried.items() if what != "denied"} == {}


@pytest.mark.parametrize("who", USERS)
def test_another_port_of_a_listed_address_is_not_reached(places, who):
    place = places.of(who)
    facts = place.outside.facts
    for network in ([f"{facts['address']}:9"], [facts["address"]]):
        tried = attempts(place, who, "mcp", network, ["tcp_address"])
        assert tried["tcp_address"][0] == "denied", network


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_full_is_the_hosts_network_behind_the_other_walls(places, who, face):
    place = places.of(who)
    tried = attempts(place, who, face, "full", [*DIRECT, "read_ssh", "write_over", "signal_host", "raw_socket", "packet_socket"])
    for name in ("tcp_loopback", "tcp_address", "udp_address", "dns_query"):
        assert tried[name][0] == "did", (name, tried[name])
    for name in ("read_ssh", "write_over", "signal_host", "raw_socket", "packet_socket", "path_socket", "engine_socket",
                 "abstract_socket"):
        assert tried[name][0] == "denied", (name, tried[name])


@pytest.mark.parametrize("who", USERS)
def test_names_that_are_not_listed_do_not_resolve(places, who):
    place = places.of(who)
    asked = isolation(who, network=["listed.example.org", "*.below.example.org"])
    for name in ("unlisted.example.org", "example.org", "below.example.org", "xlisted.example.org", "localhost.localdomain"):
        ran = INTERFACES["cli"](place, [PYTHON, "-c", ASK, name], asked)
        assert re.search(r"answer [35] 0 -", ran.text), (name, ran.text)


@pytest.mark.parametrize("who", USERS)
def test_listed_names_have_addresses_of_nobody(places, who):
    """Handed out without asking anybody: only a connection makes the gate look outside."""
    place = places.of(who)
    asked = isolation(who, network=["listed.example.org", "*.below.example.org"])
    for name in ("listed.example.org", "LISTED.Example.org", "a.b.below.example.org"):
        ran = INTERFACES["cli"](place, [PYTHON, "-c", ASK, name], asked)
        assert re.search(r"answer 0 1 198\.1[89]\.", ran.text), (name, ran.text)


@pytest.mark.parametrize("who", USERS)
def test_a_listed_name_is_no_way_to_private_addresses(places, who):
    """`localhost` is 127.0.0.1 outside: refused, unless a rule names addresses."""
    place = places.of(who)
    port = place.outside.facts["tcp_port"]
    ran = INTERFACES["cli"](place, [PYTHON, "-c", ASK, "localhost", str(port)], isolation(who, network=[f"localhost:{port}"]))
    assert place.outside.secret not in ran.text and "over" not in ran.text, ran.text
    assert "reached" not in ran.text or re.search(r"reached\s*$", ran.text), ran.text


@pytest.mark.parametrize("who", USERS)
def test_decisions_are_told_and_listed(places, who):
    place = places.of(who)
    label = f"decisions-{who}"
    asked = isolation(who, network=[*listed(place), "listed.example.org"], labels=(label,))
    script = f"{PYTHON} attempts.py facts.json tcp_address; {PYTHON} -c \"$0\" unlisted.example.net"
    ran = INTERFACES["mcp"](place, ["sh", "-c", script, ASK], asked)
    assert "unlisted.example.net" in ran.text.split("[")[-1] or "not reached" in ran.text, ran.text
    [entry] = place.json("ps", "-a", "--label", label)
    decisions = place.rest("GET", f"/api/v1/executions/{entry['id']}/network")["decisions"]
    hosts = {it["host"] for it in decisions}
    assert {place.outside.facts["address"], "unlisted.example.net"} <= hosts, decisions
    [directory] = [path for path in place.executions() if path.name == place.json("info", entry["id"])["uuid"]]
    lines = [json.loads(line) for line in (directory / "network.jsonl").read_text().splitlines()]
    # The last one adds up.
    assert all({"at", "host", "decision"} <= set(line) for line in lines if "summary" not in line), lines


@pytest.mark.parametrize("who", USERS)
def test_loopback_servers_work_behind_an_allow_list_on_the_listed_port(places, who):
    place = places.of(who)
    port = place.outside.facts["tcp_port"]
    script = (f"import socket\ns = socket.socket(); s.bind(('0.0.0.0', {port})); s.listen()\n"
              f"c = socket.create_connection(('127.0.0.1', {port}), 2); s.accept()[0].sendall(b'own'); print(c.recv(9))\n"
              f"with socket.create_connection(('{place.outside.facts['address']}', {port}), 2) as o: print(o.recv(99))")
    ran = INTERFACES["cli"](place, [PYTHON, "-c", script], isolation(who, network=listed(place)))
    assert "own" in ran.text and place.outside.secret in ran.text, ran.text


@pytest.mark.parametrize("who", USERS)
def test_the_list_holds_without_the_daemon(places, who):
    """The gate is the execution's own: it goes on while the daemon is killed and comes back."""
    place = places.of(who)
    facts = place.outside.facts
    script = ("import os, socket, time\nprint('up', flush=True)\n"
              "while not os.path.exists('go'): time.sleep(0.05)\n"
              f"with socket.create_connection(('{facts['address']}', {facts['tcp_port']}), 5) as c: print(c.recv(99).decode())\n")
    directory = place.dir / f"gate-{who}"
    directory.mkdir(exist_ok=True)
    place.give(directory)
    done = place.cli("run", "-d", *isolation(who, network=listed(place)).words(), "--cwd", directory, "--", PYTHON, "-c", script)
    pid = done.stdout.decode().strip()
    until(lambda: b"up" in place.cli("logs", pid, "--raw").stdout, 10)
    place.kill_daemon()
    (directory / "go").touch()
    assert place.cli("wait", pid, check=False).returncode == 0
    assert place.outside.secret.encode() in place.cli("logs", pid, "--raw").stdout


@pytest.mark.parametrize("who", USERS)
def test_large_transfers_pass_whole(places, who):
    """Both ways, through the gate, with half-closes."""
    import hashlib
    import threading

    place = places.of(who)
    size = 32 << 20
    with socket.socket() as listener:
        listener.bind((own_address(), 0))
        listener.listen()
        port = listener.getsockname()[1]
        heard = hashlib.sha256()

        def serve():
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(1 << 16):
                    heard.update(data)
                for _ in range(size >> 20):
                    connection.sendall(b"z" * (1 << 20))

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        script = (f"import socket\nc = socket.create_connection(('{own_address()}', {port}), 5)\n"
                  f"for _ in range({size >> 20}): c.sendall(b'y' * (1 << 20))\n"
                  "c.shutdown(socket.SHUT_WR)\ntotal = 0\n"
                  "while data := c.recv(1 << 16): total += len(data)\nprint('got', total)")
        ran = INTERFACES["cli"](place, [PYTHON, "-c", script], isolation(who, network=[f"{own_address()}:{port}"]))
        serving.join(20)
    assert f"got {size}" in ran.text, ran.text
    assert heard.hexdigest() == hashlib.sha256(b"y" * size).hexdigest()


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("network", [["https://a.org"], ["a b"], [""], ["*.*.org"], ["a.org:0"], ["a.org:99999"], ["full", "a.org"], "so me"])
def test_networks_that_are_none_are_refused(places, face, network):
    ran = INTERFACES[face](places.of(USERS[0]), ["echo", "ran"], IsolationOptions(network=network))
    assert "ran" not in ran.text.split(), ran.text
    assert "network" in ran.text or "host" in ran.text, ran.text


@pytest.mark.parametrize("face", INTERFACES)
def test_a_network_needs_level_high(places, face):
    """At lower levels a list would be a wall of paper."""
    ran = INTERFACES[face](places.of(USERS[0]), ["echo", "ran"], IsolationOptions(level="medium", network=["a.org"]))
    assert "ran" not in ran.text.split() and "high" in ran.text, ran.text


#: Serves one connection on the command's own loopback, and says so.
SERVE = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    print("listening", flush=True)
    caller, _ = listener.accept()
    with caller: caller.sendall(b"from inside " + caller.recv(100))
"""


@pytest.mark.parametrize("network", ["none", "listed"])
@pytest.mark.parametrize("who", USERS)
def test_a_port_of_the_host_leads_to_a_server_inside(places, who, network):
    place = places.of(who)
    outside = free_port()
    asked = isolation(who, network=listed(place) if network == "listed" else "none", forward=[f"{outside}:4321"])

    async def ask():
        async with place.agent() as agent:
            began = await agent.call(
                "exec", command=[PYTHON, "-c", SERVE, "4321"], until="pattern", pattern="listening",
                wait_ms=20_000, **asked.arguments())
            with socket.create_connection(("127.0.0.1", outside), 5) as caller:
                caller.sendall(b"hello")
                said = caller.recv(100)
            return began, said

    began, said = anyio.run(ask)
    assert said == b"from inside hello", began.text
    until(lambda: refuses(outside), what="the port is given back")


@pytest.mark.parametrize("who", USERS)
def test_a_port_that_is_taken_is_no_start(places, who):
    place = places.of(who)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = holder.getsockname()[1]
        ran = INTERFACES["cli"](place, ["true"], isolation(who, forward=[f"{taken}:80"]))
    assert ran.exit_code != 0 and f"cannot forward port {taken}:80" in ran.text, ran.text


def test_only_level_high_forwards(places):
    place = places.of("root")
    ran = INTERFACES["cli"](place, ["true"], IsolationOptions(level="medium", forward=("8080",)))
    assert ran.exit_code != 0 and "forward" in ran.text and "level high" in ran.text, ran.text


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def refuses(port):
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex(("127.0.0.1", port)) != 0
