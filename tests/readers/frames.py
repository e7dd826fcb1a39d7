"""Reads segments after the specifications alone: gzip members (RFC 1952) or zstd frames (RFC 8878), a record in each.

    frames.py SEGMENT… >LISTING        exit code 1 when anything is wrong; what it is goes to standard error

Decides what the other readers are compared with. Each record's length, digests and index line are checked with nothing
but zlib, zstandard and hashlib: a member holds one record, `Content-Length` is true in the record's head and in that
of HTTP, every digest is that of its bytes, and the CDXJ next to the segment names each response once, at its place.

Writes a listing, a line a record, which read_warcio.py, read_fastwarc.py and read_warciojs.mjs write as well: type,
record ID, URL, status, and SHA-256 of the payload without content coding; then, here alone, SHA-256 of the payload as it
lies, and its coding. The payload of a record that is not HTTP is its block. A revisit has none of its own; as it lies it is
what its digest says, which must be the payload of a response in one of the segments.
Limits: a segment is read whole into memory.
"""

import base64
import hashlib
import json
import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import urljoin

import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real"))
import segments

HTTP_TYPES = ("response", "request", "revisit")
CAPTURES = ("response", "revisit")
DICTIONARY_MAGIC = bytes.fromhex("5d2a4d18")
NO_BODY = ("204", "304")  # their Content-Length, if any, is that of another response (RFC 9110 section 8.6)


class Wrong(Exception):
    """What is wrong with a record."""


def members(data: bytes):
    """(offset, length, text) of each gzip member or zstd frame."""
    if data[:2] != b"\x1f\x8b":
        decompressor = zstandard.ZstdDecompressor(dict_data=dictionary(data))
        for at, length in segments.frame_spans(data):
            yield at, length, decompressor.decompressobj().decompress(data[at : at + length])
        return
    at = 0
    while at < len(data):
        decoder = zlib.decompressobj(31)  # checks CRC and length
        text = decoder.decompress(memoryview(data)[at : at + (1 << 20)])
        taken = at + (1 << 20)
        while not decoder.eof:
            if taken >= len(data):
                raise Wrong(f"the member at {at} is cut")
            text += decoder.decompress(memoryview(data)[taken : taken + (1 << 20)])
            taken += 1 << 20
        end = min(taken, len(data)) - len(decoder.unused_data)
        yield at, end - at, text
        at = end


def dictionary(data: bytes):
    """What stands in the skippable frame at the start (IIPC's text, "Dictionary frame format"), or nothing."""
    if data[:4] != DICTIONARY_MAGIC:
        return None
    return zstandard.ZstdCompressionDict(data[8 : 8 + int.from_bytes(data[4:8], "little")])


def fields_of(head: bytes) -> dict:
    """A head's fields, the last of each name, after its first line."""
    lines = head.decode("utf-8", "replace").split("\r\n")[1:]
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_digest(said: str, data: bytes) -> bool:
    """Whether a digest field (WARC 1.1 section 5.8) is that of these bytes."""
    algorithm, _, value = said.partition(":")
    return base64.b32encode(hashlib.new(algorithm, data).digest()).decode().rstrip("=") == value.rstrip("=")


def content(payload: bytes, coding: str) -> bytes:
    """A payload without content coding. zlib at once where tests/real asks Python's slower gzip."""
    if coding in ("gzip", "x-gzip") and payload:
        decoder = zlib.decompressobj(31)
        text = decoder.decompress(payload)
        if not decoder.eof or decoder.unused_data:
            raise Wrong("a payload in gzip that is not one whole member")
        return text
    if coding == "br":
        import brotli  # what pywb brings

        return brotli.decompress(payload)
    return segments.content(payload, coding)


