"""Lists the records of segments as warcio reads them: its iterator, its decoding of payloads.

    read_warcio.py SEGMENT… >LISTING     columns as in frames.py

Decides nothing: what warcio raises ends it with its message.
"""

import hashlib
import sys

from warcio.archiveiterator import ArchiveIterator

for path in sys.argv[1:]:
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream):
            head, http = record.rec_headers, record.http_headers
            status = http.get_statuscode() if record.rec_type in ("response", "revisit") else ""
            payload = hashlib.sha256()
            source = record.content_stream()
            while data := source.read(1 << 20):
                payload.update(data)
            url = head.get_header("WARC-Target-URI", "")
            print(record.rec_type, head.get_header("WARC-Record-ID"), url, status, payload.hexdigest(), sep="\t")
