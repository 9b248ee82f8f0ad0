"""tmux as the reference for screens: the same program in tmux, read by capture-pane."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from .procs import until

#: The `TERM` of both terminals.
TERM = "xterm-256color"

#: Without the user's settings, status line and escape delay.
CONFIGURATION = """
set -g status off
set -g escape-time 0
set -g remain-on-exit on
set -g default-shell /bin/sh
set -g history-limit 2000
set -g allow-rename off
"""

#: The tmux names of keys.
NAMES = {
    "enter": "Enter", "escape": "Escape", "tab": "Tab", "backspace": "BSpace", "space": "Space",
    "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End",
    "page-up": "PPage", "page-down": "NPage", "insert": "IC", "delete": "DC",
}


#: Attributes and links as tmux captures them.
ATTRIBUTES = re.compile(r"\x1b\[[0-9;:]*m|\x1b\]8;[^\x1b]*\x1b\\")
#: DEC's special graphics set for the characters from ` to ~.
DRAWN = str.maketrans("`abcdefghijklmnopqrstuvwxyz{|}~", "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


def plain(captured):
    """Captured text without attributes; the character set persists from row to row."""
    pieces = ATTRIBUTES.sub("", captured).split("\x0e")
    drawn = (piece.partition("\x0f") for piece in pieces[1:])
    return pieces[0] + "".join(lines.translate(DRAWN) + rest for lines, _, rest in drawn)


def named(key):
    """Converts a key name to that of tmux."""
    *modifiers, name = re.split(r"-(?=.)", key) if key not in NAMES else [key]
    short = {"ctrl": "C-", "alt": "M-", "shift": "S-"}
    return "".join(short[word] for word in modifiers) + NAMES.get(name, name.upper() if re.fullmatch(r"f\d+", name) else name)


class Tmux:
    """One program in a tmux server of its own."""

    def __init__(self, argv, cwd, env, cols=80, rows=24):
        self.dir = Path(tempfile.mkdtemp(prefix="oracle-"))
        self.conf = self.dir / "conf"
        self.conf.write_text(CONFIGURATION)
        words = ["env", "-u", "TMUX", "-u", "TMUX_PANE", f"TERM={TERM}", *map(str, argv)]
        env = {**env, "TMUX_TMPDIR": str(self.dir), "LC_ALL": "C.UTF-8"}
        self.env = env
        self.tmux("new-session", "-d", "-s", "it", "-x", str(cols), "-y", str(rows),
                  "-c", str(cwd), "--", *words)

    def tmux(self, *args):
        command = ["tmux", "-u", "-L", "oracle", "-f", str(self.conf), *args]
        done = subprocess.run(command, env=self.env, capture_output=True, check=False, timeout=20)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout.decode()

    def type(self, text):
        self.tmux("send-keys", "-t", "it", "-l", "--", text)

    def key(self, *keys):
        self.tmux("send-keys", "-t", "it", *map(named, keys))

    def raw(self, data):
        self.tmux("send-keys", "-t", "it", "-H", *(f"{byte:02x}" for byte in data))

    def resize(self, cols, rows):
        self.tmux("resize-window", "-t", "it", "-x", str(cols), "-y", str(rows))

    def rows(self):
        """All rows without trailing blanks."""
        # With attributes: without them, letters of the line-drawing set come untranslated.
        shown = plain(self.tmux("capture-pane", "-p", "-e", "-t", "it"))
        return [row.rstrip() for row in shown.split("\n")[:-1]]

    def text(self):
        return "\n".join(self.rows())

    def cursor(self):
        """Column and row, from 0."""
        col, row = self.tmux("display-message", "-p", "-t", "it", "#{cursor_x} #{cursor_y}").split()
        return int(col), int(row)

    def alternate(self):
        return self.tmux("display-message", "-p", "-t", "it", "#{alternate_on}").strip() == "1"

    def shows(self, fact, seconds=10):
        """Waits until a pattern matches the screen."""
        return until(lambda: re.search(fact, self.text(), re.M), seconds, f"tmux: {fact!r}")

    def close(self):
        subprocess.run(["tmux", "-L", "oracle", "kill-server"], env=self.env, capture_output=True,
                       check=False, timeout=20)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
