"""Files behind a web server: Apache's own indexes of folders with their columns to sort by, and a plain manual.

Decides: content of the index is each folder, however it is sorted, and each file; content of the manual is each of its
HTML files.
"""

import random
from pathlib import Path
from urllib.parse import unquote

from programs import Program
from words import Words, slug

FOLDERS, FILES, MANUAL = 60, 10, Path("/usr/share/doc/sqlite3")


class Index(Program):
    """mod_autoindex with FancyIndexing, of some hundred files in three languages."""

    def install(self) -> None:
        languages = [Words(self.name, language) for language in ("en", "de", "ru")]
        folders = [self.folder / "tree"]
        for number in range(FOLDERS):
            chance = random.Random(number)
            text = chance.choice(languages)
            folder = chance.choice([own for own in folders
                if len(own.relative_to(self.folder).parts) < 4]) / slug(text.title(number, 2))
            folders.append(folder)
            folder.mkdir(parents=True, exist_ok=True)
            for at in range(chance.randint(2, 2 * FILES - 2)):
                key, kind = (number, at), chance.choice((".txt", ".txt", ".html", ".log", ".csv"))
                body = text.paragraphs(key, chance.choice((20, 60, 200, 500)))
                (folder / f"{slug(text.title(key, 3))}{kind}").write_text(body if kind == ".html"
                    else body.replace("<p>", "").replace("</p>", ""))

    def apache(self) -> str:
        tree = self.folder / "tree"
        options = "Options Indexes\nIndexOptions FancyIndexing HTMLTable Charset=UTF-8"
        return f"DocumentRoot {tree}\nAddDefaultCharset UTF-8\n<Directory {tree}>\n{options}\n</Directory>"

    def items(self) -> frozenset:
        paths = [path for path in (self.folder / "tree").rglob("*")] + [self.folder / "tree"]
        return frozenset(str(path.relative_to(self.folder / "tree")) for path in paths)

    def item(self, target: str):
        return unquote(target.partition("?")[0]).strip("/") or "."


class Plain(Program):
    """The manual of SQLite."""

    def apache(self) -> str:
        return f"DocumentRoot {MANUAL}"

    def items(self) -> frozenset:
        return frozenset(str(path.relative_to(MANUAL)) for path in MANUAL.rglob("*.html"))

    def item(self, target: str):
        return unquote(target.partition("?")[0]).strip("/") or "index.html"
