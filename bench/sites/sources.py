"""Source browsers over one repository of some 500 commits and 300 files: gitweb and cgit.

Decides: content is each commit, on its own page or on that of its difference, and each file as it is at the head, as a
page or raw, at whichever revision it had that text. Older texts, trees, histories, blame and patches are none.
"""

import random
import re
import subprocess
from functools import cached_property
from urllib.parse import parse_qsl, unquote, urlsplit

from programs import Program
from words import slug

COMMITS, FOLDERS = 500, ("src", "src/core", "src/net", "src/ui", "doc", "doc/de", "tests", "tests/data", "tools", "po")


class Sources(Program):
    """The repository."""

    def install(self) -> None:
        stream, files = [], {}
        for number in range(1, COMMITS + 1):
            chance = random.Random(number)
            author = self.words.title(("author", chance.randrange(9)), 2).replace("<", "")
            body = self.words.text((number, "message"), chance.choice((5, 15, 40)))
            committer = f"committer {author} <dev@sources.test> {1_600_000_000 + number * 86_400} +0000"
            message = data(f"{self.words.title(number, 7)}\n\n{body}\n")
            stream.append(f"commit refs/heads/main\nmark :{number}\n{committer}\n{message}")
            for change in range(chance.choice((1, 1, 2, 4))):
                if len(files) < 10 or chance.random() < 0.35:
                    kind = chance.choice((".c", ".h", ".py", ".txt", ".md"))
                    name = f"{chance.choice(FOLDERS)}/{slug(self.words.title((number, change), 2))}{kind}"
                    files[name] = [self.words.text((number, change, line), 9) for line in range(chance.choice((8, 30,
                        90)))]
                else:
                    name = chance.choice([*files])
                    line = chance.randrange(len(files[name]))
                    files[name][line : line + chance.randint(0, 3)] = [self.words.text((number, change), 9)]
                text = "\n".join(files[name]) + "\n"
                stream.append(f"M 100644 inline {name}\n{data(text)}")
            if number % 50 == 0:
                stream.append(f"reset refs/tags/v{number // 50}\nfrom :{number}\n\n")
        stream.append("reset refs/heads/stable\nfrom :400\n\n")
        self.command("git", "init", "-q", "--bare", "-b", "main", self.folder / "project.git")
        self.command("git", "-C", self.folder / "project.git", "fast-import", "--quiet", input="".join(stream).encode())

    def git(self, *command) -> str:
        """What git prints about the repository."""
        return self.command("git", "-c", "safe.directory=*", "-C", self.folder / "project.git", *command)

    def items(self) -> frozenset:
        self.commits = frozenset(self.git("rev-list", "--all").split())
        lines = [line.split(None, 3) for line in self.git("ls-tree", "-r", "HEAD").splitlines()]
        self.head = {path: blob for _, _, blob, path in lines}
        return self.commits | frozenset(self.head)

    @cached_property
    def texts(self) -> dict:
        """{revision: {path: blob}}, filled as asked."""
        return {}

    def is_head(self, revision: str, path: str) -> bool:
        """Whether a file had at a revision the text that it has at the head."""
        if path in self.head and revision not in self.texts:
            done = subprocess.run(["git", "-c", "safe.directory=*", "-C", self.folder / "project.git", "ls-tree",
                "-r", revision],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.texts[revision] = {line.split(None, 3)[3]: line.split()[2] for line in done.stdout.splitlines()}
        return path in self.head and self.texts[revision].get(path) == self.head[path]


class Gitweb(Sources):
    """gitweb, whose URLs are parameters separated by semicolons."""

    def apache(self) -> str:
        (self.folder / "gitweb.conf").write_text(f"$projectroot = '{self.folder}';\n$git_temp = '/tmp';\n"
                                                 "$feature{'blame'}{'default'} = [1];\n")
        own = "<Directory /usr/share/gitweb>\nOptions +ExecCGI\nAddHandler cgi-script .cgi\n</Directory>"
        return f"SetEnv GITWEB_CONFIG {self.folder}/gitweb.conf\nDocumentRoot /usr/share/gitweb\n{own}"

    def item(self, target: str):
        query = dict(part.partition("=")[::2] for part in re.split("[;&]", urlsplit(target).query))
        query = {key: unquote(value.replace("+", " ")) for key, value in query.items()}
        match query.get("a"):
            case "commit" | "commitdiff":
                return query.get("h") if "hp" not in query else None
            case "blob" | "blob_plain":
                path = query.get("f", "")
                return path if query.get("h", self.head.get(path)) == self.head.get(path) and (
                    "h" in query or self.is_head(query.get("hb", "HEAD"), path)) else None
        return None


class Cgit(Sources):
    """cgit, whose URLs are paths with a revision behind."""

    def apache(self) -> str:
        (self.folder / "cgitrc").write_text(
            "virtual-root=/\ncache-size=0\ncss=/cgit.css\nenable-index-links=1\nenable-commit-graph=1\n"
            "enable-blame=1\nenable-log-filecount=1\nsnapshots=tar.gz zip\nmax-stats=year\nrepo.url=project\n"
            f"repo.path={self.folder}/project.git\nrepo.desc={self.words.title('project')}\n"
        )
        return f"SetEnv CGIT_CONFIG {self.folder}/cgitrc\nScriptAlias / /usr/lib/cgit/cgit.cgi/"

    def item(self, target: str):
        parts, query = urlsplit(target), dict(parse_qsl(urlsplit(target).query))
        page, _, path = unquote(parts.path).removeprefix("/project/").partition("/")
        match page:
            case "commit" | "diff" | "patch" if not path and "id2" not in query and page != "patch":
                return query.get("id") or self.git("rev-parse", query.get("h", "HEAD")).strip()
            case "tree" | "plain":
                return path if self.is_head(query.get("id", query.get("h", "HEAD")), path) else None
        return None


def data(text: str) -> str:
    """A text as fast-import reads it."""
    return f"data {len(text.encode())}\n{text}\n"
