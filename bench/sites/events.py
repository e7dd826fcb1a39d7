"""A calendar with 1,200 past events, and days, weeks and months without end in both directions.

Decides: content is the events' own pages. Months lead to each of their days, to lists and weeks, and to their
neighbours; days to their neighbours. Each event has an iCalendar file, and each month one.
"""

import random
from datetime import date, timedelta

from serving import Answer, Synthetic, link, links
from words import slug

EVENTS, FIRST, TODAY = 1200, date(2022, 1, 1), date(2026, 11, 20)


class Events(Synthetic):
    """See above."""

    language = "ru"

    def prepare(self) -> None:
        self.events, self.by_day, days = [], {}, (TODAY - FIRST).days
        for number in range(EVENTS):
            chance = random.Random(number)
            day, title = FIRST + timedelta(days=number * days // EVENTS), self.words.title(number, chance.randint(3, 7))
            self.events.append({"day": day, "title": title, "path": f"/event/{slug(title)}-{number}/",
                "words": chance.randint(30, 150)})
            self.by_day.setdefault(day, []).append(number)
        self.content = frozenset(range(EVENTS))

    def item(self, target: str):
        path = target.partition("?")[0]
        last = path.strip("/").rpartition("-")[2]
        return int(last) if path.startswith("/event/") and last.isdigit() and "ical" not in target else None

    def menu(self) -> str:
        return links([("/", "Home"), ("/events/", "Events"), ("/events/list/", "List"), ("/about/", "About")])

    def page(self, path: list, query: dict):
        match path:
            case [""] | ["events", ""]:
                return self.month(TODAY.replace(day=1), query)
            case ["about", ""]:
                return self.html("About", self.words.paragraphs("about", 120))
            case ["event", name, ""] if name.rpartition("-")[2].isdigit() and int(name.rpartition("-")[2]) < EVENTS:
                return self.event(int(name.rpartition("-")[2]), query)
            case ["events", "list", ""]:
                at = int(query["page"]) if query.get("page", "").isdigit() else 1
                shown = [*range(EVENTS)][::-1][(at - 1) * 10 : at * 10]
                near = [(f"/events/list/?page={at + 1}", "Earlier")] + [(f"/events/list/?page={at - 1}",
                    "Later")] * (at > 1)
                return self.html("List", self.listed(shown) + links(near))
            case ["events", kind, day, ""] if kind in ("month", "week", "day"):
                try:
                    return getattr(self, kind)(date.fromisoformat(day + "-01" * (kind == "month")), query)
                except (ValueError, OverflowError):
                    return None
        return None

    def listed(self, numbers: list) -> str:
        """Events in a list."""
        events = [self.events[number] for number in numbers]
        shown = "".join(f"<li>{event['day']} {link(event['path'], event['title'])}</li>\n" for event in events)
        return f"<ul>{shown}</ul>"

    def month(self, first: date, query: dict):
        """A month as a table of days."""
        days = [first + timedelta(days=at) for at in range(31) if (first + timedelta(days=at)).month == first.month]
        if "ical" in query:
            return ical("month")
        cells = "".join(
            f"<td>{link(f'/events/day/{day}/', str(day.day))}{self.listed(self.by_day.get(day, [])[:2])}</td>"
            for day in days
        )
        weeks = [(f"/events/week/{day}/", f"Week {day.isocalendar()[1]}") for day in days if day.weekday() == 0]
        near = [(f"/events/month/{other:%Y-%m}/", f"{other:%B %Y}") for other in (first - timedelta(days=1), days[-1]
            + timedelta(days=1))]
        return self.html(f"{first:%B %Y}", f"<p>{links(near)}</p><table><tr>{cells}</tr></table><p>{links(weeks)}</p>"
                         f"<p>{link(f'/events/month/{first:%Y-%m}/?ical=1', 'iCal')}</p>")

    def week(self, day: date, _query: dict) -> str:
        """Seven days."""
        days = [day + timedelta(days=at) for at in range(7)]
        near = [(f"/events/week/{day + timedelta(days=step)}/", text) for step, text in ((-7, "Previous"), (7, "Next"))]
        shown = "".join(f"<h4>{link(f'/events/day/{at}/', str(at))}</h4>{self.listed(self.by_day.get(at, []))}"
            for at in days)
        return self.html(f"Week of {day}", links(near) + shown)

    def day(self, day: date, _query: dict) -> str:
        """One day, mostly empty."""
        near = [(f"/events/day/{day + timedelta(days=step)}/", text) for step, text in ((-1, "Previous"), (1, "Next"))]
        own = self.by_day.get(day, [])
        return self.html(f"{day:%d %B %Y}", links(near) + (self.listed(own) if own
            else f"<p>{self.words.text('no events', 8)}</p>"))

    def event(self, number: int, query: dict):
        """An event."""
        event = self.events[number]
        if "ical" in query:
            return ical(event["title"])
        near = [(self.events[other]["path"], self.events[other]["title"]) for other in (number - 1, number + 1)
            if 0 <= other < EVENTS]
        tools = [(f"{event['path']}?ical=1", "iCal"), (f"/events/day/{event['day']}/", str(event["day"])),
                 (f"/events/month/{event['day']:%Y-%m}/", f"{event['day']:%B %Y}")]
        return self.html(event["title"], self.words.paragraphs(("event", number), event["words"]) + links(tools)
            + "<br>" + links(near))


def ical(name: str) -> Answer:
    """A calendar file."""
    return Answer(f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-WR-CALNAME:{name}\r\nEND:VCALENDAR\r\n".encode(),
        "text/calendar; charset=utf-8")
