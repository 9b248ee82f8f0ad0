"""The page of the web interface as a browser has it: a cookie, a page key, and headers that browsers add."""

import json
import re
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

from .ws_recorder import WsRecorder

SESSION = "/api/v1/web/session"
#: The link that `ostler serve` prints.
LINK = re.compile(r"open\s+(http://\S+/#code=([\w-]{22}))\s+\(valid once, 10 min\)")


class Page:
    """A page of `http_daemon`, below `prefix`; its cookies are those of the host, whatever the port, as in a browser."""

    def __init__(self, http_daemon, prefix="", cookies=None):
        self.http_daemon, self.prefix = http_daemon, prefix
        self.host = urlsplit(http_daemon.base).netloc
        self.cookies = {} if cookies is None else cookies
        self.page_key = None
        self.set_cookie = None

    def own(self):
        """What a browser adds to a request of the page."""
        headers = {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin"}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return headers

    def credentials(self):
        return self.own() | ({"Ostler-Page-Key": self.page_key} if self.page_key else {})

    def send(self, method, path, body=None, headers=None):
        """A response that is not read yet, with `headers` alone; by default what the page sends."""
        connection = self.http_daemon.connect()
        headers = dict(self.credentials() if headers is None else headers)
        if body is not None and not isinstance(body, (str, bytes)):
            body, headers = json.dumps(body), {"Content-Type": "application/json"} | headers
        connection.request(method, self.prefix + path, body, headers)
        response = connection.getresponse()
        # Closed with the response.
        response.connection = connection
        return response

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body; JSON is parsed."""
        response = self.send(method, path, body, headers)
        data = response.read()
        response.connection.close()
        is_json = "json" in (response.headers["Content-Type"] or "")
        return response.status, response.headers, json.loads(data) if is_json else data

    def sign_in(self, **secret):
        """The answer to a sign-in that succeeds; keeps both halves."""
        status, headers, body = self.ask("POST", SESSION, secret, self.own())
        assert status == 200, body
        self.keep(headers)
        self.page_key = body["page_key"]
        return body

    def sign_out(self):
        status, headers, body = self.ask("DELETE", SESSION)
        assert (status, body) == (204, b""), body
        self.keep(headers)

    def keep(self, headers):
        """Sets or deletes the cookie of a response."""
        cookie = SimpleCookie(headers["Set-Cookie"])
        ((name, self.set_cookie),) = cookie.items()
        if self.set_cookie["max-age"] == "0":
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = self.set_cookie.value

    def is_signed_in(self):
        status, _, body = self.ask("GET", SESSION)
        assert status in (200, 401), body
        return status == 200

    def websocket(self, path, page_key=None, protocols=None):
        """A WebSocket as browsers open one: with the cookie, and the page key among the subprotocols."""
        protocols = protocols or f"ostler, ostler-page-key.{page_key or self.page_key}"
        headers = {"Host": self.host, **self.own(), "Sec-WebSocket-Protocol": protocols}
        return WsRecorder(self.http_daemon, None, headers=headers, path=self.prefix + path, query="")


def printed_link(http_daemon):
    """The address and the code that `ostler serve` prints; read once."""
    found = http_daemon.wait_for(LINK)
    return found[1], found[2]


def link(installation):
    """The address and the code of a new link."""
    url = installation.cli("token", "link").stdout.decode().strip()
    return url, url.partition("#code=")[2]
