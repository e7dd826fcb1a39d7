"""The independent crawl: the truth about the test's web, found by none of ringcrawl's code.

    oracle.py RUN_DIR        writes RUN_DIR/oracle.jsonl, one line a URL asked for: url, status, type, bytes, sha256

Decides by others' work: HTML by Lexbor (a parser after the standard, scripting off), charset sniffing by html5lib,
URLs by Ada (the WHATWG standard), robots.txt by urllib.robotparser, HTTP and TLS by Python's standard library. lxml
is asked too, and pages on which its links differ are counted, but Lexbor's are followed: libxml2 loses what
comes after an early </html> (two pages of sqlite), which the standard appends to the body.

Invariants: breadth-first from the seeds, each URL once, one request at a time, identity coding, so `sha256` is of the
body as served unencoded. A URL counts without its fragment and credentials. robots.txt before anything of an origin:
4xx allows all, 5xx nothing (RFC 9309 section 2.3.1). Links are taken from 200 answers of HTML types alone.
Limits: names outside the run's own are never asked; REQUESTS_MAX ends a runaway; bodies are held one at a time.
"""

import hashlib
import html5lib._inputstream
import http.client
import json
import re
import socket
import ssl
import sys
import time
import urllib.robotparser
from collections import Counter, deque
from pathlib import Path

import ada_url
import lxml.etree
import lxml.html
import webencodings
from selectolax.lexbor import LexborHTMLParser

REQUESTS_MAX = 200_000
URL_BYTES_MAX = 2048  # scope.url_bytes_max of the crawl's configuration
RELS = {"alternate", "next", "prev", "canonical", "contents", "first", "help", "index", "last", "previous", "search",
    "start", "up"}
LINKS = "a[href], area[href], frame[src], iframe[src], link[href][rel], meta[http-equiv][content]"


def main(run: Path) -> None:
    """Crawls and writes the truth."""
    facts = json.loads((run / "run.json").read_text())
    web = Web(facts)
    started = time.monotonic()
    counts: Counter = Counter()
    seen, queue = set(), deque()
    rules: dict = {}

    def offer(found) -> None:
        for url in found:
            if url not in seen and len(url) <= URL_BYTES_MAX:
                seen.add(url)
                queue.append(url)

    offer(filter(None, (canonical(seed, None) for seed in facts["seeds"])))
    with open(run / "oracle.jsonl", "w") as out:
        while queue and web.requests < REQUESTS_MAX:
            url = queue.popleft()
            parts = ada_url.URL(url)
            if parts.hostname not in facts["names"]:
                counts["URLs on other names"] += 1
                continue
            if parts.origin not in rules:
                rules[parts.origin] = web.robots(parts.origin)
            if not rules[parts.origin].can_fetch(facts["agent"], url):
                counts["URLs forbidden"] += 1
                continue
            answer = web.get(url)
            if answer is None:
                counts["URLs unreachable"] += 1
                continue
            status, headers, body = answer
            content_type = headers.get("Content-Type", "")
            row = {"url": url, "status": status, "type": content_type, "bytes": len(body)}
            row["sha256"] = hashlib.sha256(body).hexdigest()
            out.write(json.dumps(row) + "\n")
            counts[f"answers {status}"] += 1
            if 300 <= status < 400 and "Location" in headers:
                # http.client reads fields as Latin-1; browsers take Location as UTF-8.
                target = headers["Location"].encode("latin-1").decode("utf-8", "replace")
                offer(filter(None, [canonical(target, url)]))
            kind = content_type.split(";")[0].strip().lower()
            if status == 200 and kind in ("text/html", "application/xhtml+xml"):
                counts["HTML pages"] += 1
                found, agrees = links(body, content_type, url)
                counts["HTML pages on whose links lxml agrees"] += agrees
                offer(found)
    if web.requests >= REQUESTS_MAX:
        raise SystemExit("the oracle does not come to an end: is there a trap among the sites?")
    seconds = time.monotonic() - started
    print(f"oracle: {web.requests} requests in {seconds:.1f} s, {len(rules)} origins")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")


class Web:
    """The run's servers, by a connection an origin."""

    def __init__(self, facts: dict) -> None:
        self.facts = facts
        self.tls = ssl.create_default_context(cafile=facts["ca"])
        self.connections: dict = {}
        self.requests = 0

    def get(self, url: str):
        """(status, headers, body), or None when no answer can be had: no address, no connection, no trust."""
        parts = ada_url.URL(url)
        for _ in range(2):  # a server may close an idle connection just when it is used again
            kept = self.connections.pop(parts.origin, None)
            connection = kept or self.connect(parts)
            try:
                self.requests += 1
                # Not pathname + search: these would lose the mark of an empty query.
                connection.putrequest("GET", url.removeprefix(parts.origin), skip_accept_encoding=True)
                connection.putheader("User-Agent", self.facts["oracle_agent"])
                connection.endheaders()
                response = connection.getresponse()
                body = response.read()
            except ssl.SSLCertVerificationError:
                return None
            except (OSError, http.client.BadStatusLine):
                if kept is None:
                    raise
                continue
            if response.will_close:
                connection.close()
            else:
                self.connections[parts.origin] = connection
            return response.status, response.headers, body
        raise SystemExit(f"no answer: {url}")

    def connect(self, parts) -> http.client.HTTPConnection:
        """A connection to the first address of the name, without asking any DNS."""
        address = self.facts["names"][parts.hostname][0]
        tls = parts.protocol == "https:"
        port = int(parts.port or (443 if tls else 80))
        connection = http.client.HTTPConnection(parts.hostname, port, timeout=30)
        if tls:
            connection.default_port = 443  # the Host field names any other

        def connect() -> None:
            plain = socket.create_connection((address, port), 30)
            connection.sock = self.tls.wrap_socket(plain, server_hostname=parts.hostname) if tls else plain

        connection.connect = connect
        return connection

    def robots(self, origin: str) -> urllib.robotparser.RobotFileParser:
        """The rules of an origin."""
        rules = urllib.robotparser.RobotFileParser()
        answer = self.get(origin + "/robots.txt")
        if answer is None or answer[0] >= 500:
            rules.disallow_all = True
        elif answer[0] >= 400:
            rules.allow_all = True
        elif answer[0] == 200:
            rules.parse(answer[2].decode("utf-8", "replace").splitlines())
        else:
            raise SystemExit(f"{origin}/robots.txt: status {answer[0]} is no part of this test")
        return rules


