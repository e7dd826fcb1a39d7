"""The server that all sites stand behind, and its log, by which crawlers are judged.

Decides: what counts. A page fetch is any GET except robots.txt, images, styles and scripts; redirects and errors are
page fetches. A fetch has a content item if its status is 200 and the site names the item that the URL shows. Several
URLs of one item count once. What a crawler reports about itself is not used.

Invariants: every crawler gets the same bytes for the same URL, except where a site counts sessions. With another order,
the links of each page change places at random, and the same seed gives the same order.
Limits: GET over HTTP/1.1; no compression, no conditional requests.
"""

import ast
import hashlib
import mimetypes
import random
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from words import Words

ANCHOR = re.compile(rb"<a\b[^>]*>.*?</a\s*>", re.DOTALL | re.IGNORECASE)
OTHER_TYPES = ("image/", "font/", "text/css", "text/javascript", "application/javascript")


@dataclass
class Answer:
    """A response."""

    body: bytes = b""
    type: str = "text/html; charset=utf-8"
    status: int = 200
    fields: dict = field(default_factory=dict)


class Site:
    """A site: what it serves, and what of it is content."""

    language = "en"

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.origin = name, folder, f"http://{name}.test"
        self.words = Words(name, self.language)
        self.content: frozenset = frozenset()
        self.slow_seconds = 0.0  # time that a crawler waited for a program, and others will not

    def prepare(self) -> None:
        """Makes what is needed; sets `content`."""

    def begin(self) -> None:
        """Forgets what was kept of the last crawler."""

    def end(self) -> None:
        """Ends what `answer` started."""

    def answer(self, target: str) -> Answer:
        """The response to a path with its query."""
        raise NotImplementedError

    def item(self, target: str):
        """The content that a URL shows, or None."""
        raise NotImplementedError


class Synthetic(Site):
    """A site that is a Python program: `page` answers by path and query."""

    def page(self, path: list, query: dict):
        """HTML, an `Answer`, or None for 404. The segments of the path are decoded."""
        raise NotImplementedError

    def answer(self, target: str) -> Answer:
        parts = urlsplit(target)
        found = self.page([unquote(part) for part in parts.path.split("/")[1:]], dict(parse_qsl(parts.query)))
        if found is None:
            return Answer(self.html("Not found", "<p>There is no such page.</p>").encode(), status=404)
        return found if isinstance(found, Answer) else Answer(found.encode())

    def menu(self) -> str:
        """Links that stand on every page."""
        return links([("/", "Home")])

    def html(self, title: str, main: str, head: str = "") -> str:
        """A page in the frame that all pages of the site share."""
        footer = self.words.text("footer", 70)
        return (
            f'<!DOCTYPE html>\n<html lang="{self.language}">\n<head><meta charset="utf-8"><title>{title}</title>\n'
            f'<link rel="stylesheet" href="/style.css">{head}</head>\n<body>\n'
            f"<header><h2>{self.words.title('site')}</h2><nav>{self.menu()}</nav></header>\n"
            f"<main><h1>{title}</h1>\n{main}\n</main>\n<footer><p>{footer}</p></footer>\n</body>\n</html>\n"
        )

    def atom(self, title: str, entries: list) -> Answer:
        """A feed of (path, title, HTML)."""
        items = "".join(
            f'<entry><title>{name}</title><link href="{self.origin}{path}"/><id>{self.origin}{path}</id>'
            f'<content type="html">{text.replace("<", "&lt;")}</content></entry>\n'
            for path, name, text in entries
        )
        xml = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{title}</title>\n{items}</feed>\n'
        return Answer(b'<?xml version="1.0" encoding="utf-8"?>\n' + xml.encode(), "application/atom+xml; charset=utf-8")


def recipe(*files) -> str:
    """Names what programs do: comments and layout change nothing."""
    trees = [ast.parse(Path(file).read_text()) for file in files]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body.pop(0)
    return hashlib.sha256("".join(map(ast.dump, trees)).encode()).hexdigest()[:16]


def redirect(path: str) -> Answer:
    """To another page of the site."""
    return Answer(status=302, fields={"Location": path})


def link(path: str, text: str, rel: str = "") -> str:
    """An anchor; `&` of the path is escaped here."""
    rel = f' rel="{rel}"' if rel else ""
    return f'<a href="{quote(path, safe="/?=&,:;%+@!()[]").replace("&", "&amp;")}"{rel}>{text}</a>'


def links(pairs, joint: str = " | ") -> str:
    """Anchors of (path, text)."""
    return joint.join(link(path, text) for path, text in pairs)


def pages(count: int, current: int, path) -> str:
    """Links to list pages as software shows them: the neighbours, the first and the last; `path` makes one's URL."""
    shown = sorted({1, count, *range(max(1, current - 2), min(count, current + 2) + 1)} - {current})
    near = [(path(current - 1), "« Previous")] * (current > 1) + [(path(current + 1), "Next »")] * (current < count)
    return "<p>" + links([(path(number), str(number)) for number in shown] + near, " ") + "</p>"


class Front:
    """Serves one site after the other on port 80; a context manager."""

    def __init__(self, order: int | None) -> None:
        self.order, self.site, self.log, self.lock = order, None, [], threading.Lock()
        Handler.front = self
        self.server = Server(("", 80), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()

    def begin(self, site: Site) -> list:
        """Serves `site` from now on; returns its log, a list of (item or None, status, target, seconds) that grows."""
        site.begin()
        with self.lock:
            self.site, self.log = site, []
        return self.log

    def other(self, _host: str, _target: str) -> Answer:
        """The response of hosts that are not judged."""
        return Answer(status=421)

    def respond(self, host: str, target: str) -> Answer:
        """Answers and writes the log."""
        with self.lock:
            site, log = self.site, self.log
        if site is None or target == "/robots.txt":
            return Answer(status=404)
        if host != f"{site.name}.test":
            return self.other(host, target)
        kind = mimetypes.guess_type(urlsplit(target).path)[0] or ""
        answer = Answer(status=404) if kind.startswith(OTHER_TYPES) and "?" not in target else site.answer(target)
        if not answer.type.startswith(OTHER_TYPES) and not kind.startswith(OTHER_TYPES):
            item = site.item(target) if answer.status == 200 else None
            with self.lock:
                log.append((item if item in site.content else None, answer.status, target, time.monotonic()))
        if self.order is not None and "html" in answer.type:
            answer = Answer(reordered(answer.body, f"{self.order} {target}"), answer.type, answer.status, answer.fields)
        return answer


def reordered(body: bytes, seed: str) -> bytes:
    """The page with its links at each other's places."""
    anchors = ANCHOR.findall(body)
    random.Random(seed).shuffle(anchors)
    others = iter(anchors)
    return ANCHOR.sub(lambda _: next(others), body)


class Server(ThreadingHTTPServer):
    """A thread a connection; crawlers that are killed leave connections behind."""

    daemon_threads, request_queue_size = True, 64

    def handle_error(self, request, client_address) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """HTTP alone."""

    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    def do_GET(self) -> None:
        """Any request."""
        answer = self.front.respond(self.headers.get("Host", ""), self.path)
        self.send_response_only(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)
        self.wfile.flush()

    def log_message(self, *_) -> None:
        """The log is the front's."""