def read_record(text: bytes) -> dict:
    """The one record of a member, as a line of the listing and what the index must say."""
    head, mark, rest = text.partition(b"\r\n\r\n")
    if not mark or not head.startswith(b"WARC/1.1\r\n"):
        raise Wrong("no WARC/1.1 record at the start")
    fields = fields_of(head)
    length = int(fields["content-length"])
    block, end = rest[:length], rest[length:]
    if len(block) != length or end != b"\r\n\r\n":
        raise Wrong(f"Content-Length is {length}; after so many bytes comes {end[:20]!r}")
    kind, payload, status, coding = fields["warc-type"], block, "", ""
    if kind in HTTP_TYPES:
        http, mark, payload = block.partition(b"\r\n\r\n")
        http_fields = fields_of(http)
        if not mark:
            raise Wrong("the head of HTTP has no end")
        if kind in CAPTURES:
            status = http.split(b" ", 2)[1].decode()
            coding = http_fields.get("content-encoding", "").lower()
            said = http_fields.get("content-length")
            if kind == "response" and said is not None and status not in NO_BODY and said != str(len(payload)):
                raise Wrong(f"HTTP's Content-Length is {said}, the payload has {len(payload)} bytes")
            if "transfer-encoding" in http_fields:
                raise Wrong("Transfer-Encoding is named, and was undone")
    digests = [("warc-block-digest", block), ("warc-payload-digest", payload)]
    as_it_lies = sha256(payload)
    if kind == "revisit":
        del digests[1]
        if payload or not fields["warc-profile"].endswith("/identical-payload-digest"):
            raise Wrong("a revisit of another kind, or with a payload")
        if not fields["warc-refers-to-target-uri"] or not fields["warc-refers-to-date"]:
            raise Wrong("a revisit of nothing")
        label = fields["warc-payload-digest"].partition(":")[2]
        as_it_lies = base64.b32decode(label + "=" * (-len(label) % 8)).hex()
    found = [name for name, _ in digests if name in fields]
    if not found or kind == "response" and "warc-payload-digest" not in found:
        raise Wrong(f"a {kind} without the digest that it must have")
    for name, data in digests:
        if name in fields and not is_digest(fields[name], data):
            raise Wrong(f"{name} is not that of its {len(data)} bytes")
    decoded = content(payload, coding) if payload else payload
    return {
        "line": [kind, fields["warc-record-id"], fields.get("warc-target-uri", ""), status, sha256(decoded)]
        + [as_it_lies, coding or "-"],
        "index": {
            "url": fields.get("warc-target-uri", ""),
            "status": status,
            "digest": fields.get("warc-payload-digest", ""),
            "stamp": "".join(c for c in fields["warc-date"] if c.isdigit())[:14],
            "coding": coding,
            "charset": fields.get("x-crawl-charset", ""),
            "truncated": fields.get("warc-truncated", ""),
            "record-id": fields["warc-record-id"].strip("<>"),
            "redirect": redirect_of(fields.get("warc-target-uri", ""), status, http_fields) if kind in CAPTURES else "",
        },
    }


def redirect_of(url: str, status: str, http_fields: dict) -> str:
    """Where a response leads (RFC 9110 section 15.4)."""
    location = http_fields.get("location")
    return urljoin(url, location) if location and status in ("301", "302", "303", "307", "308") else ""


def sha256(data: bytes) -> str:
    """In hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_segment(path: Path, problems: list) -> list:
    """Lines of the listing."""
    lines, wanted = [], {}
    try:
        for offset, length, text in members(path.read_bytes()):
            try:
                record = read_record(text)
            except (Wrong, ValueError, KeyError, zlib.error, subprocess.SubprocessError) as error:
                problems.append(f"{path.name} at {offset}: {type(error).__name__} {error}")
                continue
            lines.append(record["line"])
            if record["line"][0] in CAPTURES:
                wanted[offset, length] = record["index"]
    except (Wrong, segments.Malformed, zlib.error, zstandard.ZstdError) as error:
        problems.append(f"{path.name}: {error}")
    check_index(path, wanted, problems)
    return lines


def index_of(path: Path) -> Path:
    """The CDXJ beside a segment."""
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".warc") + ".cdxj")


def check_index(path: Path, wanted: dict, problems: list) -> None:
    """Sorted by bytes, and one true line for each capture."""
    index = index_of(path)
    lines = index.read_bytes().splitlines() if index.exists() else []
    if lines != sorted(lines):
        problems.append(f"{index.name}: not sorted by bytes")
    left = dict(wanted)
    for line in lines:
        _, stamp, text = line.decode().split(" ", 2)
        entry = json.loads(text)
        found = left.pop((int(entry["offset"]), int(entry["length"])), None)
        said = {name: entry.get(name, "") for name in found or ()} | {"stamp": stamp}
        if found is None:
            problems.append(f"{index.name}: no response at {entry['offset']}: {entry['url']}")
        elif said != found or entry["filename"] != path.name:
            problems.append(f"{index.name}: {said} is said, {found} is true")
    problems += [f"{index.name}: lacks {found['url']}" for found in left.values()]


def main(paths: list) -> int:
    """Lists all segments; returns the exit code."""
    problems: list = []
    for path in paths:
        for line in read_segment(Path(path), problems):
            print("\t".join(line))
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
