"""Pages of the site that stand elsewhere: the README and its like, and the keys of all files.

MkDocs calls these functions (`hooks` in mkdocs.yml). A link from a page to a file that is no page,
a source file for instance, is shown as its path.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.structure.files import File, Files  # pyright: ignore[reportMissingImports]

from dpledger.runs.documents import all_keys

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
ELSEWHERE = {**{name: name for name in ROOT_PAGES}, "data/README.md": "data.md"}
"""Path in the repository -> path in the site."""

_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand outside docs/, and the one that is generated."""
    texts = {
        site: (ROOT / path).read_text(encoding="utf-8") for path, site in ELSEWHERE.items()
    } | {"keys.md": keys_page()}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links at pages of the site; show the path where there is no page."""
    site = page.file.src_uri
    places = {place: path for path, place in ELSEWHERE.items()}
    here = PurePosixPath(places.get(site, f"docs/{site}")).parent
    depth = "../" * (len(PurePosixPath(site).parts) - 1)

    def mended(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        if "://" in target:
            return link[0]
        path = normpath((here / target).as_posix())
        if path in ELSEWHERE:
            return f"[{words}]({depth}{ELSEWHERE[path]}{anchor})"
        if path.startswith("docs/") and files.get_file_from_path(path.removeprefix("docs/")):
            return f"[{words}]({depth}{path.removeprefix('docs/')}{anchor})"
        if not (ROOT / path).exists():
            raise ValueError(f"{here / site}: {target} must exist")
        return words if words.strip("`") == path else f"{words} (`{path}`)"

    return _LINK.sub(mended, markdown)


def keys_page() -> str:
    """Return the page of every key of the files that people write."""
    lines = [
        "# Files and keys",
        "",
        "`dpledger explain KEY` says the same; `dpledger init TABLE.csv` writes first files.",
        "JSON schemas: [run](schemas/run.schema.json), [schema](schemas/schema.schema.json),",
        "[statistics](schemas/statistics.schema.json), [claim](schemas/claim.schema.json),",
        "[report](schemas/report.schema.json).",
    ]
    file = ""
    for key in all_keys():
        if key.file != file:
            file = key.file
            head = ["", f"## {file}.toml", "", "| key | default | meaning |", "|---|---|---|"]
            lines += head
        allowed = f" One of {', '.join(f'`{word}`' for word in key.allowed)}." * bool(key.allowed)
        default = "required" if key.default is None else f"`{key.default}`"
        default = "" if key.default == "null" else default
        lines.append(f"| `{key.path}` | {default} | {key.text}{allowed} |")
    return "\n".join(lines) + "\n"
