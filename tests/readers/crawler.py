"""`ringcrawl store` as a reader of any files.

Decides: an exit code that is not documented, a panic, and a command that does not end are errors of the crawler (Broken).
"""

import base64
import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CODES = (0, 1)  # 2 is for usage and what cannot be opened


class Broken(Exception):
    """What the crawler must never do."""


@dataclass(frozen=True)
class Record:
    """A line of `store ls --records --digests`."""

    kind: str
    rest: tuple  # date, status, media type, bytes
    uri: str
    offset: int
    payload: str

    @property
    def said(self) -> tuple:
        """All but where it lies. A line end within a field is listed as U+FFFD, and exported as a space."""
        return (self.kind.replace("\ufffd", " "), self.rest, self.uri.replace("\ufffd", " "), self.payload)


class Crawler:
    """The binary."""

    def __init__(self, binary: str, seconds: int) -> None:
        self.binary, self.seconds = binary, seconds

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        """Runs `store`, whose exit code must be one that is documented."""
        command = [self.binary, "store", *map(str, arguments)]
        try:
            ran = subprocess.run(command, capture_output=True, timeout=self.seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"{' '.join(command[1:3])}: not done within {self.seconds} s") from None
        if ran.returncode not in CODES:
            said = ran.stderr.decode("utf-8", "replace")[-300:]
            raise Broken(f"{' '.join(command[1:3])}: exit code {ran.returncode}: {said}")
        return ran

    def records(self, path: Path) -> list:
        """All records, in order."""
        listed = []
        for line in self.run("ls", "--records", "--digests", path).stdout.decode("utf-8", "replace").split("\n")[:-1]:
            kind, *rest, uri, offset, payload = line.split("\t")
            listed.append(Record(kind, tuple(rest), uri, int(offset), payload))
        return listed

    def verify(self, path: Path) -> tuple:
        """(exit code, [(offset, record ID, what)])"""
        ran = self.run("verify", path)
        lines = ran.stdout.decode("utf-8", "replace").split("\n")[:-1]
        found = [re.search(r": (?:offset (\d+)|line \d+|-): (\S.*?|-): (.*)$", line) for line in lines]
        return ran.returncode, [(int(match[1] or -1), match[2], match[3]) for match in found if match]

    def problems(self, path: Path) -> dict:
        """What verify says is wrong, by offset."""
        problems: dict = {}
        for offset, _, what in self.verify(path)[1]:
            problems.setdefault(offset, []).append(what)
        return problems

    def export(self, path: Path, form: str, folder: Path) -> tuple:
        """(the new file, how many records it is said to have)"""
        ran = self.run("export", path, "--to", form, "--out", folder)
        count = re.search(r"(\d+) records? exported", ran.stderr.decode("utf-8", "replace"))
        return Path(ran.stdout.decode().strip()), int(count[1]) if count else -1

    def payload(self, path: Path, uri: str) -> str:
        """The digest of what `store cat` prints, or what it says instead."""
        ran = self.run("cat", "--as-stored", path, uri)
        if ran.returncode:
            return ran.stderr.decode("utf-8", "replace")
        return "sha256:" + base64.b32encode(hashlib.sha256(ran.stdout).digest()).decode()
