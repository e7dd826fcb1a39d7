"""Reads WARC files of others, and what damage leaves of them, with the crawler and with warcio or FastWARC.

    foreign.py CRAWLER FOLDER [JOBS [VARIANTS]]        exit code 1 when a check fails

Decides, for each WARC file below FOLDER (by its name) that the crawler lists the records that the tool reads: as many, of the
same types, URLs and payloads, at the same places, with the same digests wrong. What differs must be one of DIFFERENCES.
Then each file, and its export as warc.zst, is cut at VARIANTS places and gets VARIANTS flipped bits (damage.py).

Limits: files up to BYTES_MAX; a command has SECONDS. Nothing is written next to the files.
"""

import json
import re
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import damage
from crawler import Crawler, Record

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real"))
from compare import Report

BYTES_MAX = 64 << 20
SECONDS = 120
NAME = re.compile(r"\.warc(\.wat|\.wet)?(\.gz|\.zst)?(\.open)?$")

# How the crawler reads otherwise than the tool, and why. What is none of these is a difference. The first five are about
# one record, the others about where a tool ends.
DIFFERENCES = {
    "fold": "WARC 1.1 section 4: a folded line is joined by one space; warcio keeps the space or tab that the fold begins with",
    "space": "warcio writes %20 for a space in a URL; the crawler lists the URL that is there",
    "chunks": "a digest of the payload without its chunked coding is right by RFC 2616's entity-body; warcio compares the coded one",
    "frame": "of a record in a frame that it shares FastWARC says where the frame ends; the crawler, where it begins",
    "length": "without a Content-Length warcio takes all that follows for the block; the crawler takes none, and verify names the record",
    "url": "warcio raises at a request, response or resource without a URL; verify names what is missing",
    "members": "warcio ends at a gzip member of several records, and where a record goes on in the next member; both are read",
    "cut": "of a record that the file's end cuts warcio gives what there is; verify names it, and it is no record",
    "garbage": "warcio ends at bytes that are no record; verify names them, and the next record is read",
}


@dataclass
class Told:
    """What a tool says of a file."""

    records: list = field(default_factory=list)
    error: str = ""


