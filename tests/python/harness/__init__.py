"""What the tests share: a place for the binary, an agent that speaks MCP, processes by id."""

from .agent import Agent, Reply
from .place import Place
from .procs import alive, members, named, until

__all__ = ["Agent", "Place", "Reply", "alive", "members", "named", "until"]
