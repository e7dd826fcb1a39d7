#!/usr/bin/env python3
"""The rooms of the house and the arrows between them: tests/tools/rooms.py

Prints each crate with those that it uses, and each room of the brain and of its frontier likewise. Exit code 1: a crate uses one
that stands behind it in the workspace's list, rooms of the brain use each other in a circle of more than three, or rooms of the
frontier in any circle.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CIRCLE_MAX = 3


def crates() -> dict[str, list[str]]:
    """By name, in the order in which they stand, the members that each uses but for tests."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    found = {}
    for member in [*workspace["workspace"]["members"], "."]:
        manifest = tomllib.loads((ROOT / member / "Cargo.toml").read_text())
        used = [name for name in manifest.get("dependencies", {}) if name.startswith("ringcrawl")]
        found[manifest["package"]["name"]] = used
    # The lab is behind the program, whose lines of text it prints.
    lab = found.pop("ringcrawl-lab")
    return found | {"ringcrawl-lab": lab}


def rooms(crate: Path, root: str = "crate") -> dict[str, set[str]]:
    """By name, the rooms of a crate, or of the module at the path `root`, that each uses but for tests."""
    names = {path.stem for path in crate.iterdir() if path.is_dir() or path.suffix == ".rs"}
    names -= {"lib", "mod", "purity", "tests"}
    found = {}
    for name in sorted(names):
        used: set[str] = set()
        for path in [*crate.glob(f"{name}.rs"), *(crate / name).rglob("*.rs")]:
            if "tests" in str(path.relative_to(crate)):
                continue
            code = path.read_text().split("#[cfg(test)]\nmod ")[0]
            lines = [line for line in code.splitlines() if not line.lstrip().startswith("//")]
            used |= set(re.findall(rf"\b{root}::(\w+)", "\n".join(lines))) & names
        found[name] = used - {name}
    return found


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Rooms each of which is reached from every other (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(room: str) -> None:
        number[room] = low[room] = len(number)
        stack.append(room)
        for other in arrows[room]:
            if other not in number:
                visit(other)
                low[room] = min(low[room], low[other])
            elif other in stack:
                low[room] = min(low[room], number[other])
        if low[room] == number[room]:
            circle = stack[stack.index(room):]
            del stack[stack.index(room):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for room in arrows:
        if room not in number:
            visit(room)
    return found


def main() -> int:
    """Prints, and judges."""
    code, seen = 0, set()
    for name, used in crates().items():
        print(f"{name}: {' '.join(used)}")
        for up in [other for other in used if other not in seen]:
            print(f"  an arrow up, to {up}")
            code = 1
        seen.add(name)
    print()
    houses = [("brain", "crate", CIRCLE_MAX), ("brain/frontier", "crate::frontier", 1)]
    for house, root, circle_max in houses:
        arrows = rooms(ROOT / "src" / house, root)
        for name, others in arrows.items():
            print(f"{house}/{name}: {' '.join(sorted(others))}")
        for circle in circles(arrows):
            is_wide = len(circle) > circle_max
            print(f"  a circle{' of too many' if is_wide else ''}: {' '.join(circle)}")
            code |= int(is_wide)
    return code


if __name__ == "__main__":
    sys.exit(main())
