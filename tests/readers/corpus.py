"""The web that the readers' test crawls: Debian's documentation packages behind a real nginx, each host in a coding.

    corpus.py RUN_DIR CACHE_DIR PAGES

Decides: which packages are served, so that a crawl finds at least PAGES pages of HTML; in which content coding each
host answers (gzip, brotli where nginx has it, none); and kinds of answers that readers of archives get wrong: a gzip
download that is in no content coding, pages in the codings `x-gzip` and `zstd`, an empty body, and URLs that two
programs easily write in two ways.

Writes: `nginx.conf`, `unbound.conf`, `ca.pem`, `crawl.toml`, `seeds`, and `run.json`, the facts that the checks go by.
Invariants: a package's files are served unchanged, so that a payload can be compared with the file it came from. The
hub links each site's start page, and each file of which pages are made (styles, scripts, images): a crawl follows links
between pages and does not fetch their parts. Everything else is found by the links of the documentation itself.
Limits: about 130 MB are downloaded once, into the cache that tests/real uses, too; nothing is installed. The names of the
packages are those of Debian 12.
"""

import gzip
import io
import json
import os
import re
import sys
import tarfile
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real"))
import servers
import sites
import zstandard

PARTS = {".css", ".js", ".svg", ".png", ".gif", ".jpg", ".ico", ".woff", ".woff2"}
BROTLI_MODULE = "/usr/lib/nginx/modules/ngx_http_brotli_filter_module.so"
TYPES = "text/plain text/css application/javascript application/json image/svg+xml"
GZIP = ["gzip on", "gzip_comp_level 1", "gzip_min_length 200", f"gzip_types {TYPES}"]
BROTLI = ["brotli on", "brotli_comp_level 1", "brotli_min_length 200", f"brotli_types {TYPES}"]
PLAIN: list = []
HUB = "hub.test"
# Pages of the hub that lie there compressed, each coding in a folder of its name.
CODED = {"x-gzip": lambda data: gzip.compress(data, mtime=0), "zstd": zstandard.ZstdCompressor().compress}

# Files of the hub whose names two programs easily write in two ways, and links to them as they stand in a page.
ODD_FILES = ["UPPER.html", "a space.html", "~tilde.html", "umläut.html", "plus+sign.html", "comma,semi;colon.html"]
ODD_FILES += ["per%cent.html", "a&b=c.html", "[brackets].html", "quote'.html", "double.html", "queried.html"]
ODD_LINKS = ["/odd/UPPER.html", "/odd/a%20space.html", "/odd/%7Etilde.html", "/odd/uml%c3%a4ut.html"]
ODD_LINKS += ["/odd/plus+sign.html", "/odd/comma,semi;colon.html", "/odd/per%25cent.html", "/odd/a&b=c.html"]
ODD_LINKS += ["/odd/[brackets].html", "/odd/quote'.html", "/odd//double.html", "/odd/%E4.html", "/odd/none|here.html", "/odd/queried.html?"]
ODD_LINKS += ["/odd/queried.html?" + query for query in (
    "b=2&a=1", "a=1&a=0&B=X", "PHPSESSID=0123456789abcdef0123456789abcdef&x=1", "q=a+b%20c&u=http://example.org/x?y=z",
    "q=%E4", "x=a%26b", "utm_source=x", "a", "=", "a=1&", "x=Ümlaut", "CAPS=ÄÖ%c3%a4",
)]  # fmt: skip
ODD_LINKS += ["/odd/queried.html;jsessionid=0123456789ABCDEF0123456789ABCDEF?x=1"]
IDN = "xn--bcher-kva.test"


@dataclass
class Docs:
    """One package as one host. `pages`: how many pages of HTML a crawl found there when it was counted."""

    name: str
    package: str
    root: str
    pages: int
    scheme: str
    coding: list
    start: str = "/"
    shown: str = ""  # a page with a style sheet and images, all of which are in the package


DOC = "usr/share/doc/"

