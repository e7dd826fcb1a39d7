"""An issue tracker: projects, issues with notes, sortable lists, activity, calendar and feeds, as Redmine has them.

Decides: content is the issues. A click on a column puts it before the columns sorted by so far; three of them are kept
(`sort=status,priority:desc,id:desc`), or turns it round; filters, stored queries and page sizes go together with any of
them. Feeds hold the newest issues with their full text. Activity and calendar go on without end.
"""

import random

from serving import Answer, Synthetic, link, links, pages, redirect

ISSUES, PROJECTS, USERS = 600, ("core", "web", "docs"), 24
COLUMNS = ("id", "tracker", "status", "priority", "subject", "assigned_to", "updated_on")
FILTERS = {"tracker": ("Bug", "Feature", "Support"), "status": ("New", "Open", "Feedback", "Closed"),
           "priority": ("Low", "Normal", "High", "Urgent")}


class Tracker(Synthetic):
    """See above."""

    def prepare(self) -> None:
        self.issues = [self.issue(number) for number in range(1, ISSUES + 1)]
        self.content = frozenset(range(1, ISSUES + 1))

    def issue(self, number: int) -> dict:
        """The fields of an issue."""
        chance = random.Random(number)
        fields = {name: chance.choice(values) for name, values in FILTERS.items()}
        related = sorted({chance.randint(1, ISSUES) for _ in range(chance.randint(0, 2))})
        return fields | {
            "id": number, "path": f"/issues/{number}", "project": chance.choice(PROJECTS),
            "assigned_to": chance.randint(1, USERS), "author": chance.randint(1, USERS), "updated_on": chance.random(),
            "related": related, "subject": self.words.title(number, chance.randint(4, 9)),
            "words": chance.randint(25, 120), "notes": [chance.randint(8, 40) for _ in range(chance.randint(0, 4))],
        }

    def item(self, target: str):
        name = target.partition("?")[0].removeprefix("/issues/")
        return int(name) if name.isdigit() else None

    def menu(self) -> str:
        names = [("/", "Home"), ("/projects", "Projects"), ("/issues", "Issues"), ("/activity", "Activity")]
        return links(names + [("/login", "Sign in"), ("/account/register", "Register"), ("/help", "Help")])

    def page(self, path: list, query: dict):
        match path:
            case [""]:
                return self.html("Welcome", self.words.paragraphs("welcome", 80) + links(
                    [(f"/projects/{name}", name) for name in PROJECTS]))
            case ["projects"]:
                return self.html("Projects", links([(f"/projects/{name}", name) for name in PROJECTS], "<br>"))
            case ["projects", name, *rest] if name in PROJECTS:
                return self.project(name, rest, query)
            case ["issues" | "issues.atom" | "issues.csv"]:
                return self.list("/", path[0], [*self.issues], query)
            case ["issues", name] if self.item(f"/issues/{name.removesuffix('.atom')}") in self.content:
                issue = self.issues[int(name.removesuffix(".atom")) - 1]
                return self.notes(issue) if name.endswith(".atom") else self.shown(issue)
            case ["users", number] if number.isdigit() and 0 < int(number) <= USERS:
                own = [issue for issue in self.issues if issue["author"] == int(number)][-10:]
                filtered = links([(f"/issues?assigned_to={number}&set_filter=1", "Assigned"),
                                  (f"/issues?author={number}&set_filter=1", "Reported")])
                return self.html(self.words.title(f"user {number}", 2), filtered + self.rows(own))
            case ["activity" | "activity.atom"]:
                return self.activity("", path[0], query)
            case ["login"] | ["account", "register"] | ["help"]:
                return self.html(path[-1], self.words.paragraphs(path[-1], 30))
            case ["issues", _, "edit" | "copy"] | ["watchers", _]:
                return redirect(f"/login?back_url=/{'/'.join(path)}")
        return None

    def project(self, name: str, rest: list, query: dict):
        """The pages of a project."""
        own = [issue for issue in self.issues if issue["project"] == name]
        base = f"/projects/{name}/"
        match rest:
            case [] | [""]:
                tabs = ("issues", "activity", "calendar", "gantt", "issues/report", "roadmap", "issues/new")
                return self.html(f"{name}: overview", links([(base + tab, tab) for tab in tabs])
                    + self.words.paragraphs(name, 60))
            case ["issues" | "issues.atom" | "issues.csv"]:
                return self.list(base, rest[0], own, query)
            case ["issues", "report"]:
                filters = [(key, value) for key, values in FILTERS.items() for value in values]
                shown = [(f"{base}issues?set_filter=1&{key}={value}", value) for key, value in filters]
                return self.html("Summary", links(shown, "<br>"))
            case ["issues", "new"]:
                return redirect(f"/login?back_url={base}issues/new")
            case ["roadmap"]:
                return self.html("Roadmap", self.rows(own[::15]))
            case ["activity" | "activity.atom"]:
                return self.activity(base, rest[0], query)
            case ["calendar" | "gantt"]:
                year, month = number(query, "year", 2026), number(query, "month", 11)
                shown = own[(year * 12 + month) % len(own)]
                months = [(year * 12 + month - 1 + step, text) for step, text in ((-1, "« Previous"), (1, "Next »"))]
                near = [(f"{base}{rest[0]}?month={at % 12 + 1}&year={at // 12}", text) for at, text in months]
                listed = self.rows([shown]) if year == 2026 else ""
                return self.html(f"{rest[0]} {month}/{year}", links(near) + listed)
        return None

    def list(self, base: str, name: str, issues: list, query: dict):
        """A list of issues in the order and with the filters of `query`, and as a feed the newest ones."""
        order = [part for part in query.get("sort", "id:desc").split(",") if part.partition(":")[0] in COLUMNS][:3]
        for key in (*FILTERS, "author", "assigned_to"):
            issues = [issue for issue in issues if key not in query or str(issue[key]) == query[key]]
        if query.get("query_id", "").isdigit():
            issues = [issue for issue in issues if issue["id"] % 5 != int(query["query_id"])]
        for part in reversed(order):
            issues.sort(key=lambda issue: issue[part.partition(":")[0]], reverse=part.endswith(":desc"))
        if name == "issues.atom":
            newest = sorted(issues, key=lambda issue: -issue["id"])[:25]
            return self.atom("Issues", [(issue["path"], issue["subject"], self.text(issue)) for issue in newest])
        if name == "issues.csv":
            return Answer("".join(f"{issue['id']},{issue['subject']}\n" for issue in issues).encode(),
                "text/csv; charset=utf-8")
        size, current = min(100, number(query, "per_page", 25)), number(query, "page", 1)
        count = max(1, -(-len(issues) // size))

        def to(name: str = "issues", **changed) -> str:
            kept = {key: value for key, value in query.items() if key != "page"} | changed
            parts = "&".join(f"{key}={value}" for key, value in sorted(kept.items()))
            return base + name + ("?" + parts if parts else "")

        heads = [(to(sort=added(order, column), set_filter=1), column) for column in COLUMNS]
        formats = [(to("issues.atom"), "Atom"), (to("issues.csv"), "CSV")]
        queries = [(f"{base}issues?query_id={query_id}", self.words.title(f"query {query_id}", 2))
            for query_id in range(1, 5)]
        main = (f"<p>{links(queries)}</p><table><tr><th>{links(heads, '</th><th>')}</th></tr></table>"
                f"{self.rows(issues[(current - 1) * size : current * size])}"
                f"{pages(count, current, lambda page: to(page=page))}"
                f"<p>Per page: {links([(to(per_page=size), str(size)) for size in (25, 50, 100)])}</p>"
                f"<p>Also available in: {links(formats)}</p>")
        return self.html("Issues", main,
            f'<link rel="alternate" type="application/atom+xml" href="{to("issues.atom").replace("&", "&amp;")}">')

    def rows(self, issues: list) -> str:
        """Issues in a table."""
        return "<table>" + "".join(
            f"<tr><td>{link(issue['path'], str(issue['id']))}</td><td>{issue['tracker']}</td><td>{issue['status']}</td>"
            f"<td>{issue['priority']}</td><td>{link(issue['path'], issue['subject'])}</td>"
            f"<td>{self.person(issue['assigned_to'])}</td></tr>\n" for issue in issues) + "</table>"

    def person(self, user: int) -> str:
        """A link to a user."""
        return link(f"/users/{user}", self.words.title(f"user {user}", 2))

    def text(self, issue: dict) -> str:
        """What was written when the issue was opened."""
        return self.words.paragraphs(("issue", issue["id"]), issue["words"])

    def note_texts(self, issue: dict) -> list:
        """What was written later."""
        return [self.words.text((issue["id"], "note", index), length) for index, length in enumerate(issue["notes"])]

    def notes(self, issue: dict) -> Answer:
        """An issue's feed."""
        path = issue["path"]
        return self.atom(issue["subject"], [(f"{path}#note-{at}", "Note", text)
            for at, text in enumerate(self.note_texts(issue))])

    def shown(self, issue: dict) -> str:
        """An issue."""
        path = issue["path"]
        fields = "".join(f"<dt>{key}</dt><dd>{issue[key]}</dd>" for key in FILTERS)
        notes = "".join(f'<div id="note-{at}"><h4>Updated by {self.person(issue["author"])}</h4><p>{text}</p></div>'
                        for at, text in enumerate(self.note_texts(issue)))
        project = link(f"/projects/{issue['project']}/issues", issue["project"])
        tools = [(f"{path}/edit", "Edit"), (f"{path}/copy", "Copy"), (f"/watchers/{issue['id']}", "Watch"),
                 (f"{path}?tab=history", "History"), (f"{path}?tab=notes", "Notes"), (f"{path}.atom", "Atom")]
        main = (f"<p>{links(tools)}</p><p>Added by {self.person(issue['author'])}</p>"
                f"<dl>{fields}</dl>{self.text(issue)}"
                f"<p>Related: {links([(f'/issues/{other}', f'#{other}') for other in issue['related']])}</p>{notes}"
                f"<p>{project}</p>")
        return self.html(f"#{issue['id']}: {issue['subject']}", main,
            f'<link rel="alternate" type="application/atom+xml" href="{path}.atom">')

    def activity(self, base: str, name: str, query: dict):
        """What happened in ten days: without end, and empty before the first issue."""
        base = base or "/"
        at = number(query, "from", ISSUES)
        shown = [issue for issue in self.issues[max(0, at - 10) : max(0, at)] if base == "/"
            or issue["project"] in base]
        if name == "activity.atom":
            return self.atom("Activity", [(issue["path"], issue["subject"], self.text(issue)) for issue in shown])
        near = [(f"{base}activity?from={at - 10}", "« Previous"), (f"{base}activity?from={at + 10}", "Next »"),
            (f"{base}activity.atom", "Atom")]
        listed = "".join(f"<dt>{link(issue['path'], issue['subject'])}</dt>"
                         f"<dd>{self.text(issue)[:200]} {self.person(issue['author'])}</dd>" for issue in shown)
        return self.html("Activity", f"<dl>{listed}</dl>{links(near)}")


def added(order: list, column: str) -> str:
    """The order after a click on a column."""
    turned = column + ("" if order and order[0] == f"{column}:desc" else ":desc" if order and order[0] == column
        else "")
    return ",".join([turned] + [part for part in order if part.partition(":")[0] != column][:2])


def number(query: dict, key: str, default: int) -> int:
    """A parameter."""
    text = query.get(key, "")
    return int(text) if text.removeprefix("-").isdigit() else default
