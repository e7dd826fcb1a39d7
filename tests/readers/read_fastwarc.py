"""Lists the records of segments as FastWARC reads them: its iterator, its decoding of payloads.

    read_fastwarc.py SEGMENT… >LISTING     columns as in frames.py

Decides: asked to decode a coding that it does not know, FastWARC 2.0 raises OSError, and its iterator is of no use
afterwards. So a payload in x-gzip is listed as it lies, as a user would have to take it.
A record whose digest FastWARC finds wrong is an error; what it raises ends it with its message.
"""

import hashlib
import sys

from fastwarc.warc import ArchiveIterator, WarcRecordType


REFUSED = {"x-gzip"}


def records(path: str):
    """All records, before their heads of HTTP are read."""
    return ArchiveIterator(path, WarcRecordType.any_type, parse_http=False, fsspec_args=False)


def listed(record) -> None:
    """A line of the listing."""
    head = record.headers
    status = record.http_headers.status_code if head.get("WARC-Type") in ("response", "revisit") else ""
    payload = hashlib.sha256(record.reader.read()).hexdigest()
    print(head.get("WARC-Type"), record.record_id, head.get("WARC-Target-URI") or "", status, payload, sep="\t")


wrong = 0
for path in sys.argv[1:]:
    refused = set()
    for record in records(path):
        if record.headers.get("WARC-Block-Digest") and not record.verify_block_digest(consume=False):
            print(f"{path}: block digest of {record.record_id}", file=sys.stderr)
            wrong += 1
        record.parse_http()
        if record.headers.get("WARC-Type") == "revisit":  # its payload, and so its digest, is that of another record
            refused.add(record.record_id)
            listed(record)
            continue
        if record.headers.get("WARC-Payload-Digest") and not record.verify_payload_digest(consume=False):
            print(f"{path}: payload digest of {record.record_id}", file=sys.stderr)
            wrong += 1
        if record.http_headers and record.http_headers.get("Content-Encoding") in REFUSED:
            refused.add(record.record_id)
            listed(record)
    for record in records(path):
        if record.record_id not in refused:
            record.parse_http(auto_decode="all")
            listed(record)
sys.exit(wrong > 0)