def canonical(reference: str, base: str | None) -> str | None:
    """The absolute http or https URL as it is asked for; None when it is no such URL."""
    try:
        url = ada_url.URL(reference, base) if base else ada_url.URL(reference)
    except ValueError:
        return None
    if url.protocol not in ("http:", "https:"):
        return None
    url.hash, url.username, url.password = "", "", ""
    return url.href


def links(body: bytes, content_type: str, url: str) -> tuple:
    """(the set of canonical URLs that the page links, whether lxml finds the same a and area elements)."""
    charset = re.search(r"charset\s*=\s*[\"']?([^\s;\"']+)", content_type, re.I)
    stream = html5lib._inputstream.HTMLBinaryInputStream(
        body, transport_encoding=charset and charset[1], useChardet=False
    )
    encoding = webencodings.Encoding(stream.charEncoding[0].name, stream.charEncoding[0].codec_info)
    text, _ = webencodings.decode(body, encoding)
    tree = LexborHTMLParser(text)
    base = url
    first = tree.css_first("base[href]")
    if first is not None:
        base = resolve(first.attributes["href"], url, encoding) or url
    found = set()
    anchors = []
    for element in tree.css(LINKS):
        attributes = {name: value or "" for name, value in element.attributes.items()}
        if element.tag in ("a", "area"):
            reference = attributes["href"]
            anchors.append(reference)
        elif element.tag in ("frame", "iframe"):
            reference = attributes["src"]
        elif element.tag == "link":
            reference = attributes["href"] if RELS & set(attributes["rel"].lower().split()) else None
        else:
            is_refresh = attributes["http-equiv"].lower() == "refresh"
            reference = refresh(attributes["content"]) if is_refresh else None
        if reference is not None:
            found.add(canonical(encode_query(reference, encoding), base))
    found.discard(None)
    return found, set(anchors) == lxml_anchors(text)


def lxml_anchors(text: str):
    """What lxml takes for the references of a and area; None when it takes the text for no document."""
    try:
        parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
        tree = lxml.html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except lxml.etree.LxmlError:
        return set() if not text.strip() else None
    return {element.get("href") for element in tree.iter("a", "area") if element.get("href") is not None}


def resolve(reference: str, base: str, encoding) -> str | None:
    """The document's base URL; data: and javascript: are refused (HTML standard, section 4.2.3)."""
    try:
        url = ada_url.URL(encode_query(reference, encoding), base)
    except ValueError:
        return None
    return None if url.protocol in ("data:", "javascript:") else url.href


def encode_query(reference: str, encoding) -> str:
    """`reference` with its query percent-encoded in the document's charset (URL standard, section 4.4, query state)."""
    if reference.isascii() or encoding.name in ("utf-8", "utf-16le", "utf-16be", "replacement"):
        return reference
    reference = re.sub(r"[\t\n\r]", "", reference)
    before, mark, rest = reference.partition("?")
    if "#" in before or not mark or re.match(r"\s*(?!https?:)[a-z][a-z0-9+.-]*:", before, re.I):
        return reference
    query, hash_mark, fragment = rest.partition("#")
    coded = re.sub(r"[^\x00-\x7f]+", lambda run: encode_run(run[0], encoding), query)
    return before + mark + coded + hash_mark + fragment


def encode_run(text: str, encoding) -> str:
    """Non-ASCII characters of a query; one that the charset lacks becomes a numeric reference, percent-encoded."""
    try:
        coded = encoding.codec_info.encode(text, "strict")[0]
    except UnicodeEncodeError as error:
        lacking = "".join(f"%26%23{ord(character)}%3B" for character in text[error.start : error.end])
        before, after = text[: error.start], text[error.end :]
        return (encode_run(before, encoding) if before else "") + lacking + (encode_run(after, encoding) if after else "")
    return "".join(chr(byte) if 0x21 <= byte < 0x7F and byte != 0x23 else f"%{byte:02X}" for byte in coded)


REFRESH = re.compile(
    r"[\t\n\f\r ]*(?:[0-9]+|(?=\.))[0-9.]*(?=[;,\t\n\f\r ])[\t\n\f\r ]*[;,]?[\t\n\f\r ]*"
    r"(?:url[\t\n\f\r ]*=[\t\n\f\r ]*)?(?:\"([^\"]*)|'([^']*)|([^\"'].*))",
    re.I | re.S,
)


def refresh(content: str) -> str | None:
    """The URL of a declarative refresh (HTML standard, section 4.2.5.3); None when it names none."""
    match = REFRESH.match(content)
    return next((group for group in match.groups() if group is not None), None) if match else None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
