"""Two more source browsers, chosen after detection was finished: hgweb and Fossil over the repository of sources.py.

Decides: content is each commit on its own page, and each file with the text that it has at the head, whatever revision
shows it. Branches, tags, annotations, differences, timelines and reports are none.
"""

import re
import sqlite3
from urllib.parse import parse_qsl, unquote, urlsplit

from sources import Sources


class Hgweb(Sources):
    """hgweb, Mercurial's own, whose URLs are paths."""

    def install(self) -> None:
        super().install()
        hg = ("env", "HGPLAIN=1", "hg", "--config", "extensions.convert=")
        git = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        self.command("env", *(f"{key}={value}" for key, value in git.items()), *hg[1:], "convert", "-q",
                     self.folder / "project.git", self.folder / "project.hg")
        (self.folder / "hgweb.conf").write_text(f"[paths]\n/project = {self.folder}/project.hg\n[web]\ndescr = project\n"
                                                "allow_archive = gz zip\nstyle = paper\n")
        script = self.folder / "hgweb.cgi"
        script.write_text("#!/usr/bin/python3\nfrom mercurial import demandimport; demandimport.enable()\n"
                          "from mercurial.hgweb import hgweb, wsgicgi\n"
                          f"wsgicgi.launch(hgweb(b'{self.folder}/hgweb.conf'))\n")
        script.chmod(0o755)

    def hg(self, *command) -> str:
        """What hg prints about the repository."""
        return self.command("env", "HGPLAIN=1", "hg", "--config", "trusted.users=*", "-R", self.folder / "project.hg",
                            *command)

    def items(self) -> frozenset:
        self.commits = frozenset(self.hg("log", "--template", "{node|short}\n").split())
        self.head = {path: node for node, path in self.files("default")}
        return self.commits | frozenset(self.head)

    def files(self, revision: str) -> list:
        """(hash, path) of the files at a revision."""
        lines = self.hg("manifest", "--debug", "-r", revision).splitlines()
        return [(line[:40], line[47:]) for line in lines]

    def is_head(self, revision: str, path: str) -> bool:
        if path in self.head and revision not in self.texts:
            self.texts[revision] = {name: node for node, name in self.files(revision)}
        return path in self.head and self.texts[revision].get(path) == self.head[path]

    def apache(self) -> str:
        return f"ScriptAlias / {self.folder}/hgweb.cgi/\n<Directory {self.folder}>\nOptions +ExecCGI\n</Directory>"

    def item(self, target: str):
        parts = unquote(urlsplit(target).path).removeprefix("/project").strip("/").split("/", 2)
        match parts:
            case ["rev" | "changeset", revision] if re.fullmatch("[0-9a-f]{12,40}", revision):
                return revision[:12]
            case ["file" | "raw-file", revision, path] if re.fullmatch("[0-9a-f]{12,40}|tip|default", revision):
                return path if self.is_head(revision, path) else None
        return None


class Fossil(Sources):
    """Fossil's own pages."""

    def install(self) -> None:
        super().install()
        file = self.folder / "project.fossil"
        stream = self.git("fast-export", "--all")
        self.command("env", f"HOME={self.folder}", "USER=dev", "fossil", "import", "--git", file, input=stream.encode())
        # As its pages are read by anybody; without this, links to histories are shown to humans alone.
        with sqlite3.connect(file) as repository:
            repository.execute("replace into config (name, value, mtime) values ('auto-hyperlink', '0', 0)")
            repository.execute("update user set cap = 'hjorz' where login in ('nobody', 'anonymous')")
        script = self.folder / "fossil.cgi"
        script.write_text(f"#!/usr/bin/fossil\nrepository: {file}\n")
        script.chmod(0o755)

    def items(self) -> frozenset:
        with sqlite3.connect(self.folder / "project.fossil") as repository:
            rows = repository.execute("select uuid from event join blob on objid = rid where type = 'ci'")
            self.commits = {uuid: uuid for (uuid,) in rows}
        manifest = self.command("env", f"HOME={self.folder}", "fossil", "artifact", "tip", "-R",
                                self.folder / "project.fossil")
        self.head = dict(re.findall("^F (\\S+) (\\S+)", manifest, re.MULTILINE))
        self.blobs = {blob: path for path, blob in self.head.items()}
        return frozenset(self.commits) | frozenset(self.head)

    def of_hash(self, prefix: str):
        """The item whose hash begins so."""
        found = [item for known in (self.commits, self.blobs) for uuid, item in known.items()
                 if len(prefix) >= 8 and uuid.startswith(prefix)]
        return found[0] if len(found) == 1 else None

    def apache(self) -> str:
        return f"ScriptAlias / {self.folder}/fossil.cgi/\n<Directory {self.folder}>\nOptions +ExecCGI\n</Directory>"

    def item(self, target: str):
        url = urlsplit(target)
        page, _, name = unquote(url.path).strip("/").partition("/")
        query = dict(parse_qsl(url.query))
        match page:
            case "info" | "ci" | "vinfo" | "artifact" | "raw":
                return self.of_hash(name or query.get("name", ""))
            case "file" if query.get("ci", "tip") in ("tip", "main", "trunk"):
                path = name or query.get("name", "")
                return path if path in self.head else None
        return None
