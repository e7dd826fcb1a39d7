"""Waits until the servers of a run answer, and checks that they answer as the test needs it.

    ready.py RUN_DIR

Decides: a name of the run has its addresses, another has none and its NXDOMAIN comes at once, every port accepts.
Limits: the caller bounds the time.
"""

import json
import socket
import struct
import sys
import time
from pathlib import Path

NXDOMAIN = 3
ROUND_SECONDS = 0.1


def main(run: Path) -> None:
    """Returns when all is up; exits when a server answers wrongly."""
    facts = json.loads((run / "run.json").read_text())
    name, addresses = next(iter(facts["names"].items()))
    for scheme in facts["ports"].keys() - {"dns"}:
        wait_for(lambda port=facts["ports"][scheme]: connect(addresses[0], port))
    code, count = wait_for(lambda: ask(facts["ports"]["dns"], name))
    if (code, count) != (0, len(addresses)):
        raise SystemExit(f"unbound: {name} has {count} addresses, code {code}")
    code, count = ask(facts["ports"]["dns"], "www.debian.org")
    if (code, count) != (NXDOMAIN, 0):
        raise SystemExit(f"unbound lets names of the outside through: code {code}")


def wait_for(attempt):
    """The attempt's result, as soon as it does not fail."""
    while True:
        try:
            return attempt()
        except OSError:
            time.sleep(ROUND_SECONDS)


def connect(address: str, port: int) -> None:
    """A connection, closed at once."""
    socket.create_connection((address, port), 1).close()


def ask(port: int, name: str) -> tuple:
    """(response code, number of answers) to a question for A records (RFC 1035 section 4.1)."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!x2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(1)
        udp.connect(("127.0.0.1", port))
        udp.send(query)
        answer = udp.recv(4096)
    _, flags, _, count, _, _ = struct.unpack("!6H", answer[:12])
    return flags & 15, count


if __name__ == "__main__":
    main(Path(sys.argv[1]))
