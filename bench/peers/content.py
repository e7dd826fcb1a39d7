"""The web of the comparison: HTML documentation of Debian packages, one name a package, over plain http.

    content.py CACHE_DIR WEB_DIR        unpacks what is missing and builds WEB_DIR; does nothing when it stands

Decides: the sites of the real-server tests that come from packages, and more large ones, each reached from `/`. Only
documents of HTML types are served, and all else is 404, so that no tool is charged for fetching images, archives and
PDFs that another skips. Each file has its gzip form next to it for nginx's `gzip_static`, so that the server's CPU is
not what is measured.

Invariants: bytes are those of the package, except a generated `index.html` where a site's root has none. `web.json` is
written last and names the content by a hash of all names and bytes: what was computed of it is known by that hash.
Limits: package names are those of Debian 12. Leaves to others: servers (web.py), measuring (measure.py).
"""

import gzip
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import sites
from sites import DOC, HTTP, Site

SITES = [Site(site.name, site.package, site.root, HTTP) for site in sites.SITES if site.package] + [
    Site("python.test", "python3.11-doc", DOC + "python3.11/html", HTTP),
    Site("boost.test", "libboost1.81-doc", DOC + "libboost1.81-doc", HTTP),
    Site("libstdcxx.test", "libstdc++-12-doc", DOC + "gcc-12-base/libstdc++", HTTP),
    Site("kernel.test", "linux-doc-6.1", DOC + "linux-doc-6.1/html", HTTP),
    Site("erlang.test", "erlang-doc", DOC + "erlang-doc", HTTP),
    Site("octave.test", "octave-doc", DOC + "octave/octave.html", HTTP),
    Site("liboctave.test", "octave-doc", DOC + "octave/liboctave.html", HTTP),
    Site("wx.test", "wx3.2-doc", DOC + "wx3.2-doc/html", HTTP),
    Site("qt.test", "qtbase5-doc-html", DOC + "qtbase5-doc-html/html", HTTP),
    Site("gtk.test", "libgtk-3-doc", "usr/share/gtk-doc/html", HTTP),
    Site("glib.test", "libglib2.0-doc", "usr/share/gtk-doc/html", HTTP),
]
HTML = (".html", ".htm", ".xhtml")


def main(cache: Path, web: Path) -> None:
    """Builds the web, unless the one that stands was built from these sites by this file."""
    recipe = hashlib.sha256(repr(SITES).encode() + Path(__file__).read_bytes()).hexdigest()
    stamp = web / "web.json"
    if stamp.exists() and json.loads(stamp.read_text())["recipe"] == recipe:
        return
    cache.mkdir(parents=True, exist_ok=True)
    sites.unpack(cache, SITES)
    shutil.rmtree(web, ignore_errors=True)
    content, count, size = hashlib.sha256(), 0, 0
    for site in SITES:
        for path, body in documents(cache / site.package / site.root):
            content.update(f"{site.name}/{path} {len(body)}\n".encode() + body)
            count, size = count + 1, size + len(body)
            file = web / site.name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            file.with_name(file.name + ".gz").write_bytes(gzip.compress(body, mtime=0))
    facts = {"recipe": recipe, "content": content.hexdigest(), "files": count, "bytes": size}
    stamp.write_text(json.dumps(facts, indent=1))
    print(f"the web: {count} HTML files, {size / 1e6:.0f} MB, {len(SITES)} names")


def documents(root: Path):
    """(path, bytes) of each HTML document, in order of paths, and of an index where the root has none."""
    if not root.is_dir():
        raise SystemExit(f"no folder {root}: has the package changed?")
    found, seen = [], set()
    for folder, folders, files in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link in a circle
            folders.clear()
            continue
        seen.add(real)
        inside = os.path.relpath(folder, root)
        found += [os.path.normpath(os.path.join(inside, file)) for file in files if file.lower().endswith(HTML)]
    found = sorted(path for path in found if (root / path).is_file())
    if "index.html" not in found:
        yield "index.html", index(found)
    for path in found:
        yield path, (root / path).read_bytes()


def index(paths: list) -> bytes:
    """Links to the highest folders that have documents: to their index, or to all that lies in them."""
    folders: dict = {}
    for path in paths:
        folders.setdefault(os.path.dirname(path), []).append(path)
    above = [folder for folder in folders if not any(inside(folder, other) for other in folders if other != folder)]
    starts = []
    for folder in sorted(above):
        own = [path for path in folders[folder] if os.path.basename(path).startswith("index.")]
        starts += own or folders[folder]
    return sites.page("Documentation", [(path, path) for path in starts]).encode()


def inside(folder: str, other: str) -> bool:
    """Whether `folder` lies below `other`."""
    return other == "" or folder.startswith(other + "/")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
