"""Monitors another command and the engine while a test exhausts resources: the command must keep
printing, and the engine must keep responding."""

import threading
import time

#: Prints the time, again and again.
TICKS = "import time\nwhile True: print(time.monotonic(), flush=True); time.sleep(0.05)"
#: The longest pause of the command and the longest response time. Generous: the test and whatever
#: else this machine does share few cores.
STILL_SECONDS = 3.0


class NoisyNeighbour:
    """A context manager that runs the command, and asserts at the end that it was not disturbed."""

    def __init__(self, installation):
        self.installation = installation
        self.slowest = 0.0
        self._over = threading.Event()
        self._failure = None

    def __enter__(self):
        started = self.installation.cli("run", "-d", "--", "python3", "-c", TICKS)
        self.id = started.stdout.decode().strip()
        self._asking = threading.Thread(target=self._ask)
        self._asking.start()
        return self

    def _ask(self):
        while not self._over.wait(0.1):
            begin = time.monotonic()
            try:
                self.installation.rest("GET", "/api/v1/health")
                self.installation.rest("GET", "/api/v1/executions?limit=5")
            except Exception as failure:
                self._failure = failure
                return
            self.slowest = max(self.slowest, time.monotonic() - begin)

    def __exit__(self, kind, *_):
        self._over.set()
        self._asking.join()
        info = self.installation.rest("GET", f"/api/v1/executions/{self.id}")
        log = self.installation.cli("logs", self.id, "--raw").stdout
        self.installation.rest("POST", f"/api/v1/executions/{self.id}/stop", {"force": True})
        if kind is None:
            self.assert_unharmed(info, log)

    def assert_unharmed(self, info, log):
        assert self._failure is None, f"the engine failed to answer: {self._failure!r}"
        assert self.slowest < STILL_SECONDS, f"an answer took {self.slowest:.1f} s"
        assert info["status"] == "running", info
        times = [float(line) for line in log.split()] + [time.monotonic()]
        gaps = [after - before for before, after in zip(times, times[1:])]
        assert max(gaps) < STILL_SECONDS, f"the neighbour stood still for {max(gaps):.1f} s"
