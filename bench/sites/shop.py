"""A shop: 5,000 products under facets of four parameters with lists of values.

Decides: content is the products. Each product has 14, 35 or 80 words of its own, by the name of the site, and more
words that all pages share. A click on a facet's value adds it to the facet's list or removes it
(`color=red,blue&size=m`), together with the order and the page. A link puts a product into the basket.
"""

import random

from serving import Synthetic, link, links, pages, redirect
from words import slug

PRODUCTS, CATEGORIES, LISTED = 5000, 20, 20
FACETS = {
    "color": ("black", "blue", "brown", "green", "grey", "red", "white", "yellow"),
    "size": ("xs", "s", "m", "l", "xl", "xxl"),
    "brand": ("acker", "birke", "corvo", "delta", "esker", "fjord", "gamma", "hafen", "iris", "jura"),
    "material": ("cotton", "leather", "linen", "nylon", "silk", "wool"),
}
LANGUAGES = {14: "en", 35: "ru", 80: "de"}


class Shop(Synthetic):
    """See above."""

    def __init__(self, name: str, folder) -> None:
        self.length = int(name.removeprefix("shop"))
        self.language = LANGUAGES[self.length]
        super().__init__(name, folder)

    def prepare(self) -> None:
        self.products = []
        for number in range(PRODUCTS):
            chance = random.Random(number)
            title = self.words.title(number, chance.randint(2, 5))
            fields = {facet: chance.choice(values) for facet, values in FACETS.items()}
            self.products.append(fields | {"title": title, "path": f"/product/{slug(title)}-{number}",
                "price": chance.randint(9, 400),
                                           "category": number % CATEGORIES, "related": chance.sample(range(PRODUCTS),
                                               4)})
        self.categories = [f"/category/{slug(self.words.title(f'category {number}', 2))}-{number}"
            for number in range(CATEGORIES)]
        self.content = frozenset(range(PRODUCTS))

    def item(self, target: str):
        path = target.partition("?")[0]
        last = path.rpartition("-")[2]
        return int(last) if path.startswith("/product/") and last.isdigit() else None

    def menu(self) -> str:
        own = [(path, self.words.title(f"category {number}", 2)) for number, path in enumerate(self.categories)]
        return links([("/", "Home"), ("/basket", "Basket"), ("/account", "Account"), ("/terms", "Terms")] + own)

    def page(self, path: list, query: dict):
        whole, last = "/" + "/".join(path), path[-1].rpartition("-")[2]
        if "add-to-basket" in query:
            return redirect("/basket")
        if whole == "/":
            return self.html("Welcome", self.words.paragraphs("welcome", 60) + self.cards(self.products[: LISTED // 2]))
        if whole in ("/basket", "/account", "/terms"):
            return self.html(path[0], self.words.paragraphs(path[0], 50))
        if whole in self.categories:
            return self.category(whole, int(last), query)
        number = int(last) if last.isdigit() and int(last) < PRODUCTS else 0
        if whole == self.products[number]["path"]:
            return self.product(number)
        return None

    def category(self, path: str, number: int, query: dict) -> str:
        """A list of the products that have one of the values chosen in each facet."""
        chosen = {facet: query[facet].split(",") for facet in FACETS if query.get(facet)}
        found = [product for product in self.products if product["category"] == number
                 and all(product[facet] in values for facet, values in chosen.items())]
        order = query.get("sort", "")
        if order in ("price", "price-desc", "title"):
            found.sort(key=lambda product: product[order.partition("-")[0]], reverse=order == "price-desc")

        def to(page: int = 1, sort: str = order, **facets) -> str:
            now = chosen | facets
            parts = [f"{facet}={','.join(now[facet])}" for facet in FACETS if now.get(facet)]
            parts += [f"sort={sort}"] * bool(sort) + [f"page={page}"] * (page > 1)
            return path + ("?" + "&".join(parts) if parts else "")

        def clicked(facet: str, value: str) -> list:
            values = chosen.get(facet, [])
            return [other for other in values if other != value] if value in values else values + [value]

        facets = "".join(f"<h4>{facet}</h4>" + links([(to(**{facet: clicked(facet, value)}), value)
            for value in values], "<br>")
                         for facet, values in FACETS.items())
        orders = links([(to(sort=name), name) for name in ("price", "price-desc", "title")])
        current, count = int(query["page"]) if query.get("page", "").isdigit() else 1, max(1, -(-len(found) // LISTED))
        shown = self.cards(found[(current - 1) * LISTED : current * LISTED])
        main = f"<aside>{facets}</aside><p>{len(found)} products. Sort: {orders}</p>{shown}{pages(count, current, to)}"
        return self.html(self.words.title(f"category {number}", 2), main)

    def cards(self, products: list) -> str:
        """Products in a list."""
        return "<ul>" + "".join(
            f"<li>{link(product['path'], product['title'])} {product['price']}.00 €"
            f" {link(product['path'] + '?add-to-basket=1', 'Add to basket', 'nofollow')}</li>\n"
            for product in products) + "</ul>"

    def product(self, number: int) -> str:
        """A product: its own words among those that all have."""
        product = self.products[number]
        variants = links([(f"{product['path']}?size={size}", size) for size in FACETS["size"][1:4]])
        main = (
            f"<p>{link(self.categories[product['category']], 'Back')}</p>"
            f"<p>{self.words.text(('product', number), self.length)}</p>"
            f"<p>{product['price']}.00 €, {product['color']}, {product['brand']}, {product['material']}."
            f" Size: {variants}</p>"
            f"<p>{link(product['path'] + '?add-to-basket=1', 'Add to basket', 'nofollow')}</p>"
            f"<h3>Delivery</h3>{self.words.paragraphs('delivery', 90)}<h3>Customers also bought</h3>"
            f"{self.cards([self.products[other] for other in product['related']])}"
        )
        return self.html(product["title"], main)
