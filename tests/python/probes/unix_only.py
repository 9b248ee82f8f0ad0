#!/usr/bin/env python3
"""Listens on a unix socket and on nothing else: `unix_only.py PATH`. A separate program, with no sign of an HTTP
server in its text."""

import signal
import socket
import sys

one = socket.socket(socket.AF_UNIX)
one.bind(sys.argv[1])
one.listen()
while True:
    signal.pause()
