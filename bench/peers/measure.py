"""One run of one tool: pinned to a CPU, stopped at the end of its time, its CPU time and memory counted.

Decides: CPU time is the kernel's count for the process and its waited-for children at its end (wait4), user and kernel
mode, start and end of the program included. Memory is the most resident bytes of the whole session at once,
sampled ten times a second, and no less than the peak that the kernel notes for its first process (VmHWM; not wait4's
ru_maxrss, which begins with what this harness held when it forked).

Invariants: when `run` returns, no process of the tool's session is left. At the end of its time a tool gets SIGINT,
which all of them take as "finish what is in flight", and SIGKILL if it has not ended GRACE_SECONDS later.
Limits: pages shared by processes of one session are counted in each.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

GRACE_SECONDS = 30
SAMPLE_SECONDS = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Run:
    """What a run came to."""

    started_at: float  # seconds since 1970
    wall_seconds: float
    user_seconds: float
    system_seconds: float
    waiting_seconds: float  # ready, while its CPU was another's
    rss_bytes_max: int
    ended: str
    code: int

    @property
    def cpu_seconds(self) -> float:
        """User and kernel mode together."""
        return self.user_seconds + self.system_seconds


def run(command: list, folder: Path, cpu: int, seconds: float, environment: dict) -> Run:
    """Runs `command` in `folder`, its output in `folder`/log."""
    with open(folder / "log", "wb") as log:
        started_at, started = time.time(), time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | environment,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
    rss, waiting, ended, deadline = 0, 0.0, "finished", started + seconds
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            rss = max(rss, session_rss(process.pid), peak_rss(process.pid))
            waiting = max(waiting, session_waiting(process.pid))
            now = time.monotonic()
            if now > deadline and ended == "finished":
                ended = f"stopped after {seconds:g} s"
                os.kill(process.pid, signal.SIGINT)
            elif now > deadline + GRACE_SECONDS:
                ended = f"killed after {seconds + GRACE_SECONDS:g} s"
                os.kill(process.pid, signal.SIGKILL)
            time.sleep(SAMPLE_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - started
    finally:
        for left in session(process.pid):
            os.kill(left, signal.SIGKILL)
    return Run(started_at, wall, usage.ru_utime, usage.ru_stime, waiting, rss, ended, process.returncode)


def stats():
    """(pid, fields of /proc/PID/stat after the name) of each process."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(stat.parent.name), stat.read_text().rpartition(") ")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue


def session(leader: int) -> list:
    """The processes of a session that are no zombies."""
    return [pid for pid, fields in stats() if int(fields[3]) == leader and fields[0] != "Z"]


def peak_rss(pid: int) -> int:
    """The kernel's peak of resident bytes of a process, 0 when it is over."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def session_rss(leader: int) -> int:
    """Resident bytes of a session."""
    return sum(int(fields[21]) * PAGE_BYTES for _, fields in stats() if int(fields[3]) == leader)


def session_waiting(leader: int) -> float:
    """Seconds in which the threads of a session were ready and had no CPU."""
    total = 0
    for pid in session(leader):
        for schedstat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(schedstat.read_text().split()[1])
            except (FileNotFoundError, ProcessLookupError, IndexError):
                continue
    return total / 1e9
