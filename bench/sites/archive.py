"""An archive of 2,000 posts over 200 list pages.

Decides: content is the posts. List pages hold the beginnings of ten posts each and lead to their neighbours. Posts have
links to their neighbours, to answer each comment (`?replytocom=`), to share (`?share=`) and to print, and a feed each.
"""

import random
from urllib.parse import unquote

from serving import Synthetic, link, links, pages
from words import slug

POSTS, LISTED, TAGS = 2000, 10, 60


class Archive(Synthetic):
    """See above."""

    language = "de"

    def prepare(self) -> None:
        self.posts, self.by_path = [], {}
        for number in range(POSTS):
            chance = random.Random(number)
            title, month = self.words.title(number, chance.randint(3, 8)), number * 120 // POSTS
            path = f"/{2016 + month // 12}/{month % 12 + 1:02}/{slug(title)}-{number}/"
            self.by_path[path] = number
            self.posts.append({"path": path, "title": title, "words": chance.choice((40, 90, 180, 320)),
                               "tags": chance.sample(range(TAGS), 3), "comments": chance.choice((0, 0, 1, 3))})
        self.content = frozenset(range(POSTS))

    def item(self, target: str):
        path = unquote(target.partition("?")[0])
        return self.by_path.get(path)

    def menu(self) -> str:
        return links([("/", "Home"), ("/about/", "About"), ("/archive/", "Archive"), ("/feed/", "Feed")])

    def page(self, path: list, query: dict):
        whole = "/" + "/".join(path)
        if whole in self.by_path:
            return self.post(self.by_path[whole])
        match path:
            case [""] | ["archive", ""]:
                return self.list("/archive/", [*range(POSTS)], 1)
            case ["archive", "page", number, ""] if number.isdigit():
                return self.list("/archive/", [*range(POSTS)], int(number))
            case ["tag", tag, ""] if tag.isdigit():
                return self.list(f"/tag/{tag}/", self.tagged(int(tag)), 1)
            case ["tag", tag, "page", number, ""] if tag.isdigit() and number.isdigit():
                return self.list(f"/tag/{tag}/", self.tagged(int(tag)), int(number))
            case ["about", ""]:
                return self.html("About", self.words.paragraphs("about", 150))
            case ["feed", ""]:
                newest = range(POSTS - 1, POSTS - 11, -1)
                return self.atom("Feed", [(self.posts[number]["path"], self.posts[number]["title"], self.text(number))
                    for number in newest])
            case [*_, slug_of_post, "feed", ""] if "/" + "/".join(path[:-2]) + "/" in self.by_path:
                return self.atom(slug_of_post, [])
        return None

    def tagged(self, tag: int) -> list:
        """The posts that have a tag."""
        return [number for number, post in enumerate(self.posts) if tag in post["tags"]]

    def text(self, number: int) -> str:
        """A whole post."""
        return self.words.paragraphs(("post", number), self.posts[number]["words"])

    def list(self, base: str, numbers: list, current: int):
        """Ten posts, the newest first."""
        numbers = numbers[::-1]
        count = -(-len(numbers) // LISTED)
        if not 0 < current <= count:
            return None
        shown = "".join(
            f"<article><h2>{link(self.posts[number]['path'], self.posts[number]['title'])}</h2>"
            f"{self.words.paragraphs(('post', number), min(40, self.posts[number]['words']))}"
            f"{link(self.posts[number]['path'], 'Weiterlesen')}</article>\n"
            for number in numbers[(current - 1) * LISTED : current * LISTED]
        )
        base = base + "page/" if base != "/" else base
        return self.html(f"Archive, page {current}", shown + pages(count, current, lambda page: f"{base}{page}/"))

    def post(self, number: int) -> str:
        """A post."""
        post = self.posts[number]
        path = post["path"]
        comments = "".join(
            f"<li>{self.words.text((number, 'comment', at), 25)}"
            f" {link(f'{path}?replytocom={number * 8 + at}', 'Antworten', 'nofollow')}</li>"
            for at in range(post["comments"])
        )
        near = [(self.posts[other]["path"], self.posts[other]["title"]) for other in (number - 1, number + 1)
            if 0 <= other < POSTS]
        tools = [(f"{path}?share=mail", "Mail"), (f"{path}?share=mastodon", "Mastodon"), (f"{path}?print=1", "Print")]
        tags = links([(f"/tag/{tag}/", self.words.title(f"tag {tag}", 1)) for tag in post["tags"]])
        main = (f"{self.text(number)}<p>{tags}</p><p>{links(tools)}</p><ol>{comments}</ol><p>{links(near)}</p>")
        return self.html(post["title"], main, f'<link rel="alternate" type="application/atom+xml" href="{path}feed/">')
