"""What the tests share: a place for the binary, an agent that speaks MCP, processes by id."""

from .agent import Agent, Reply
from .person import Person
from .place import Place
from .procs import alive, members, named, until
from .ring import Ring
from .serving import Serving, Way, serving_two_principals, token
from .shell import Shell
from .terminal import Session, Terminals
from .tmux import Tmux

__all__ = [
    "Agent", "Person", "Place", "Reply", "Ring", "Serving", "Session", "Shell", "Terminals", "Tmux", "Way", "alive",
    "members", "named", "serving_two_principals", "token", "until",
]
