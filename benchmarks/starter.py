"""Runs a command and prints what it took as JSON: seconds on the clock and of the processor, peak memory in
KB, exit code.

A process of its own, and a small one: the kernel counts the memory of whoever starts a process as its peak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    started = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps([wall, used.ru_utime + used.ru_stime, used.ru_maxrss, process.returncode]))


if __name__ == "__main__":
    main()
