"""The site that every server of tests/servers serves: its truth is known because it was made here.

Decides: what a plain web server is asked for in a day, small: a tree of pages, sizes around the limits of buffers
(0 B, one segment, a TLS record, a block, 3 MB), other types than HTML, a folder that is asked for without its slash,
a name beyond ASCII, a dead link.

Invariants: the same bytes at every call; every file is reached by links from "/"; a page of an inner node is as long
as its links make it, a leaf is of exactly the size in SIZES.
"""

import hashlib
import random
from pathlib import Path
from urllib.parse import quote

SIZES = [0, 1, 2, 100, 1459, 1460, 1461, 4096, 16383, 16384, 16385, 32767, 32768, 32769, 65536, 500_000, 3_000_000]
INNER = 40  # pages with links; each has CHILDREN of them
CHILDREN = 4
DEAD = "/nowhere.html"
FOLDER = "/folder"  # asked for without its slash: the server redirects
TYPES = [".html", ".html", ".txt", ".js", ".bin"]


def make(folder: Path) -> dict:
    """Writes the site under `folder`; {path as in a URL: sha256 of the file}."""
    rng = random.Random(20)
    count = INNER * CHILDREN + 1
    names = ["/" if n == 0 else name(n, ".html" if n < INNER else TYPES[n % len(TYPES)]) for n in range(count)]
    truth = {}
    for n, path in enumerate(names):
        children = [names[child] for child in range(n * CHILDREN + 1, n * CHILDREN + 1 + CHILDREN)] if n < INNER else []
        if n == 0:
            children += [FOLDER, DEAD, "/café.html"]
        if children:
            body = page(n, children, rng)
        else:
            body = leaf(path, SIZES[n % len(SIZES)] if n < INNER + 2 * len(SIZES) else rng.randrange(6000), rng)
        add(truth, folder, path, body)
    add(truth, folder, FOLDER + "/", page(count, ["/", "deep.html"], rng))
    add(truth, folder, FOLDER + "/deep.html", page(count + 1, ["../café.html"], rng))
    add(truth, folder, "/café.html", leaf("/café.html", 777, rng))
    return truth


def name(n: int, suffix: str) -> str:
    """Where page `n` lies: nested, so that references climb and descend."""
    return f"/d{n % 7}/e{n % 3}/p{n}{suffix}" if n % 2 else f"/p{n}{suffix}"


def page(n: int, children: list, rng: random.Random) -> bytes:
    """A page with links, and some text that compresses as text does."""
    links = "\n".join(f'<li><a href="{child}">{child.split("/")[-1]}</a>' for child in children)
    return f"<!doctype html>\n<meta charset=utf-8>\n<title>{n}</title>\n<ul>\n{links}\n</ul>\n{words(rng, 900)}".encode()


def leaf(path: str, size: int, rng: random.Random) -> bytes:
    """Exactly `size` bytes of the path's type."""
    if path.endswith(".bin"):
        return rng.randbytes(size)
    # What is too short for a tag has none: nginx's SSI filter swallows a "<!" at the end of a page.
    start = "<!doctype html><p>" if path.endswith(".html") and size >= 100 else ""
    return (start + words(rng, size)).encode()[:size]


def words(rng: random.Random, size: int) -> str:
    """At least `size` bytes of words, which no coding makes so short that it would be taken for a bomb."""
    found = " ".join(f"{rng.randrange(1 << 20):x}" for _ in range(min(size, 200_000) // 4 + 1))
    return (found * (size // len(found) + 1))[: size + 1]


def add(truth: dict, folder: Path, path: str, body: bytes) -> None:
    """Writes a file and notes its digest."""
    file = folder / (path.lstrip("/") + ("index.html" if path.endswith("/") else ""))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    truth[quote(path)] = hashlib.sha256(body).hexdigest()
