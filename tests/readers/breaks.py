"""Breaks copies of a segment, and sees to it that the checks notice: a check that cannot fail says nothing.

Decides: one kind of damage a copy, made in one response in the middle of the segment, whose index stays as it was. Every
judge of check.py looks at every copy, and those that are named for it must object. The report names the others that
did. Limits: the segment must be in gzip members and hold a few responses.
"""

import gzip
import shutil
from pathlib import Path

import frames
import tools

# What each judge of check.py is called here.
JUDGES = ("frames", *tools.LISTING, "warcio check", "cdxj-indexer")


def flipped_byte(member: bytes) -> bytes:
    """A byte in the middle of the compressed bytes."""
    middle = len(member) // 2
    return member[:middle] + bytes([member[middle] ^ 0x55]) + member[middle + 1 :]


def dropped_record(_: bytes) -> bytes:
    """Nothing where there was a record."""
    return b""


def wrong_digest(member: bytes) -> bytes:
    """Another first letter of the payload's digest."""
    text = gzip.decompress(member)
    at = text.index(b"WARC-Payload-Digest: sha256:") + 28
    return gzip.compress(text[:at] + (b"B" if text[at : at + 1] == b"A" else b"A") + text[at + 1 :], mtime=0)


def changed_payload(member: bytes) -> bytes:
    """Another last byte of the payload, in a member that is whole."""
    text = gzip.decompress(member)
    return gzip.compress(text[:-5] + bytes([text[-5] ^ 1]) + text[-4:], mtime=0)


def false_length(member: bytes) -> bytes:
    """A Content-Length in the record's head that is one too small."""
    text = gzip.decompress(member)
    head, rest = text.split(b"\r\n\r\n", 1)
    before, length = head.rsplit(b"Content-Length: ", 1)
    return gzip.compress(before + b"Content-Length: " + str(int(length) - 1).encode() + b"\r\n\r\n" + rest, mtime=0)


# Damage, and who must see it.
BREAKS = {
    flipped_byte: {"frames", "warcio", "FastWARC", "warcio check", "cdxj-indexer"},
    dropped_record: set(JUDGES),
    wrong_digest: {"frames", "FastWARC", "warcio check", "cdxj-indexer"},
    changed_payload: {"frames", *tools.LISTING, "warcio check"},
    false_length: {"frames", "FastWARC", "warcio check"},
}


def check(report, segment: Path, folder: Path, modules: Path) -> None:
    """Breaks the segment in every way, and reports a check for each."""
    data = segment.read_bytes()
    whole = list(frames.members(data))
    plain = [
        (offset, length)
        for offset, length, text in whole
        if b"WARC-Type: response" in text[:200] and b"Content-Encoding" not in text[:2000] and length > 600
    ]
    offset, length = plain[len(plain) // 2]
    truth = tools.read("frames", [segment], modules).lines
    for damage, wanted in {None: set(), **BREAKS}.items():
        name = damage.__name__ if damage else "untouched"
        copy = folder / name / segment.name
        copy.parent.mkdir(parents=True)
        member = data[offset : offset + length]
        copy.write_bytes(data[:offset] + (damage(member) if damage else member) + data[offset + length :])
        shutil.copy(frames.index_of(segment), copy.parent)
        seen = {judge for judge in JUDGES if objections(judge, copy, truth, modules)}
        differences = [f"{judge} does not notice" for judge in sorted(wanted - seen)]
        if not damage:
            differences = [f"{judge} objects" for judge in sorted(seen)]
        title = name.replace("_", " ")
        report.check(f"broken copy, {title}: noticed by {', '.join(sorted(seen)) or 'none'}", differences)


def objections(judge: str, copy: Path, truth: list, modules: Path) -> list:
    """What a judge has against a copy."""
    reading = tools.read(judge, [copy], modules)
    if judge in tools.LISTING:
        return tools.compare_listing(judge, truth, reading)
    if judge == "warcio check":
        return tools.compare_check(truth, reading)
    if judge == "cdxj-indexer":
        return tools.compare_index([frames.index_of(copy)], reading)
    return tools.failed(reading)
