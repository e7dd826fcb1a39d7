"""Text that reads like a language: random walks over the word pairs of real text.

Decides: where text comes from. Debian's fortunes are collections of quotations in several languages. A walk goes from a
word to one that follows it somewhere in them, so words have the frequencies of the language, and neighbours fit. Two
texts share common words and phrases, as two pages of one author do, and hardly a whole sentence.

Invariants: the same key gives the same text, on any machine. Text holds no character that HTML or XML must escape.
Limits: Chinese is cut into characters; two of them stand for a word.
"""

import random
import re
from functools import cache
from pathlib import Path

FORTUNES = Path("/usr/share/games/fortunes")
FILES = {
    "en": ["science", "computers", "definitions", "literature"],
    "de": ["de/zitate"],
    "ru": ["ru/knowledge", "ru/education", "ru/book", "ru/life", "ru/art"],
    "zh": ["tang300", "song100"],
}
ATTRIBUTION = re.compile(r"^\s*--.*$", re.MULTILINE)
UNWANTED = re.compile(r"[<>&\"'\x00-\x1f\x7f]+|\[[0-9;]*m|[|_~*]{2,}")


class Words:
    """The text of one site."""

    def __init__(self, site: str, language: str) -> None:
        self.site, self.language = site, language
        self.joint = "" if language == "zh" else " "
        self.followers, self.starts = chain(language)

    def text(self, key: object, count: int) -> str:
        """`count` words: the text called `key`."""
        chance, words = random.Random(f"{self.site}/{key}"), []
        for _ in range(count if self.joint else 2 * count):
            following = self.followers.get(words[-1] if words else "")
            words.append(chance.choice(following or self.starts))
        return self.joint.join(words)

    def title(self, key: object, count: int = 4) -> str:
        """A few words that begin with a capital letter and end without a full stop."""
        title = self.text(f"title of {key}", count).strip(" .,;:!?-()/，。、？！")
        return title[:1].upper() + title[1:] or f"{key}"

    def paragraphs(self, key: object, count: int) -> str:
        """Text as HTML paragraphs of some 60 words."""
        lengths = [min(60, count - at) for at in range(0, count, 60)]
        return "".join(f"<p>{self.text((key, number), length)}</p>\n" for number, length in enumerate(lengths))


@cache
def chain(language: str) -> tuple[dict, list]:
    """({word: the words after it, each as often as it is found there}, the words that begin a text)."""
    followers: dict = {}
    starts = []
    for name in FILES[language]:
        for quotation in (FORTUNES / name).read_text(errors="replace").split("\n%"):
            plain = UNWANTED.sub(" ", ATTRIBUTION.sub(" ", quotation.replace("\n", " \n")))
            words = [word for word in plain.split() if len(word) < 40]
            if language == "zh":
                words = [character for word in words for character in word if ord(character) > 0x2FFF]
            starts += words[:1]
            for word, following in zip(words, words[1:]):
                followers.setdefault(word, []).append(following)
    return followers, starts


def slug(title: str) -> str:
    """A title as it stands in URLs."""
    return "-".join(re.findall(r"[a-zа-яё0-9äöüß]+", title.lower()))[:60] or "item"