def ask(path: Path) -> Told:
    """The tool's reading."""
    script = Path(__file__).resolve().parent / "read_foreign.py"
    try:
        ran = subprocess.run([sys.executable, str(script), str(path)], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Told(error=f"not done within {SECONDS} s")
    told = Told()
    for line in ran.stdout.splitlines():
        found = json.loads(line)
        if "error" in found:
            told.error = found["error"]
        else:
            told.records.append(found)
    if ran.returncode:
        told.error = f"exit code {ran.returncode}: {ran.stderr.decode('utf-8', 'replace')[-200:]}"
    return told


def of_record(ours: Record, theirs: dict, problems: list) -> tuple:
    """(explained, not explained) of what differs in one record."""
    explained, differences = set(), []
    kind, uri = theirs["kind"], theirs["uri"]
    if kind != ours.kind and kind.strip() == ours.kind:
        explained.add("fold")
    elif kind != ours.kind:
        differences.append(f"type {ours.kind!r}, read as {kind!r}")
    uri = uri[1:-1] if uri[:1] + uri[-1:] == "<>" else uri
    if uri != ours.uri:
        plain = uri.replace("%20", " ")
        if plain == ours.uri.replace("%20", " "):
            explained.add("space")
        elif plain.strip() == ours.uri:
            explained.add("fold")
        else:
            differences.append(f"URL {ours.uri!r}, read as {uri!r}")
    if theirs["payload"] != ours.payload:
        if any("Content-Length is missing" in what for what in problems):
            explained.add("length")
        else:
            differences.append(f"payload {ours.payload}, read as {theirs['payload']}")
    wrong = sorted(name for name in ("block", "payload") if f"WARC-{name.title()}-Digest does not hold" in problems)
    if wrong != theirs["wrong"]:
        if [name for name in theirs["wrong"] if name != "payload"] == wrong and "chunked" in theirs["coding"].lower():
            explained.add("chunks")
        elif "fold" not in explained and "length" not in explained:
            differences.append(f"digests {wrong} are wrong, and by the tool {theirs['wrong']}")
    return explained, differences


def has_odd_members(path: Path, records: int) -> bool:
    """Whether some gzip member is not one whole record."""
    data, starts = path.read_bytes(), []
    while data:
        decoder = zlib.decompressobj(31)
        try:
            starts.append(decoder.decompress(data)[:5])
        except zlib.error:
            break
        data = decoder.unused_data
    return len(starts) < records or any(start != b"WARC/" for start in starts)


def why_ended(path: Path, told: Told, ours: list, problems: dict) -> str:
    """Why the tool has fewer or more records than the crawler; empty: no reason is known."""
    theirs = len(told.records)
    if theirs == len(ours) + 1 and any("truncated" in what for all in problems.values() for what in all):
        return "cut"
    if theirs > len(ours):
        return ""
    if any("Content-Length is missing" in what for all in problems.values() for what in all) and not told.error:
        return "length"
    if told.error.startswith("AttributeError") and theirs < len(ours) and not ours[theirs].uri:
        return "url"
    if "non-chunked gzip" in told.error or path.name.endswith((".gz", ".gz.open")) and told.error:
        return "members" if has_odd_members(path, len(ours)) else ""
    if told.error.startswith("ArchiveLoadFailed: Invalid WARC record") and problems:
        return "garbage"
    return ""


def compare(crawler: Crawler, path: Path) -> tuple:
    """(explained, differences) of a file."""
    ours, told, problems = crawler.records(path), ask(path), crawler.problems(path)
    explained, differences = set(), []
    ends = ""
    if told.error or len(told.records) != len(ours):
        ends = why_ended(path, told, ours, problems)
        if ends:
            explained.add(ends)
        else:
            differences.append(f"{len(ours)} records, read as {len(told.records)}; {told.error or 'no error'}")
    for number, (mine, theirs) in enumerate(zip(ours, told.records)):
        # Within a member that is not its own a record has no place that tools agree on.
        place = problems.get(mine.offset, []) if ends != "members" else []
        known, wrong = ({"members"}, []) if ends == "members" else of_record(mine, theirs, place)
        if number and ours[number - 1].offset == mine.offset and path.name.endswith(".zst"):
            known.add("frame")
        elif theirs["offset"] != mine.offset and ends != "members":
            wrong.append(f"at {mine.offset}, read at {theirs['offset']}")
        explained |= known
        differences += [f"record {number}: {what}" for what in wrong]
    return explained, differences


def main(binary: str, folder: Path, jobs: int, variants: int) -> int:
    """Runs every check; returns how many failed."""
    report, crawler = Report(), Crawler(binary, SECONDS)
    files = sorted(path for path in folder.rglob("*") if NAME.search(path.name) and path.is_file())
    files = [path for path in files if path.stat().st_size <= BYTES_MAX]
    if not files:
        print(f"{folder}: no WARC files", file=sys.stderr)
        return 1
    met: dict = {}
    with ThreadPoolExecutor(jobs) as pool, tempfile.TemporaryDirectory(prefix="ringcrawl-foreign.") as temp:
        for path, (explained, differences) in zip(files, pool.map(lambda path: compare(crawler, path), files)):
            name = str(path.relative_to(folder))
            for why in explained:
                met.setdefault(why, []).append(name)
            report.check(f"{name} as others read it{': ' + ', '.join(sorted(explained)) if explained else ''}", differences)
        work = [(path, Path(temp) / str(number)) for number, path in enumerate(files)]
        done = pool.map(lambda one: damage.check(crawler, one[0], one[1], str(one[0].relative_to(folder)), variants), work)
        counts = damage.Counts()
        for (path, _), (counted, differences) in zip(work, done):
            counts += counted
            report.check(f"{path.relative_to(folder)} damaged: {counted}", differences)
    for why, names in sorted(met.items()):
        print(f"explained, {len(names)} files: {DIFFERENCES[why]}")
    print(f"{len(files)} files, {counts}; {report.passed} checks passed, {report.failed} failed")
    return report.failed


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[3:5]] + [2, 8][len(sys.argv[3:5]) :]
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), *numbers) > 0)
