"""A magazine that puts a session id into each path: /s/ID/…

Decides: content is the articles, under any session. Links of the menu start at the root and have no session: a request
without one is redirected to a new one. A session ends after some requests; a page that is requested under an old one is
answered under a new one, and its links have the new id. So each article has endless URLs.
"""

import random
from hashlib import sha256

from serving import Synthetic, link, links, pages, redirect

ARTICLES, SECTIONS, LISTED, SESSION_REQUESTS = 500, 8, 15, 150


class Sessions(Synthetic):
    """See above."""

    language = "zh"

    def prepare(self) -> None:
        self.articles = [(f"article-{number}.html", self.words.title(number, random.Random(number).randint(3, 8)))
            for number in range(ARTICLES)]
        self.content = frozenset(range(ARTICLES))

    def begin(self) -> None:
        self.requests: dict = {}
        self.current = ""

    def item(self, target: str):
        last = target.partition("?")[0].rpartition("/article-")[2].removesuffix(".html")
        return int(last) if "/article-" in target and last.isdigit() else None

    def menu(self) -> str:
        sections = [(f"/section/{number}", self.words.title(f"section {number}", 2)) for number in range(SECTIONS)]
        return links([("/", "Home"), ("/about", "About")] + sections)

    def page(self, path: list, query: dict):
        if path[0] != "s":
            return redirect("/".join(["", "s", self.new_session(), *path]))
        if len(path) < 3:
            return None
        session = path[1]
        self.requests[session] = self.requests.get(session, 0) + 1
        if self.requests[session] > SESSION_REQUESTS:
            session = self.new_session() if self.requests.get(self.current, 0) > SESSION_REQUESTS // 4 else self.current
            self.requests[session] = self.requests.get(session, 0) + 1
        return self.inside(f"/s/{session}/", path[2:], query)

    def new_session(self) -> str:
        """An id that was not there before."""
        self.current = sha256(f"session {len(self.requests)}".encode()).hexdigest()[:32]
        self.requests.setdefault(self.current, 0)
        return self.current

    def inside(self, base: str, path: list, query: dict):
        """A page whose links keep the session."""
        match path:
            case [""]:
                return self.html(self.words.title("home"), self.listed(base, range(ARTICLES - 20, ARTICLES)))
            case ["about"]:
                return self.html("About", self.words.paragraphs("about", 100))
            case ["section", number] if number.isdigit() and int(number) < SECTIONS:
                own, at = [*range(int(number), ARTICLES, SECTIONS)], int(query["page"]) if query.get("page",
                    "").isdigit() else 1
                shown = self.listed(base, own[(at - 1) * LISTED : at * LISTED])
                return self.html(self.words.title(f"section {number}", 2),
                                 shown + pages(-(-len(own) // LISTED), at,
                                     lambda page: f"{base}section/{number}?page={page}"))
            case [name] if self.item(f"/{name}") is not None and self.item(f"/{name}") < ARTICLES:
                number = self.item(f"/{name}")
                near = self.listed(base, random.Random(number).sample(range(ARTICLES), 4))
                text = self.words.paragraphs(("article", number), random.Random(number).choice((30, 80, 200)))
                return self.html(self.articles[number][1], text + link(f"{base}section/{number % SECTIONS}",
                    "Section") + near)
        return None

    def listed(self, base: str, numbers) -> str:
        """Articles in a list."""
        return "<ul>" + "".join(f"<li>{link(base + self.articles[number][0], self.articles[number][1])}</li>"
            for number in numbers) + "</ul>"
