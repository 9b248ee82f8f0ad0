import os, pytest, time, json
from harness import TerminalUser, until
from harness.services import free_port
from harness.docker import BUSYBOX
from harness.installation import ProblemError
pytestmark = [pytest.mark.root, pytest.mark.limit(100)]

@pytest.mark.parametrize("bind", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize("accepts", [0, 1])
def test_tcp(backend, bind, accepts):
    port = free_port()
    code = f"import socket,time; s=socket.socket(); s.bind(('{bind}', {port})); s.listen(); print('x', flush=True)\nwhile {accepts}: s.accept()\ntime.sleep(1000)"
    (backend.work / "ostler.toml").write_text(f"""
[services.sock]
command = ["/usr/bin/python3", "-c", {json.dumps(code)}]
{'level = "container"' if backend.is_container else ''}
ready = {{ tcp = {port} }}
""")
    r = backend.installation.cli("service", "up", "--timeout", "10s", check=False)
    print(r.returncode, r.stdout.decode(), r.stderr.decode())
    r2 = backend.installation.cli("service", "why", "sock", check=False)
    print(r2.stdout.decode())
    backend.installation.cli("service", "down", check=False)
    assert r.returncode == 0
