"""Shared by the tests: an installation of the binary, an MCP client, processes by pid."""

from .agent import Agent, Reply
from .terminal_user import TerminalUser
from .installation import Installation
from .procs import alive, members, named, until
from .ws_recorder import WsRecorder
from .http_daemon import HttpDaemon, ClientTransport, serve_two_principals, token
from .shell import Shell
from .terminal import Session, Terminals
from .tmux import Tmux

__all__ = [
    "Agent", "ClientTransport", "HttpDaemon", "Installation", "Reply", "Session", "Shell", "TerminalUser", "Terminals",
    "Tmux", "WsRecorder", "alive", "members", "named", "serving_two_principals", "token", "until",
]
