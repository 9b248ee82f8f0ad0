"""How many service definitions each principal may store."""

import json

from harness import HttpDaemon, Installation

#: As in the daemon.
DEFINITIONS = 1_000


def put(daemon, secret, name):
    connection = daemon.connect()
    body = json.dumps({"command": {"argv": {"program": "true", "args": []}}, "cwd": "/tmp"})
    connection.request("PUT", f"/api/v1/services/{name}", body, {"Authorization": f"Bearer {secret}"})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read() or "null")
    connection.close()
    return answer


def test_definitions_of_one_principal_leave_space_for_others(binary):
    installation = Installation(binary)
    try:
        secrets = {}
        for name in ("ann", "bob"):
            words = ("token", "new", name, "--principal", name, "--scope", "sessions:all", "--json")
            secrets[name] = json.loads(installation.cli(*words).stdout)["token"]
        daemon = HttpDaemon(installation)
        assert put(daemon, secrets["bob"], "first")[0] == 204
        daemon.end()
        file = installation.state / "services.json"
        stored = json.loads(file.read_text())
        [first] = stored["definitions"]
        for number in range(1, DEFINITIONS):
            definition = {**first["definition"], "name": f"more-{number}"}
            stored["definitions"].append({**first, "definition": definition})
        file.write_text(json.dumps(stored))
        daemon = HttpDaemon(installation)
        status, problem = put(daemon, secrets["bob"], "too-many")
        assert status == 422 and "you have defined 1000 services already" in problem["message"], problem
        assert put(daemon, secrets["bob"], "first")[0] == 204, "one that is replaced is none more"
        assert put(daemon, secrets["ann"], "hers")[0] == 204
        daemon.end()
    finally:
        installation.close()
