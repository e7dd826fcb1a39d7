"""Replays the stores of a run in pywb, and looks at them with a real browser.

    replay.py RUN_DIR PICTURES_DIR        exit code 1 when a check fails

Decides what "it replays" means. The servers of the crawl are gone, and the browser resolves no name: a page in the replay
has its style sheets applied and its images decoded, and requests come to pywb alone. A gzip download comes byte for
byte, to a browser and to a program, and URLs that are written in odd ways are found. Stores in gzip members are
replayed as they were written, those in zstd frames from their exports, all by their own indexes: pywb makes none, and
copies nothing. A store whose index lacks styles and images must fail, and so must a page that asks elsewhere.

Writes `pywb/config.yaml`, as a user would, and a picture of each page.
Limits: pywb listens on a loopback port found free; PAGE_SECONDS for each page.
"""

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Error, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real"))
import servers
from compare import Report

START_SECONDS = 60
PAGE_SECONDS = 30

# Codings of stored bodies that pywb hands to the browser undecoded, without the field that names them.
UNREADABLE = {
    "x-gzip": "pywb knows gzip, deflate and br, and renames the Content-Encoding of others",
    "zstd": "pywb knows gzip, deflate and br, and renames the Content-Encoding of others",
}

# What the page is made of, seen from inside. The styles are put off and on: what does not change was not applied.
LOOK = """() => {
  const looks = () => [...document.querySelectorAll("body *")].slice(0, 300).map((element) => {
    const style = getComputedStyle(element);
    return [style.color, style.backgroundColor, style.fontFamily, style.fontSize, style.margin, style.display].join();
  });
  const sheets = [...document.styleSheets].filter((sheet) => sheet.href);
  const rules = sheets.map((sheet) => sheet.cssRules.length);
  const styled = looks();
  for (const sheet of sheets) sheet.disabled = true;
  const bare = looks();
  for (const sheet of sheets) sheet.disabled = false;
  return {
    title: document.title,
    rules,
    restyled: styled.filter((look, at) => look !== bare[at]).length,
    images: [...document.images].map((image) => [image.src, image.complete ? image.naturalWidth : 0]),
  };
}"""


def main(run: Path, pictures: Path) -> int:
    """Runs every check; returns the number of those that failed."""
    facts = json.loads((run / "run.json").read_text())
    report = Report()
    port = servers.free_port()
    folder = run / "pywb"
    folder.mkdir()
    places = places_of(run)
    lines = [line for name, folders in places.items() for line in configuration(name, folders, folders)]
    whole = places["warc.gz-decoded"]
    lines += configuration("bare", [bare_index(whole, folder / "bare")], whole)
    (folder / "config.yaml").write_text("collections:\n" + "".join(lines))
    with open(folder / "pywb.log", "wb") as log:
        command = [str(Path(sys.executable).parent / "wayback"), "-b", "127.0.0.1", "-p", str(port), "-d", str(folder)]
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(port)
        with sync_playwright() as playwright:
            look_around(report, playwright, facts, f"http://127.0.0.1:{port}", places, pictures)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
    print(f"{report.passed} checks passed, {report.failed} failed")
    return report.failed


def places_of(run: Path) -> dict:
    """{collection: folders of segments and their indexes}."""
    places = {}
    for store in sorted((run / "stores").iterdir()):
        export = run / "exports" / store.name
        places[store.name] = [export] if export.is_dir() else sorted(store.glob("shard-*/segments"))
    # What did not change since the first crawl is a revisit of it: both are served.
    for again in sorted((run / "again").iterdir()):
        export = run / "exports-again" / again.name
        own = [export] if export.is_dir() else sorted(again.glob("shard-*/segments"))
        places[f"again-{again.name}"] = own + places[again.name]
    return places


def configuration(name: str, indexes: list, archives: list) -> list:
    """A collection's lines in config.yaml: segments where they lie, and folders of their own indexes."""
    lines = [f"  {name}:\n    index_group:\n"]
    lines += [f"      part-{number}: {folder}\n" for number, folder in enumerate(indexes)]
    return lines + ["    archive_paths:\n"] + [f"      - {folder}/\n" for folder in archives]


def index_entries(folders: list) -> list:
    """[(line, members)] of all indexes of a collection."""
    indexes = [path for folder in folders for path in sorted(folder.glob("*.cdxj"))]
    lines = [line for path in indexes for line in path.read_text().splitlines()]
    return [(line, json.loads(line.split(" ", 2)[2])) for line in lines]


def bare_index(folders: list, into: Path) -> Path:
    """An index without styles and images."""
    into.mkdir()
    kept = [line for line, entry in index_entries(folders) if not entry["mime"].startswith(("image/", "text/css"))]
    (into / "bare.cdxj").write_text("".join(line + "\n" for line in sorted(kept)))
    return into


