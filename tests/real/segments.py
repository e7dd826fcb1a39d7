"""Reads a crawl's segments with foreign eyes: frame by frame after RFC 8878, record by record with FastWARC and warcio.

    segments.py CRAWL_DIR     checks the store alone

Decides: a store is well formed when `zstd -t` takes each segment; every frame states its content size, carries a
checksum and holds exactly one whole WARC record; FastWARC reads the same records as it lies and finds all digests
right; `warcio check` takes what `zstd -d` makes of it; the CDXJ next to it is sorted bytewise and points at each
response once. The walk over the frames is written from the RFC, because a decoder would hide a second record.

Limits: a segment is read whole into memory, so this is for segments of megabytes.
Leaves to others: whether the right pages were stored (compare.py).
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecordType

FRAME_MAGIC = 0xFD2FB528  # RFC 8878 section 3.1.1
SKIPPABLE_MAGIC = 0x184D2A50  # to ..5F, section 3.1.2
BLOCK_BYTES_MAX = 128 * 1024
CAPTURES = ("response", "revisit")


class Malformed(Exception):
    """What is wrong with a store, and where."""


@dataclass
class Stored:
    """One response record, or a revisit with the payload that it refers to."""

    url: str
    status: int
    sha256: str  # of the payload without content coding
    segment: str
    shard: str


def segments_of(crawl: Path) -> list:
    """Closed segments; one that is still open after a finished crawl is an error."""
    still_open = sorted(str(path) for path in crawl.rglob("*.open"))
    if still_open:
        raise Malformed(f"the crawl ended and left open: {still_open[:3]}")
    found = sorted(crawl.rglob("*.warc.zst"))
    if not found:
        raise Malformed(f"no segment under {crawl}")
    return found


def read_segment(path: Path, problems: list, contents: dict) -> list:
    """The captures of a segment; what is wrong with it goes to `problems`, at most one of a kind. `contents` has the digest of
    the content of each payload so far: a revisit comes after what it refers to, in the same shard."""
    data = path.read_bytes()
    name = path.name
    frames = []
    try:
        for offset, length in frame_spans(data):
            frames.append((offset, length, one_record(data[offset : offset + length], f"{name}@{offset}")))
    except Malformed as error:
        problems.append(str(error))
    stored, ids = [], []
    payload_digests = {}
    for record in ArchiveIterator(str(path), WarcRecordType.any_type, parse_http=False, fsspec_args=False):
        ids.append(record.record_id)
        if record.headers.get("WARC-Block-Digest") and not record.verify_block_digest():
            problems.append(f"{name}: FastWARC finds a wrong block digest: {record.record_id}")
    if ids != [fields.get("warc-record-id") for _, _, fields in frames]:
        problems.append(f"{name}: FastWARC reads {len(ids)} records, the frames hold {len(frames)}")
    for record in ArchiveIterator(
        str(path),
        WarcRecordType.response | WarcRecordType.revisit,
        parse_http=True,
        auto_decode="none",
        fsspec_args=False,
    ):
        url = record.headers.get("WARC-Target-URI")
        label = record.headers.get("WARC-Payload-Digest")
        if record.headers.get("WARC-Type") == "revisit":
            digest = contents.get(label, "nowhere")
            if digest == "nowhere" or record.reader.read():
                problems.append(f"{name}: a revisit of nothing, or with a payload: {url}")
        else:
            if not record.verify_payload_digest():
                problems.append(f"{name}: FastWARC finds a wrong or no payload digest: {url}")
            coding = (record.http_headers.get("Content-Encoding") or "identity") if record.http_headers else "identity"
            digest = hashlib.sha256(content(record.reader.read(), coding.lower())).hexdigest()
            contents[label] = digest
        status = record.http_headers.status_code if record.http_headers else 0
        payload_digests[record.record_id] = label
        shard = path.parent.parent.name
        stored.append(Stored(url, status, digest, name, shard))
    if len(stored) != sum(fields.get("warc-type") in CAPTURES for _, _, fields in frames):
        problems.append(f"{name}: FastWARC reads {len(stored)} responses, the frames hold another number")
    check_index(path, frames, stored, payload_digests, problems)
    return stored


def content(payload: bytes, coding: str) -> bytes:
    """A payload without its content coding (RFC 9110 section 8.4); what is in another one stays as it is."""
    if coding in ("gzip", "x-gzip"):
        return gzip.decompress(payload) if payload else payload
    if coding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(payload)
    if coding == "br":
        return subprocess.run(["brotli", "-dc"], input=payload, check=True, capture_output=True, timeout=60).stdout
    return payload


def frame_spans(data: bytes):
    """(offset, length) of each zstd frame, by its headers alone; skippable frames are for a dictionary, at 0."""
    at = 0
    while at < len(data):
        magic = number(data, at, 4)
        if magic & 0xFFFFFFF0 == SKIPPABLE_MAGIC:
            if at:
                raise Malformed(f"a skippable frame at {at}")
            at += 8 + number(data, at + 4, 4)
            continue
        if magic != FRAME_MAGIC:
            raise Malformed(f"no frame at {at}")
        descriptor = number(data, at + 4, 1)
        single_segment, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
        size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
        if not size_bytes:
            raise Malformed(f"the frame at {at} does not state its content size")
        if not checksum:
            raise Malformed(f"the frame at {at} carries no checksum")
        end = at + 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
        is_last = 0
        while not is_last:
            header = number(data, end, 3)
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            if kind == 3 or size > BLOCK_BYTES_MAX:
                raise Malformed(f"a block that may not be, in the frame at {at}")
            end += 3 + (1 if kind == 1 else size)
        end += 4
        if end > len(data):
            raise Malformed(f"the frame at {at} is cut")
        yield at, end - at
        at = end


def number(data: bytes, at: int, length: int) -> int:
    """A little-endian number."""
    taken = data[at : at + length]
    if len(taken) < length:
        raise Malformed(f"cut at {at}")
    return int.from_bytes(taken, "little")


def one_record(frame: bytes, where: str) -> dict:
    """The fields of the one record that a frame must be: no byte before, between or after."""
    try:
        # One decoder, one frame: the content checksum is verified, and nothing may follow.
        decoder = zstandard.ZstdDecompressor().decompressobj()
        text = decoder.decompress(frame)
    except zstandard.ZstdError as error:
        raise Malformed(f"{where}: {error}") from None
    stated = zstandard.get_frame_parameters(frame).content_size
    if not decoder.eof or stated != len(text):
        raise Malformed(f"{where}: {len(text)} bytes, but the frame states {stated}")
    head, mark, _ = text.partition(b"\r\n\r\n")
    lines = head.decode("utf-8", "replace").split("\r\n")
    if not mark or lines[0] not in ("WARC/1.1", "WARC/1.0"):
        raise Malformed(f"{where}: no WARC record at the start")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = fields.get("content-length", "")
    if not length.isdigit():
        raise Malformed(f"{where}: Content-Length is {length!r}")
    end = len(head) + 4 + int(length)
    if text[end:] != b"\r\n\r\n":
        raise Malformed(f"{where}: after the record's {end} bytes come {text[end : end + 20]!r}, not its end alone")
    return fields


def check_index(path: Path, frames: list, stored: list, payload_digests: dict, problems: list) -> None:
    """The CDXJ: sorted, and a bijection to the response records."""
    beside = [path.with_name(path.name + ".cdxj"), path.with_name(path.name.removesuffix(".warc.zst") + ".cdxj")]
    index = next((candidate for candidate in beside if candidate.is_file()), None)
    if index is None:
        problems.append(f"{path.name}: no CDXJ beside it")
        return
    lines = index.read_bytes().splitlines()
    if lines != sorted(lines):
        problems.append(f"{index.name}: not sorted bytewise")
    by_place = {(offset, length): fields for offset, length, fields in frames}
    statuses = {(found.url, found.status) for found in stored}
    indexed = set()
    for line in lines:
        if line.startswith(b"!"):
            continue  # a header line of the format
        key, stamp, text = line.decode().split(" ", 2)
        entry = json.loads(text)
        place = (int(entry["offset"]), int(entry["length"]))
        fields = by_place.get(place, {})
        said, true = entry.get("digest", ""), payload_digests.get(fields.get("warc-record-id")) or ""
        wrong = [
            what
            for what, is_right in {
                "points at no record": bool(fields),
                "points at a record that is no capture": fields.get("warc-type") in CAPTURES,
                "url": fields.get("warc-target-uri") == entry["url"],
                "status": (entry["url"], int(entry["status"])) in statuses,
                "timestamp": "".join(c for c in fields.get("warc-date", "") if c.isdigit())[:14] == stamp,
                "digest": said.split(":")[-1] == true.split(":")[-1] and said != "",
                "filename": os.path.basename(entry["filename"]) == path.name,
                "key": ")" in key and key.isascii(),
                "twice": place not in indexed,
            }.items()
            if not is_right
        ]
        indexed.add(place)
        if wrong:
            problems.append(f"{index.name}: {wrong[0]}: {line[:160]!r}")
            return
    if len(indexed) != len(stored):
        problems.append(f"{index.name}: {len(indexed)} lines for {len(stored)} responses")


def foreign_tools(path: Path, problems: list) -> None:
    """`zstd -t`, and `warcio check` of what `zstd -d` writes."""
    tested = subprocess.run(["zstd", "-tq", str(path)], capture_output=True, text=True, timeout=120)
    if tested.returncode:
        problems.append(f"{path.name}: zstd -t: {tested.stderr.strip()[:200]}")
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "segment.warc")
        subprocess.run(["zstd", "-dq", str(path), "-o", plain], check=True, timeout=120)
        check = [sys.executable, "-c", "from warcio.cli import main; main()", "check", plain]
        checked = subprocess.run(check, capture_output=True, text=True, timeout=600)
        if checked.returncode:
            said = (checked.stdout + checked.stderr).strip().replace("\n", " ")
            problems.append(f"{path.name}: warcio check: {said[:300]}")


def read_store(crawl: Path) -> tuple:
    """(responses, segments, problems) of a crawl's directory."""
    problems: list = []
    stored: list = []
    contents: dict = {}
    try:
        segments = segments_of(crawl)
    except Malformed as error:
        return [], [], [str(error)]
    for path in segments:
        try:
            stored += read_segment(path, problems, contents)
        except (OSError, ValueError, KeyError) as error:
            problems.append(f"{path.name}: {type(error).__name__}: {error}")
        foreign_tools(path, problems)
    return stored, segments, problems


if __name__ == "__main__":
    responses, files, wrong = read_store(Path(sys.argv[1]))
    print(f"{len(files)} segments, {len(responses)} responses, {len(wrong)} problems", *wrong, sep="\n  ")
    sys.exit(bool(wrong))
