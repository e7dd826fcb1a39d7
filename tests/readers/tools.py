"""The readers, as commands, and what of their differences is known and explained.

Decides: how each tool is asked, and when two tools read the same. A tool's listing (frames.py says its columns) must
have each record of frames.py, with the same type, URL, status and payload. A payload may come as it lies where the table
NOT_DECODED says so for the tool and the coding, and it must then be exactly the stored bytes.
Limits: each command has COMMAND_SECONDS; the first words of what it says when it fails are kept.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND_SECONDS = 600

# Why a tool's payload is not the decoded one. What is not in this table is a difference.
# warcio decodes br where the package brotli is there, as pywb brings it; by itself it does not.
NOT_DECODED = {
    ("warcio", "x-gzip"): "its content_stream() knows gzip, deflate and br; another coding comes as it lies",
    ("warcio", "zstd"): "its content_stream() knows gzip, deflate and br; another coding comes as it lies",
    ("FastWARC", "x-gzip"): "its auto_decode knows gzip, deflate, br and zstd; x-gzip raises, so it is read undecoded",
    ("warcio.js", "br"): "its readers know gzip and deflate; br comes as it lies",
    ("warcio.js", "zstd"): "its readers know gzip and deflate; zstd comes as it lies",
}


@dataclass
class Reading:
    """What came of one command."""

    code: int
    lines: list
    said: str  # the first words on standard error
    seconds: float
    explained: Counter = field(default_factory=Counter)


def command(tool: str, modules: Path) -> list:
    """A tool's command, which takes segments."""
    script = {"frames": "frames.py", "warcio": "read_warcio.py", "FastWARC": "read_fastwarc.py"}
    if tool in script:
        return [sys.executable, str(HERE / script[tool])]
    if tool == "warcio.js":
        return ["node", str(HERE / "read_warciojs.mjs"), str(modules)]
    beside = Path(sys.executable).parent
    if tool == "warcio check":
        return [sys.executable, "-c", "from warcio.cli import main; main()", "check", "-v"]
    return [str(beside / "cdxj-indexer"), "--sort"]


# Members of an index line that cdxj-indexer does not write.
OUR_MEMBERS = ("mime-detected", "charset", "coding", "redirect", "truncated", "record-id")
LISTING = ("warcio", "FastWARC", "warcio.js")


def read(tool: str, paths: list, modules: Path) -> Reading:
    """Runs a tool over segments."""
    started = time.monotonic()
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    asked = command(tool, modules) + [str(path) for path in paths]
    try:
        ran = subprocess.run(asked, capture_output=True, timeout=COMMAND_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return Reading(124, [], f"not done within {COMMAND_SECONDS} s", COMMAND_SECONDS)
    lines = ran.stdout.decode("utf-8", "replace").splitlines()
    said = " | ".join(ran.stderr.decode("utf-8", "replace").strip().splitlines()[-3:])[:400]
    return Reading(ran.returncode, lines, said, time.monotonic() - started)


def failed(reading: Reading) -> list:
    """What a tool says is wrong."""
    return [f"exit code {reading.code}: {reading.said}"] if reading.code else []


def compare_listing(tool: str, truth: list, reading: Reading) -> list:
    """Differences between a tool's listing and that of frames.py; what the table explains is counted instead."""
    differences = failed(reading)
    left = {}
    for line in reading.lines:
        columns = line.split("\t")
        if columns[1] in left:
            differences.append(f"twice: {line}")
        left[columns[1]] = columns
    for line in truth:
        columns = line.split("\t")
        wanted, (as_it_lies, coding) = columns[:5], columns[5:]
        found = left.pop(columns[1], None)
        if found == wanted:
            continue
        if found and found[:4] == wanted[:4] and found[4] == as_it_lies and (tool, coding) in NOT_DECODED:
            reading.explained[coding] += 1
            continue
        differences.append(f"{' '.join(wanted[:4])}: {'not read' if found is None else f'read as {found}'}")
    return differences + [f"not in the segment: {columns}" for columns in left.values()]


def types_of(lines: list) -> Counter:
    """How many records there are of each type."""
    return Counter(line.split("\t", 1)[0] for line in lines)


def compare_check(truth: list, reading: Reading) -> list:
    """`warcio check`: every record has a digest, and it is right, but for those that it does not check."""
    said = Counter(line.strip() for line in reading.lines if line.startswith("    "))
    differences = failed(reading)
    # Of a revisit the digest is that of another record's payload.
    revisits = types_of(truth)["revisit"]
    unchecked = "digest present but not checked (revisit)"
    if said != Counter({"digest pass": len(truth) - revisits}) + Counter({unchecked: revisits}):
        differences.append(f"of {len(truth)} records warcio check says {dict(said.most_common(5))}")
    return differences


def index_lines(lines: list, with_more: bool) -> Counter:
    """Lines of a CDXJ as (key, timestamp, members), without the members that only the crawler writes."""
    parsed: Counter = Counter()
    for line in lines:
        key, stamp, text = line.split(" ", 2)
        members = json.loads(text)
        if with_more:
            members = {name: value for name, value in members.items() if name not in OUR_MEMBERS}
        parsed[key, stamp, json.dumps(members, sort_keys=True)] += 1
    return parsed


def compare_index(indexes: list, reading: Reading) -> list:
    """cdxj-indexer's own index of the segments against those that lie beside them."""
    ours: Counter = Counter()
    for index in indexes:
        ours += index_lines(index.read_text().splitlines(), True) if index.exists() else Counter()
    # Names of hosts are no pages: it has a line for each, and the crawler none.
    theirs = index_lines([line for line in reading.lines if not line.startswith("dns:")], False)
    differences = failed(reading)
    differences += [f"only in the crawler's index: {line}" for line in (ours - theirs).elements()]
    return differences + [f"only in cdxj-indexer's: {line}" for line in (theirs - ours).elements()]