def wait_for(port: int) -> None:
    """Until pywb answers."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise SystemExit("pywb does not answer") from None
            time.sleep(0.2)


def look_around(report: Report, playwright, facts: dict, origin: str, places: dict, pictures: Path) -> None:
    """Every collection, in one browser that knows no name and no address but that of pywb."""
    browser = playwright.chromium.launch(
        executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
        args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    )
    try:
        for collection, folders in places.items():
            for url in facts["shown"]:
                name, differences = show(browser, origin, collection, url, pictures)
                report.check(name, differences)
            read(report, browser, facts, origin, collection)
            find(report, facts, origin, collection, folders)
            fetch(report, browser, facts, origin, collection)
        _, noticed = show(browser, origin, "bare", facts["shown"][0], pictures, facts["hub"])
        words = ("has no width", "style sheets with", "asked http://hub.test")
        missed = [f"nothing is said of: {word}" for word in words if not any(word in line for line in noticed)]
        report.check("a page without styles and images that asks elsewhere: noticed", missed)
    finally:
        browser.close()


def opened(page, url: str):
    """The frame in which pywb shows a page, when all is there that the page asks for."""
    page.goto(url, timeout=PAGE_SECONDS * 1000, wait_until="load")
    page.wait_for_load_state("networkidle", timeout=PAGE_SECONDS * 1000)
    frame = next((frame for frame in page.frames if "mp_/" in frame.url), None)
    if frame is None:
        raise Error(f"no page in the replay: {[frame.url for frame in page.frames]}")
    return frame


def show(browser, origin: str, collection: str, url: str, pictures: Path, elsewhere: str = "") -> tuple:
    """(name, differences) of one page, in pywb's frame as a user sees it. `elsewhere` is asked on top of it."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    asked: list = []
    page.on("request", lambda request: asked.append(request.url))
    differences = []
    seen = {"rules": [], "restyled": 0, "images": []}
    try:
        seen = opened(page, f"{origin}/{collection}/{url}").evaluate(LOOK)
        if elsewhere:
            page.evaluate("(url) => fetch(url, { mode: 'no-cors' }).catch(() => null)", elsewhere)
        page.screenshot(path=str(pictures / f"{collection}-{urlsplit(url).hostname}.png"))
    except Error as error:
        differences.append(str(error)[:300])
    finally:
        page.close()
    differences += [f"asked {other}" for other in asked if not other.startswith((origin + "/", "data:", "blob:"))]
    differences += [f"image {source} has no width" for source, width in seen["images"] if not width]
    if not seen["images"]:
        differences.append("no image")
    if not seen["rules"] or not all(seen["rules"]) or not seen["restyled"]:
        differences.append(f"style sheets with {seen['rules']} rules change the look of {seen['restyled']} elements")
    name = f"{collection}: {urlsplit(url).hostname}{urlsplit(url).path} in pywb: {len(seen['images'])} images"
    name += f", {len(seen['rules'])} style sheets on {seen['restyled']} elements, {len(asked)} requests, none elsewhere"
    return name, differences


def read(report: Report, browser, facts: dict, origin: str, collection: str) -> None:
    """Pages that came in less usual codings are text, and not bytes in disguise."""
    differences, readable, explained = [], [], []
    for coding, (url, title) in facts["coded"].items():
        page = browser.new_page()
        try:
            found = opened(page, f"{origin}/{collection}/{url}").title()
            wrong = [f"{url} has the title {found[:80]!r}, not {title!r}"] if found != title else []
        except Error as error:
            wrong = [f"{url}: {str(error)[:200]}"]
        finally:
            page.close()
        if not wrong:
            readable.append(coding)
        elif collection.endswith(("as-received", "dictionary")) and coding in UNREADABLE:
            explained.append(f"      explained: the page in {coding} is not readable: {UNREADABLE[coding]}")
        else:
            differences += wrong
    report.check(f"{collection}: pages that came in {', '.join(readable)} are readable in pywb", differences)
    print(*explained, sep="\n", end="\n" if explained else "")


def find(report: Report, facts: dict, origin: str, collection: str, folders: list) -> None:
    """URLs written in odd ways: pywb, which makes keys of its own, finds for each what was stored for it."""
    differences = []
    odd = [entry for _, entry in index_entries(folders) if "/odd/" in entry["url"]]
    for entry in odd:
        request = urllib.request.Request(f"{origin}/{collection}/id_/{entry['url']}")
        try:
            with urllib.request.urlopen(request, timeout=PAGE_SECONDS) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        digest = "sha256:" + base64.b32encode(hashlib.sha256(body).digest()).decode()
        if (str(status), digest) != (entry["status"], entry["digest"]):
            differences.append(f"{entry['url']}: status {status}, stored was {entry['status']}: {body[:60]!r}")
    if len(odd) < facts["odd"]:
        differences.append(f"{facts['odd']} were linked")
    report.check(f"{collection}: {len(odd)} odd URLs found in pywb", differences)


def fetch(report: Report, browser, facts: dict, origin: str, collection: str) -> None:
    """The gzip download: by a click on its link in the replay, and by a program that asks for the stored bytes."""
    true = Path(facts["download"]["file"]).read_bytes()
    name = facts["download"]["url"].rsplit("/", 1)[1]
    differences = []
    page = browser.new_page(accept_downloads=True)
    try:
        frame = opened(page, f"{origin}/{collection}/{facts['hub']}")
        with page.expect_download(timeout=PAGE_SECONDS * 1000) as download:
            frame.click(f"a[href$='{name}']", timeout=PAGE_SECONDS * 1000)
        got = Path(download.value.path()).read_bytes()
        if got != true:
            differences.append(f"the browser got {len(got)} bytes that begin with {got[:4].hex()}")
    except Error as error:
        differences.append(str(error)[:300])
    finally:
        page.close()
    with urllib.request.urlopen(f"{origin}/{collection}/id_/{facts['download']['url']}", timeout=PAGE_SECONDS) as answer:
        got = answer.read()
    if got != true:
        differences.append(f"the program got {len(got)} bytes that begin with {got[:4].hex()}")
    report.check(f"{collection}: {name} in pywb: {len(true):,} bytes, the same by browser and by program", differences)


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]), Path(sys.argv[2]))))
