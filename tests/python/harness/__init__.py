"""What the tests share: a place for the binary, an agent that speaks MCP, processes by id."""

from .agent import Agent, Reply
from .place import Place
from .procs import alive, members, named, until
from .serving import Serving, Way, token
from .shell import Shell

__all__ = [
    "Agent", "Place", "Reply", "Serving", "Shell", "Way", "alive", "members", "named", "token",
    "until",
]
