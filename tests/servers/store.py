"""Reads a crawl's store for tests/servers, by `zstd -d` and the WARC standard alone.

Leaves to others: whether the store is well formed (tests/real/segments.py, `ringcrawl store verify`).
"""

import gzip
import hashlib
import subprocess
import zlib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stored:
    """A response, and what its metadata record says."""

    url: str
    status: int
    fields: dict  # of the HTTP head, names in small letters
    body_bytes: int  # of its content, without content coding
    sha256: str
    protocol: str = ""  # the last WARC-Protocol
    metadata: dict = field(default_factory=dict)


def read(crawl: Path) -> list:
    """Every response in the store, and every revisit with the content that it refers to."""
    found, contents = [], {}
    for segment in sorted(crawl.rglob("*.warc.zst")):
        run = subprocess.run(["zstd", "-dcq", str(segment)], check=True, capture_output=True, timeout=120)
        by_id = {}
        for warc, block in records(run.stdout):
            if warc["warc-type"] in ("response", "revisit"):
                response = parse(warc["warc-target-uri"], block)
                label = warc["warc-payload-digest"]
                if warc["warc-type"] == "response":
                    contents[label] = (response.body_bytes, response.sha256)
                response.body_bytes, response.sha256 = contents[label]
                response.protocol = warc["warc-protocol"]
                by_id[warc["warc-record-id"]] = response
                found.append(response)
            elif warc["warc-type"] == "metadata":
                if "warc-concurrent-to" in warc:  # or it is of a URL without a response
                    by_id[warc["warc-concurrent-to"]].metadata = fields_of(block)
    return found


def records(data: bytes):
    """(head, block) of each record (WARC 1.1 section 4)."""
    at = 0
    while at < len(data):
        end = data.index(b"\r\n\r\n", at)
        warc = fields_of(data[at:end].partition(b"\r\n")[2])
        start = end + 4
        at = start + int(warc["content-length"])
        yield warc, data[start:at]
        assert data[at : at + 4] == b"\r\n\r\n", "a record that does not end"
        at += 4


def parse(url: str, block: bytes) -> Stored:
    """A response as it stands in its record."""
    head, _, body = block.partition(b"\r\n\r\n")
    status, _, rest = head.partition(b"\r\n")
    fields = fields_of(rest)
    body = content(body, fields.get("content-encoding", "identity"))
    return Stored(url, int(status.split(b" ")[1]), fields, len(body), hashlib.sha256(body).hexdigest())


def content(body: bytes, coding: str) -> bytes:
    """A body without its content coding (RFC 9110 section 8.4)."""
    if coding == "identity" or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        return gzip.decompress(body)
    if coding == "deflate":
        return zlib.decompress(body, zlib.MAX_WBITS if body[0] & 15 == 8 else -zlib.MAX_WBITS)
    tool = {"br": "brotli", "zstd": "zstd"}[coding]
    return subprocess.run([tool, "-dc"], input=body, check=True, capture_output=True, timeout=60).stdout


def fields_of(lines: bytes) -> dict:
    """Named fields, one a line."""
    pairs = (line.partition(":") for line in lines.decode("latin-1").split("\r\n") if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
