"""What warcio, or for zstd frames FastWARC, reads in one file of any origin, as JSON: a record a line.

    read_foreign.py FILE

Decides: a payload is taken as it lies, and its digests are compared by the tool. What the tool raises is the last line;
what it had read until then is already printed.
"""

import base64
import hashlib
import json
import sys

from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

PIECE = 1 << 20
ZSTD = (b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18")


def told(kind, uri, payload, offset, wrong, coding) -> None:
    """A line."""
    line = {"kind": kind or "", "uri": uri or "", "offset": offset, "wrong": wrong, "coding": coding or ""}
    digest = "sha256:" + base64.b32encode(payload.digest()).decode()
    print(json.dumps(line | {"payload": digest}), flush=True)


def coding_of(record) -> str:
    """Transfer-Encoding."""
    return record.http_headers.get("Transfer-Encoding") if record.http_headers else ""


def by_warcio(stream) -> None:
    """As warcio's own index and check do it."""
    archive = ArchiveIterator(stream, check_digests=True)
    for record in archive:
        payload = hashlib.sha256()
        while data := record.raw_stream.read(PIECE):
            payload.update(data)
        problems = record.digest_checker.problems
        wrong = sorted({problem.split(" digest failed")[0] for problem in problems if " digest failed" in problem})
        head = record.rec_headers
        told(record.rec_type, head.get_header("WARC-Target-URI"), payload, archive.get_record_offset(), wrong, coding_of(record))


def by_fastwarc(path: str) -> None:
    """FastWARC knows dictionaries."""
    for record in FastIterator(path, WarcRecordType.any_type, parse_http=False, fsspec_args=False):
        head, wrong = record.headers, []
        is_revisit = head.get("WARC-Type") == "revisit"
        if not is_revisit and head.get("WARC-Block-Digest") and not record.verify_block_digest(consume=False):
            wrong.append("block")
        record.parse_http()
        if not is_revisit and head.get("WARC-Payload-Digest") and not record.verify_payload_digest(consume=False):
            wrong.append("payload")
        payload = hashlib.sha256(record.reader.read())
        told(head.get("WARC-Type"), head.get("WARC-Target-URI"), payload, record.stream_pos, wrong, coding_of(record))


try:
    with open(sys.argv[1], "rb") as stream:
        if stream.read(4) in ZSTD:
            by_fastwarc(sys.argv[1])
        else:
            stream.seek(0)
            by_warcio(stream)
except Exception as error:  # whatever it raises is what the tool says
    print(json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}))
