"""The web of the real-server tests: Debian's documentation packages as virtual hosts, and pages that link them.

Decides: which packages become which sites, over http, https or both, and how each server departs from nginx's
defaults. Real documentation was chosen because it was not written for a crawler: twenty generators, six charsets,
directories without index, dangling links, thousands of links to names that do not exist here.

Invariants: a package's files are served from where they were unpacked, unchanged; what is generated lies apart.
Every site is reachable from the seed, through `around.html` pages that link the sites in a ring.
Limits: about 35 MB are downloaded once, into a cache, by apt's own client; nothing is installed.
Leaves to others: ports, certificates and configuration files (servers.py); hand-made difficult pages (corners.py).
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

HTTP, HTTPS = ("http",), ("https",)
BOTH = HTTP + HTTPS


@dataclass
class Site:
    """One virtual host. `root` is a folder of the package; `nginx` are directives of its server block."""

    name: str
    package: str
    root: str
    schemes: tuple
    nginx: list = field(default_factory=list)
    robots: str | None = None  # None: nginx answers 404
    excluded: tuple = ()  # paths that robots.txt forbids, and that are linked and exist


GZIP = ["gzip on", "gzip_min_length 200", "gzip_types text/plain text/css application/javascript"]
DOC = "usr/share/doc/"

SITES = [
    Site("hub.test", "", "", BOTH, robots="User-agent: *\nAllow: /\n"),
    Site("corners.test", "", "", HTTP, robots="User-agent: *\nDisallow: /closed/\n", excluded=("/closed/",)),
    Site("www.corners.test", "", "", HTTP),
    Site("postgresql.test", "postgresql-doc-15", DOC + "postgresql-doc-15/html", HTTP),
    Site("apache.test", "apache2-doc", DOC + "apache2-doc/manual", HTTPS, GZIP),
    Site(
        "www.sqlite.test",
        "sqlite3-doc",
        DOC + "sqlite3",
        HTTP,
        # The crawler's own group counts and the other does not (RFC 9309 section 2.2.1).
        robots="User-agent: *\nDisallow: /\n\nUser-agent: ringcrawl\nDisallow: /releaselog/\n",
        excluded=("/releaselog/",),
    ),
    Site("git.test", "git-doc", DOC + "git-doc", HTTPS, ["etag off"]),
    Site("gnuplot.test", "gnuplot-doc", DOC + "gnuplot/htmldocs", HTTP, GZIP),
    Site("docbook.test", "docbook-xsl-doc-html", DOC + "docbook-xsl-doc-html/doc", HTTP, ["keepalive_requests 100"]),
    Site("django.test", "python-django-doc", DOC + "python-django-doc/html", HTTPS),
    Site("jinja.test", "python-jinja2-doc", DOC + "python-jinja2-doc/html", BOTH, ["keepalive_requests 7"]),
    Site(
        "policy.debian.test",
        "debian-policy",
        DOC + "debian-policy",
        HTTPS,
        ["autoindex on"],
        # Allow first: the same verdict by longest match (RFC 9309) and by first match (urllib.robotparser).
        robots="User-agent: *\nAllow: /policy.html/ch-files.html\nDisallow: /policy.html/ch-\n",
        excluded=("/policy.html/ch-scope.html", "/policy.html/ch-archive.html"),
    ),
    Site("www.debian.test", "debian-reference-en", "usr/share/debian-reference", HTTP, ["autoindex on"]),
    Site("developers.debian.test", "developers-reference", "usr/share/developers-reference", HTTPS, GZIP),
    Site("maint.debian.test", "maint-guide", DOC + "maint-guide/html", HTTP, ["autoindex on"]),
    Site("en.aptitude.test", "aptitude-doc-en", DOC + "aptitude/html/en", HTTP, ["keepalive_requests 7"]),
    Site("ja.aptitude.test", "aptitude-doc-ja", DOC + "aptitude/html/ja", HTTPS),
    Site("ru.aptitude.test", "aptitude-doc-ru", DOC + "aptitude/html/ru", HTTP, GZIP),
    Site("apt.test", "apt-doc", DOC + "apt-doc", HTTP, ["autoindex on", "charset utf-8"]),
    Site("postfix.test", "postfix-doc", DOC + "postfix/html", HTTPS, ["keepalive_timeout 0"]),
    Site("exim.test", "exim4-doc-html", DOC + "exim4-doc-html/spec_html", HTTP),
    Site("r.test", "r-doc-html", "usr/share/R/doc/manual", BOTH, ["autoindex on"]),
    Site("www.libxml2.test", "libxml2-doc", DOC + "libxml2/html", HTTPS, ["autoindex on", *GZIP]),
    Site("cairo.test", "libcairo2-doc", "usr/share/gtk-doc/html/cairo", HTTP),
    Site("pango.test", "libpango1.0-doc", DOC + "libpango1.0-doc/reference", HTTPS, ["autoindex on"]),
]


def unpack(cache: Path, wanted: list = SITES) -> None:
    """Downloads and unpacks what is missing. A package is whole when its folder has its final name."""
    missing = sorted({s.package for s in wanted if s.package and not (cache / s.package).is_dir()})
    if not missing:
        return
    debs = cache / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    print(f"downloading {len(missing)} documentation packages", flush=True)
    download(debs, missing)
    for package in missing:
        (deb,) = debs.glob(package + "_*.deb")
        partial = cache / (package + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", deb, partial], check=True, timeout=120)
        partial.rename(cache / package)
        deb.unlink()


def download(debs: Path, packages: list) -> None:
    """One file a package in `debs`, which holds nothing else afterwards."""
    command = ["apt-get", "-q", "download", *packages]
    clear(debs)
    if subprocess.run(command, cwd=debs, stdout=subprocess.DEVNULL, timeout=600).returncode != 0:
        # Lists of some days ago name versions that the servers have no more. Those that they still had have come, and
        # would lie beside the new ones.
        clear(debs)
        subprocess.run(["apt-get", "-q", "update"], stdout=subprocess.DEVNULL, timeout=300)
        subprocess.run(command, cwd=debs, check=True, stdout=subprocess.DEVNULL, timeout=600)


def clear(debs: Path) -> None:
    """Takes all packages away."""
    for deb in debs.glob("*.deb"):
        deb.unlink()


def generate(folder: Path, cache: Path, url_of) -> dict:
    """Writes each site's own pages under `folder`; returns {site name: {path: file}}.

    `url_of(site, scheme, path)` is the absolute URL of a page. The hub links three sites alone: the rest is found
    from site to site, so that links cross shards at every step.
    """
    pages: dict = {}
    docs = [(site, scheme) for site in SITES if site.package or site.name == "corners.test" for scheme in site.schemes]
    for index, (site, scheme) in enumerate(docs):
        around = [("its own start page", "./")]
        for step in (1, 3, 7):
            other, other_scheme = docs[(index + step) % len(docs)]
            around.append((other.name, url_of(other, other_scheme, "/around.html")))
        around += [(f"{site.name}{path}", path) for path in site.excluded]
        if site.name.startswith("policy"):
            around.append(("the one chapter that is allowed", "/policy.html/ch-files.html"))
        # A site of two schemes has two pages, told apart by name: each may link with its own scheme.
        path = "/around.html" if scheme == site.schemes[0] else f"/around-{scheme}.html"
        add(pages, folder, site, path, page(f"Around {site.name}", around))
        if len(site.schemes) > 1 and scheme == site.schemes[0]:
            add_link = [(f"{site.name} over {s}", url_of(site, s, "/")) for s in site.schemes]
            add(pages, folder, site, "/schemes.html", page(f"Schemes of {site.name}", add_link))
    hub = next(site for site in SITES if site.name == "hub.test")
    first = [docs[0], docs[len(docs) // 3], docs[2 * len(docs) // 3]]
    starts = [(site.name, url_of(site, scheme, "/around.html")) for site, scheme in first]
    starts += [(f"{s.name}: schemes", url_of(s, s.schemes[0], "/schemes.html")) for s, _ in docs if len(s.schemes) > 1]
    starts += [("this page by its other name", "/index.html"), ("over TLS", url_of(hub, "https", "/"))]
    starts += [("robots.txt answers 503", url_of_name(url_of, "closed.test", "http"))]
    starts += [("certificate of nobody", url_of_name(url_of, "untrusted.test", "https"))]
    add(pages, folder, hub, "/index.html", page("The documentation of many programs", starts))
    for site in SITES:
        if site.robots is not None:
            add(pages, folder, site, "/robots.txt", site.robots)
        if site.package and not os.path.exists(cache / site.package / site.root):
            raise SystemExit(f"{site.package} has no folder {site.root}: has the package changed?")
    return pages


def url_of_name(url_of, name: str, scheme: str) -> str:
    """A link to a host that is no documentation site."""
    return url_of(Site(name, "", "", (scheme,)), scheme, "/")


def add(pages: dict, folder: Path, site: Site, path: str, text: str | bytes) -> None:
    """Writes one generated file and notes where it is served."""
    file = folder / site.name / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    pages.setdefault(site.name, {})[path] = str(file)


def page(title: str, links: list) -> str:
    """An HTML page of links: [(text, href)]."""
    items = "\n".join(f'<li><a href="{escape(href)}">{escape(text)}</a>' for text, href in links)
    return f"<!doctype html>\n<meta charset=utf-8>\n<title>{escape(title)}</title>\n<ul>\n{items}\n</ul>\n"
