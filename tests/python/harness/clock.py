"""A clock that steps: all processes of an installation read the time of day through a library that adds an offset."""

import contextlib
import mmap
import struct
import subprocess

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long long *offset;

__attribute__((constructor)) static void begin(void) {
    int file = open(OFFSET, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *page = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) offset = page;
}

int clock_gettime(clockid_t id, struct timespec *at) {
    int result = syscall(SYS_clock_gettime, id, at);
    if (result == 0 && id == CLOCK_REALTIME && offset) at->tv_sec += *offset;
    return result;
}
"""

#: Lists the library for every program in its mount namespace, and stays until its input ends.
KEEPER = """
mkdir -p "$1/upper" "$1/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" overlay /etc
echo "$2" > /etc/ld.so.preload
echo ready
exec cat
"""


class SteppingClock:
    """The offset of the time of day, in seconds."""

    def __init__(self, page):
        self.page = page

    def step(self, seconds):
        [offset] = struct.unpack("q", self.page[:8])
        self.page[:8] = struct.pack("q", offset + seconds)


@contextlib.contextmanager
def stepping_clock(installation):
    """Gives what this installation starts a clock of its own; root only."""
    offset, library = installation.dir / "offset", installation.dir / "clock.so"
    offset.write_bytes(bytes(8))
    layers = installation.dir / "etc"
    layers.mkdir()
    # A layer must not be on an overlay itself.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(layers)], check=True)
    command = ["cc", "-shared", "-fPIC", "-O", f'-DOFFSET="{offset}"', "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    words = ["unshare", "--mount", "--", "sh", "-ec", KEEPER, "sh", str(layers), str(library)]
    keeper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert keeper.stdout.readline() == b"ready\n"
        installation.within = ("nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt")
        with open(offset, "r+b") as file, mmap.mmap(file.fileno(), 8) as page:
            yield SteppingClock(page)
    finally:
        installation.within = ()
        keeper.communicate()
        subprocess.run(["umount", "-l", str(layers)], check=True)
