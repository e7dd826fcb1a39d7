"""Wikis with histories: MediaWiki and DokuWiki of Debian, each with their defaults.

Decides: content is each page that was written, articles and talk, by its current text; versions, differences, editing,
sources, lists and media are none. About half of the pages have been changed some times.
"""

import gzip
import os
import random
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from programs import Program
from words import slug

ARTICLES = 350
PAGE = """<page><title>%s</title><ns>%d</ns>%s</page>
"""
REVISION = """<revision><timestamp>20%02d-%02d-%02dT08:00:00Z</timestamp>
<contributor><username>%s</username></contributor>
<comment>%s</comment><model>wikitext</model><format>text/x-wiki</format><text xml:space="preserve">%s</text></revision>
"""


class Wiki(Program):
    """What both have."""

    def versions(self, number: int, join) -> list:
        """The texts that a page had; `join` makes a text of paragraphs and of the numbers of pages that it links to."""
        chance = random.Random(number)
        paragraphs = [self.words.text((number, at), chance.randint(15, 70)) for at in range(chance.randint(1, 6))]
        others, texts = [chance.randint(1, ARTICLES) for _ in range(chance.randint(2, 7))], []
        for version in range(chance.choice((1, 1, 2, 4, 8))):
            if version:
                paragraphs[chance.randrange(len(paragraphs))] = self.words.text((number, version, "changed"), 30)
            texts.append(join(paragraphs, others))
        return texts


class MediaWiki(Wiki):
    """MediaWiki on SQLite."""

    def title(self, number: int) -> str:
        """A page's title; the last ones are talk pages."""
        return f"{self.words.title(number % ARTICLES, 2).replace('#', '')} {number % ARTICLES}"

    def install(self) -> None:
        maintenance = "/usr/share/mediawiki/maintenance/"
        self.command(
            "php", maintenance + "install.php", "--confpath", self.folder, "--dbtype", "sqlite",
            "--dbpath", self.folder / "data", "--dbname", "wiki", "--server", self.origin, "--scriptpath", "",
            "--pass", "benchmark-of-sites", "--skins", "MonoBook,Vector,Timeless", self.words.title("wiki", 2), "Keeper",
        )
        with open(self.folder / "LocalSettings.php", "a") as settings:
            settings.write("\n$wgMainCacheType = CACHE_NONE; $wgParserCacheType = CACHE_DB; $wgJobRunRate = 0;\n")
        pages = []
        for number in range(1, ARTICLES + 1):
            chance = random.Random(f"pages {number}")
            for page in [number] + [number + ARTICLES] * (chance.random() < 0.15):
                revisions = "".join(
                    REVISION % (
                        20 + at // 4, at % 12 + 1, number % 28 + 1,
                        self.words.title(("user", chance.randrange(12)), 1), self.words.text((number, at, "why"), 5),
                        text,
                    )
                    for at, text in enumerate(
                        self.versions(page, lambda paragraphs, others: self.text(page, paragraphs, others))
                    )
                )
                pages.append(
                    PAGE % (("Talk:" if page > ARTICLES else "") + self.title(number), page > ARTICLES, revisions)
                )
        main = "\n".join(f"* [[:Category:{self.words.title(f'topic {topic}', 1)} {topic}]]" for topic in range(12))
        for title, space, text in (
            ("Portal", 0, main + f"\n* [[{self.title(1)}]]"), ("MediaWiki:Mainpage", 8, "Portal")
        ):
            pages.append(PAGE % (title, space, REVISION % (26, 1, 1, "Keeper", "start", text)))
        (self.folder / "dump.xml").write_text(
            f'<mediawiki xml:lang="en" version="0.11">\n{"".join(pages)}</mediawiki>\n'
        )
        environment = {"MW_CONFIG_FILE": str(self.folder / "LocalSettings.php"), "PATH": "/usr/bin:/bin"}
        for script in ("importDump.php", "rebuildrecentchanges.php", "initSiteStats.php", "runJobs.php"):
            arguments = [self.folder
                / "dump.xml"] if script.startswith("import") else ["--update"] if script.startswith("init") else []
            self.command("php", maintenance + script, *arguments, env=environment)

    def text(self, number: int, paragraphs: list, others: list) -> str:
        """Wikitext."""
        parts = [f"== {self.words.title((number, at), 3)} ==\n{text}" if at else text
            for at, text in enumerate(paragraphs)]
        seen = "".join(f"\n* [[{self.title(other)}]]" for other in others)
        topics = "".join(f"\n[[Category:{self.words.title(f'topic {topic}', 1)} {topic}]]" for topic in {number % 12,
            number % 5})
        return "\n\n".join(parts) + "\n== See also ==" + seen + ("" if number > ARTICLES else topics)

    def apache(self) -> str:
        return f"SetEnv MW_CONFIG_FILE {self.folder}/LocalSettings.php\nDocumentRoot /usr/share/mediawiki"

    def items(self) -> frozenset:
        titles = re.findall("<title>(.*?)</title>", (self.folder / "dump.xml").read_text())
        return frozenset(title.replace(" ", "_") for title in titles) - {"MediaWiki:Mainpage"}

    def item(self, target: str):
        parts, query = urlsplit(target), dict(parse_qsl(urlsplit(target).query))
        title = query.pop("title", "") or unquote(parts.path.removeprefix("/index.php").strip("/")) or "Portal"
        shows = {"action": ("view",), "redirect": ("no",), "mobileaction": None, "useskin": None, "printable": None,
            "veaction": None}
        is_current = all(key in shows and (shows[key] is None or value in shows[key]) for key, value in query.items())
        return title.replace(" ", "_") if is_current and parts.path.startswith(("/index.php",
            "/")) and parts.path.count(".") < 2 else None