# As many are taken from the top as PAGES needs.
DOCS = [
    Docs("python.test", "python3.11-doc", DOC + "python3.11/html", 527, "http", GZIP, shown="/library/turtle.html"),
    Docs("www.gtk.test", "libgtk-3-doc", "usr/share/gtk-doc/html/gtk3", 345, "http", PLAIN, shown="/GtkButton.html"),
    Docs("postgresql.test", "postgresql-doc-15", DOC + "postgresql-doc-15/html", 1170, "https", BROTLI),
    Docs("qt.test", "qtbase5-doc-html", "usr/share/qt5/doc", 2243, "http", BROTLI, "/qtwidgets/qtwidgets-index.html"),
    Docs("stdcxx.test", "libstdc++-12-doc", DOC + "gcc-12-base/libstdc++", 3753, "https", GZIP),
    Docs("wx.test", "wx3.2-doc", DOC + "wx3.2-doc/html", 2634, "http", PLAIN),
    Docs("cppreference.test", "cppreference-doc-en-html", "usr/share/cppreference/doc/html/en", 4389, "http", GZIP),
    Docs("rust.test", "rust-doc", DOC + "rust-doc/html", 21635, "http", GZIP),
    Docs("openjdk.test", "openjdk-17-doc", DOC + "openjdk-17-jre-headless/api", 10137, "https", BROTLI),
    Docs("boost.test", "libboost1.74-doc", DOC + "libboost1.74-doc/doc/html", 3804, "http", PLAIN),
    Docs("pandas.test", "python-pandas-doc", DOC + "python-pandas-doc/html", 2608, "http", GZIP),
]


def main(run: Path, cache: Path, pages: int) -> None:
    """Lays a run out."""
    chosen = choose(pages)
    sites.unpack(cache, chosen)
    with_brotli = os.path.exists(BROTLI_MODULE)
    ports = {scheme: servers.free_port() for scheme in ("http", "https", "dns")}
    names = {name: servers.addresses_of(i) for i, name in enumerate([HUB, IDN] + [docs.name for docs in chosen])}
    origin, other = (f"http://{name}:{ports['http']}" for name in (HUB, IDN))

    def url_of(docs: Docs, path: str) -> str:
        return f"{docs.scheme}://{docs.name}:{ports[docs.scheme]}{path}"

    hub = run / "hub"
    odd = [other + "/odd/UPPER.html", f"http://{servers.ADDRESSES[0]}:{ports['http']}/odd/address"] + ODD_LINKS
    download = hub_files(hub, cache, chosen, url_of, odd)
    servers.certificates(run, sorted(names))
    (run / "nginx.conf").write_text(nginx(run, cache, ports, chosen, with_brotli))
    (run / "unbound.conf").write_text(servers.unbound(run, ports, names))
    (run / "crawl.toml").write_text(servers.CRAWL % {"dns": ports["dns"], "ca": run / "ca.pem"})
    roots = {url_of(docs, ""): str(cache / docs.package / docs.root) for docs in chosen}
    facts = {
        "pages": pages,
        "ports": ports,
        "names": names,
        "odd": len(odd),
        "precoded": list(CODED),
        "codings": ["gzip", *CODED] + (["br"] if with_brotli and any(docs.coding is BROTLI for docs in chosen) else []),
        "hub": origin + "/",
        "roots": roots | {origin: str(hub), other: str(hub)},
        "download": {"url": origin + "/download/documentation.tar.gz", "file": str(download)},
        "coded": coded_pages(cache, chosen, origin, url_of),
        "shown": [url_of(docs, docs.shown) for docs in chosen if docs.shown],
    }
    (run / "seeds").write_text(facts["hub"] + "\n")
    (run / "run.json").write_text(json.dumps(facts, indent=1))
    coded = ", ".join(f"{docs.name} {docs.coding[0].split()[0] if docs.coding else 'plain'}" for docs in chosen)
    print(f"corpus: {len(chosen)} packages: {coded}", flush=True)


