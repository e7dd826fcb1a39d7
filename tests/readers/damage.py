"""Damages copies of a WARC file, and sees what the crawler still reads of them.

Decides: a copy is cut at some byte or gets one flipped bit, at places that follow from the file's name; next to the
file itself its export as warc.zst. Of every copy, whatever is in it:

- a command ends in time with an exit code that is documented, and never by a panic;
- the records before the damage are there, unchanged; in a compressed file with a record in each frame, those behind, too;
- a file that was cut inside a record, and a compressed one that reads otherwise than before, does not verify, and what verify
  says names a place that is not behind the damage;
- export writes what is listed and nothing else, and reports the number of records; what it wrote verifies as before;
- `store cat` prints the last page that is still listed.

Limits: one of a file's copies lies on the disk at a time.
"""

import re
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from crawler import Broken, Crawler

PLAIN_URL = re.compile(r"https?://[a-z0-9.-]+/[A-Za-z0-9_./-]*")


@dataclass
class Counts:
    """What was done."""

    copies: int = 0
    told: int = 0
    printed: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.copies + other.copies, self.told + other.told, self.printed + other.printed)

    def __str__(self) -> str:
        return f"{self.copies} copies, {self.told} do not verify, {self.printed} pages printed"


@dataclass
class Whole:
    """A file before it is damaged."""

    path: Path
    data: bytes
    records: list
    is_clean: bool  # verify finds nothing
    is_framed: bool  # compressed, with a record in each frame

    def before(self, place: int) -> list:
        """Records that end at or before a place."""
        offsets = sorted({record.offset for record in self.records}) + [len(self.data)]
        ends = dict(zip(offsets, offsets[1:]))
        return [record for record in self.records if ends[record.offset] <= place]

    def is_between(self, place: int) -> bool:
        """Whether a cut there leaves whole records alone."""
        rest = min((record.offset for record in self.records if record.offset >= place), default=len(self.data))
        is_line_ends = not self.is_compressed() and not self.data[place:rest].strip(b"\r\n")
        return place == rest or is_line_ends

    def is_compressed(self) -> bool:
        """By its first bytes."""
        return self.data[:4] != b"WARC"


def whole(crawler: Crawler, path: Path) -> Whole:
    """Reads a file."""
    records = crawler.records(path)
    code, _ = crawler.verify(path)
    found = Whole(path, path.read_bytes(), records, code == 0, False)
    offsets = [record.offset for record in records]
    found.is_framed = found.is_compressed() and len(set(offsets)) == len(offsets)
    return found


def check(crawler: Crawler, path: Path, folder: Path, name: str, variants: int) -> tuple:
    """(counts, differences)"""
    counts, differences = Counts(), []
    folder.mkdir()
    try:
        forms = [whole(crawler, path)]
        exported, count = crawler.export(path, "warc.zst", folder / "zst")
        if count > 0:
            forms.append(whole(crawler, exported))
        for form in forms:
            rng = Random(sha256(f"{name} {form.path.suffix}".encode()).digest())
            for number in range(2 * variants):
                place = rng.randrange(max(1, len(form.data)))
                bit = None if number % 2 else 1 << rng.randrange(8)
                copy = folder / form.path.name
                what = f"{form.path.name}, {'cut' if bit is None else 'a bit flipped'} at {place}: "
                try:
                    differences += [what + one for one in look(crawler, form, copy, place, bit, counts)]
                except Broken as error:
                    differences.append(what + str(error))
    except Broken as error:
        differences.append(str(error))
    finally:
        shutil.rmtree(folder)
    return counts, differences


def look(crawler: Crawler, form: Whole, copy: Path, place: int, bit, counts: Counts) -> list:
    """What is wrong with the reading of one damaged copy."""
    damaged = bytearray(form.data[:place] if bit is None else form.data)
    if bit is not None and damaged:
        damaged[place] ^= bit
    copy.write_bytes(damaged)
    counts.copies += 1
    listed = crawler.records(copy)
    code, problems = crawler.verify(copy)
    counts.told += code
    differences = []

    before = form.before(place)
    if listed[: len(before)] != before:
        differences.append(f"of {len(before)} records before it {len(listed)} are listed, or others")
    # The damage may be in a dictionary, which all need.
    has_reader = not form.records or place >= form.records[0].offset
    if bit is not None and form.is_framed and form.is_clean and has_reader:
        behind = [record for record in form.records if record.offset > place]
        if behind and listed[-len(behind) :] != behind:
            differences.append(f"of {len(behind)} records behind it {len(listed) - len(before)} are listed, or others")
    is_between = form.is_between(place) or place == 0 and form.path.suffix == ".open"  # just begun
    is_told = bit is None and not is_between or form.is_compressed() and listed != form.records
    if is_told and (code == 0 or not any(0 <= offset <= place for offset, _, _ in problems)):
        differences.append(f"verify ends with {code} and says {problems[:2]}")

    out = copy.parent / "out"
    written, count = crawler.export(copy, "warc.gz", out)
    said = [record.said for record in crawler.records(written)] if count else []
    if count != len(listed) or said != [record.said for record in listed]:
        differences.append(f"{len(listed)} records are listed, {count} exported, of which {len(said)} are listed")
    shutil.rmtree(out)

    pages: dict = {}
    for record in listed:
        if record.kind in ("response", "revisit", "resource", "conversion"):
            pages.setdefault(record.uri, []).append(record)
    single = [found[0] for uri, found in pages.items() if len(found) == 1 and PLAIN_URL.fullmatch(uri)]
    printable = [record for record in single if record.kind == "response"]
    if printable:
        counts.printed += 1
        last = printable[-1]
        printed = crawler.payload(copy, last.uri)
        if printed != last.payload:
            differences.append(f"{last.uri}: {last.payload} is listed, cat: {printed}")
    return differences