class DokuWiki(Wiki):
    """DokuWiki on files."""

    language = "de"

    def name_of(self, number: int) -> str:
        """A page's name, with its namespace."""
        space = random.Random(f"space {number}").randrange(18)
        own = slug(self.words.title(number, 2)).replace("-", "_")
        name = f"{slug(self.words.title(f'space {space}', 1))}{space}:{own}_{number}"
        return "start" if number == 0 else name.translate(str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}))

    def install(self) -> None:
        shutil.copytree("/usr/share/dokuwiki", self.folder / "wiki", ignore=shutil.ignore_patterns(".htaccess"))
        data = self.folder / "data"
        for name in ("pages", "attic", "media", "media_attic", "media_meta", "meta", "cache", "index", "locks", "tmp",
            "log"):
            (data / name).mkdir(parents=True)
        conf = shutil.copytree("/etc/dokuwiki", self.folder / "conf", ignore=lambda _, names: [name for name in names
            if "auth" in name])
        (self.folder / "wiki/inc/preload.php").unlink()
        (self.folder
            / "wiki/inc/preload.php").write_text(f"<?php define('DOKU_CONF', '{conf}/'); define('DOKU_FARM', false);\n")
        settings = {"title": "Wiki", "lang": "de", "useacl": 0, "savedir": data, "baseurl": "", "useheading": 1}
        lines = [f"$conf['{key}'] = '{value}';\n" for key, value in settings.items()]
        (Path(conf) / "local.php").write_text("<?php\n" + "".join(lines))
        for number in range(ARTICLES + 1):
            self.write(data, number)

    def write(self, data: Path, number: int) -> None:
        """A page with its history."""
        name, texts = self.name_of(number), self.versions(number, lambda paragraphs, others: self.text(number,
            paragraphs, others))
        path, log = name.replace(":", "/"), []
        for kind in ("pages", "attic", "meta"):
            (data / kind / path).parent.mkdir(parents=True, exist_ok=True)
        for version, text in enumerate(texts):
            at, kind = 1_600_000_000 + number * 40_000 + version * 9_000, "E" if version else "C"
            log.append(f"{at}\t127.0.0.1\t{kind}\t{name}\tkeeper\t{self.words.text((number, version, 'why'), 4)}\t\t\n")
            (data / "attic" / f"{path}.{at}.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        (data / "meta" / f"{path}.changes").write_text("".join(log))
        with open(data / "meta/_dokuwiki.changes", "a") as changes:
            changes.write("".join(log))
        page = data / "pages" / f"{path}.txt"
        page.write_text(texts[-1])
        os.utime(page, (at, at))

    def text(self, number: int, paragraphs: list, others: list) -> str:
        """DokuWiki's markup."""
        if number == 0:
            others = range(1, ARTICLES, 12)
        parts = [f"===== {self.words.title((number, at), 3)} =====\n{text}" for at, text in enumerate(paragraphs)]
        seen = "".join(f"\n  * [[:{self.name_of(other)}]]" for other in others)
        return f"====== {self.words.title(number, 3)} ======\n" + "\n\n".join(parts) + seen

    def apache(self) -> str:
        return f"DocumentRoot {self.folder}/wiki"

    def items(self) -> frozenset:
        return frozenset(self.name_of(number) for number in range(ARTICLES + 1))

    def item(self, target: str):
        parts, query = urlsplit(target), dict(parse_qsl(urlsplit(target).query))
        is_current = parts.path in ("/", "/doku.php", "/index.php") and query.get("do",
            "show") == "show" and not {"rev", "idx", "media", "image"} & {*query}
        return query.get("id", "start").strip(":") if is_current else None