def choose(pages: int) -> list:
    """The first packages that have so many pages together, and two in a hundred more: a new version may have fewer."""
    chosen: list = []
    for docs in DOCS:
        if sum(taken.pages for taken in chosen) < pages * 1.02:
            chosen.append(docs)
    if sum(taken.pages for taken in chosen) < pages:
        raise SystemExit(f"there are {sum(docs.pages for docs in DOCS)} pages at most")
    return chosen


def hub_files(hub: Path, cache: Path, chosen: list, url_of, odd: list) -> Path:
    """Writes the hub's own files; returns the download."""
    first = chosen[0]
    source = cache / first.package / first.root
    some = sorted(source.glob("*.html"))[:8]
    for folder in ("download", "odd", *CODED):
        (hub / folder).mkdir(parents=True)
    for coding, compress in CODED.items():
        for page in some:
            (hub / coding / page.name).write_bytes(compress(page.read_bytes()))
    (hub / "empty.html").write_bytes(b"")
    for name in ODD_FILES:
        (hub / "odd" / name).write_text(f"<!doctype html><title>odd</title>{name}")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for page in some:
            tar.add(page, page.name)
    download = hub / "download" / "documentation.tar.gz"
    download.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    links = [("a download", "/download/documentation.tar.gz"), ("nothing", "/empty.html")]
    links += [(f"odd: {link}", link) for link in odd]
    links += [(f"{coding}: {page.name}", f"/{coding}/{page.name}") for coding in CODED for page in some]
    for docs in chosen:
        parts = [url_of(docs, path) for path in parts_of(cache / docs.package / docs.root)]
        (hub / f"parts-{docs.name}.html").write_text(sites.page(f"Parts of {docs.name}", [(p, p) for p in parts]))
        links += [(docs.name, url_of(docs, docs.start)), (f"its {len(parts)} parts", f"/parts-{docs.name}.html")]
    (hub / "index.html").write_text(sites.page("The documentation of many programs", links))
    return download


def coded_pages(cache: Path, chosen: list, origin: str, url_of) -> dict:
    """{coding: [URL, title]} of a page in each of the less usual codings."""
    first = cache / chosen[0].package / chosen[0].root / "about.html"
    pages = {coding: (f"{origin}/{coding}/about.html", first) for coding in CODED}
    for docs in chosen:
        if docs.coding is BROTLI and docs.start == "/":
            pages["br"] = (url_of(docs, "/"), cache / docs.package / docs.root / "index.html")
    title = re.compile(r"<title>(.*?)</title>", re.DOTALL)
    found = {coding: (url, title.search(path.read_text())[1]) for coding, (url, path) in pages.items()}
    return {coding: [url, unescape(" ".join(text.split()))] for coding, (url, text) in found.items()}


def parts_of(root: Path) -> list:
    """Paths of all styles, scripts, images and fonts below a folder; a link out of the package may lead nowhere."""
    found = (path for path in root.rglob("*") if path.suffix in PARTS and path.is_file())
    return sorted("/" + quote(str(path.relative_to(root))) for path in found)


def nginx(run: Path, cache: Path, ports: dict, chosen: list, with_brotli: bool) -> str:
    """The configuration: one server block a host."""
    blocks = []
    for docs in chosen:
        coding = docs.coding if docs.coding is not BROTLI or with_brotli else GZIP
        lines = servers.listen(ports, (docs.scheme,)) + [f"server_name {docs.name}", *coding]
        lines.append(f"root {cache / docs.package / docs.root}")
        blocks.append(servers.server(lines, []))
    own = ["location /download/ { types { application/gzip gz; } }"]
    for coding in CODED:
        own.append(f"location /{coding}/ {{ default_type text/html; add_header Content-Encoding {coding}; }}")
    lines = servers.listen(ports, ("http",)) + [f"server_name {HUB} {IDN}", f"root {run / 'hub'}"]
    blocks.append(servers.server(lines, own))
    user = "user root;" if os.geteuid() == 0 else ""  # else workers could not read a folder made by mktemp
    text = servers.NGINX % {"user": user, "run": run, "default": servers.default(ports), "servers": "\n".join(blocks)}
    return (f"load_module {BROTLI_MODULE};\n" if with_brotli else "") + text


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3]))
