"""Commands of one execution backend over REST: the same requests for processes of this machine and of a container."""

import base64
import json
from dataclasses import dataclass, field

from . import procs

#: The timeout of a command in seconds.
ENDS_SECONDS = 30
#: The directory of a container that the workspace is mounted at.
INSIDE = "/workspace"


@dataclass
class Result:
    """The end of a command: its info, and its output by stream."""

    info: dict
    streams: dict = field(default_factory=dict)

    @property
    def code(self):
        return self.info["exit_code"]

    @property
    def cause(self):
        return self.info["cause"]

    @property
    def out(self):
        return self.streams.get("stdout", b"")

    @property
    def err(self):
        return self.streams.get("stderr", b"")

    @property
    def text(self):
        """What was written to standard output, or to the terminal."""
        return (self.out or self.streams.get("pty", b"")).decode(errors="replace")


class Backend:
    """One backend in one installation; `engine` is the container engine of a container's."""

    def __init__(self, installation, engine=None, **container):
        self.installation = installation
        self.engine = engine
        #: The fields of `container` in requests.
        self.container = container

    def __repr__(self):
        return "container" if self.is_container else "local"

    @property
    def is_container(self):
        return self.engine is not None

    @property
    def work(self):
        """The workspace on the host."""
        return self.installation.work

    @property
    def cwd(self):
        """The workspace as commands see it."""
        return INSIDE if self.is_container else str(self.work)

    @property
    def python(self):
        """Python, by a path that both have."""
        return "/usr/bin/python3"

    def tool_options(self):
        """Arguments of tools that start something."""
        return {"isolation": "container"} if self.is_container else {}

    def words(self):
        """Flags of the command line's verbs that start something."""
        return ["--isolation", "container"] if self.is_container else []

    def body(self, command, **fields):
        """The body of a start; `command` is a script, or the words of a command line."""
        if isinstance(command, str):
            command = {"shell": {"shell": "sh", "script": command}}
        else:
            program, *args = map(str, command)
            command = {"argv": {"program": program, "args": args}}
        body = {"command": command, "cwd": str(self.work)}
        if self.is_container:
            body["isolation"] = "container"
            container = {**self.container, **fields.pop("container", {})}
            body |= {"container": container} if container else {}
        else:
            body["base_env"] = [["PATH", "/usr/local/bin:/usr/bin:/bin"]]
        return body | fields

    def start(self, command, **fields):
        """Starts a command; its id."""
        return self.rest("POST", "executions", self.body(command, **fields))["id"]

    def run(self, command, seconds=ENDS_SECONDS, **fields):
        """Runs a command to its end."""
        return self.ended(self.start(command, **fields), seconds)

    def rest(self, method, path, body=None, **options):
        return self.installation.rest(method, f"/api/v1/{path}", body, **options)

    def info(self, execution):
        return self.rest("GET", f"executions/{execution}")

    def wait(self, execution, until="exit", seconds=ENDS_SECONDS, **fields):
        """Waits for a condition; the response."""
        return self.rest(
            "POST", f"executions/{execution}/wait", {"until": until, "at_most_ms": int(seconds * 1000), **fields})

    def shows(self, execution, pattern, seconds=ENDS_SECONDS):
        """Waits for a line of output."""
        waited = self.wait(execution, "pattern", seconds, pattern=pattern)
        assert waited["why"] == "pattern", (pattern, waited)

    def ended(self, execution, seconds=ENDS_SECONDS):
        """Waits for the end of a command; what became of it."""
        waited = self.wait(execution, seconds=seconds)
        assert waited["why"] == "exit", waited
        return Result(self.info(execution), self.streams(execution))

    def streams(self, execution):
        """The output so far, by stream."""
        found = {}
        for line in self.rest("GET", f"executions/{execution}/raw?follow=false", raw=True).splitlines():
            frame = json.loads(line)
            if "data" in frame:
                data = frame["data"]
                data = base64.b64decode(data["base64"]) if isinstance(data, dict) else data.encode()
                found.setdefault(frame["stream"], []).append(data)
        return {name: b"".join(pieces) for name, pieces in found.items()}

    def text(self, execution):
        return Result({}, self.streams(execution)).text

    def lines(self, execution, query=""):
        """The decoded lines of the output."""
        return [line["text"] for line in self.rest("GET", f"executions/{execution}/output{query}")["lines"]]

    def type(self, execution, data, close=False):
        """Writes to its input."""
        query = "?close=true" if close else ""
        return self.rest("POST", f"executions/{execution}/input{query}", data)

    def stop(self, execution, **body):
        return self.rest("POST", f"executions/{execution}/stop", body)

    def next_daemon(self):
        """Kills the daemon, and has the command line start the next."""
        self.installation.kill_daemon()
        self.installation.cli("ps")

    def containers(self):
        """The containers of the engine, as it lists them."""
        return self.engine.containers()

    def the_container(self):
        """The one container, as the engine describes it."""
        container, = self.containers()
        return self.engine.inspect(container["Id"])


def none_left(words, seconds=5):
    """No process of this machine, in a container or not, has these words in its arguments."""
    procs.until(lambda: not procs.named(words), seconds, f"the end of every `{words}`")
