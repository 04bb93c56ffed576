#!/usr/bin/env python3
"""Summarisation: texts of Debian's packages with the one sentence that their authors put before them.

Default: the long description of a package and its synopsis, English or with --language de German. With --libreoffice: a
page of LibreOffice's help and its lead paragraph.

Left out: descriptions of less than 25 or more than 600 words, packages that only accompany another (libraries to develop
with, debugging symbols, documentation, translations), and texts that begin like one before. Splits are by source package,
or by help page.
"""

import collections
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import ddtp
import fetch as recipes
import translations

COLUMNS = ("id", "src_text", "tgt_text", "document")
SECTIONS = frozenset(("debug", "oldlibs", "metapackages", "localization"))
COMPANION = re.compile(r"-(?:dev|dbg|dbgsym|doc|common|data|l10n.*|locales?|perl-dev)$")
HELP = {"en": ("libreoffice-help-en-us", "en-US"), "de": ("libreoffice-help-de", "de")}
NAVIGATION = re.compile(r"(?:Help content debug info|This page is|Title is|Related Topics$|Verwandte Themen$|To access this command|"
                        r"So greifen Sie)")
NO_LEAD = ("Choose ", "Wählen", "Open ", "Press ", "From ", "On the ")

DDTP_NOTICE = """
Package descriptions by Debian's maintainers, each under its package's licence; German ones translated by the Debian
Description Translation Project. Both stand in Debian's archive.
"""
HELP_NOTICE = """
Help of LibreOffice, MPL-2.0, (C) LibreOffice contributors, Oracle and others.
"""


def description_rows(catalogue, language, counts):
    """Yields (package, document, summary)."""
    found = catalogue.descriptions(language)
    beginnings = set()
    for key in catalogue.held_out_first(found, lambda key: found[key][0]):
        package, lines = found[key]
        if catalogue.section.get(package, "").split("/")[-1] in SECTIONS:
            counts["section"] += 1
            continue
        if COMPANION.search(package):
            counts["companion_package"] += 1
            continue
        paragraphs = [text for kind, text in ddtp.blocks(lines[1:]) if kind != "verbatim" and not ddtp.URL.search(text)]
        document, summary = " ".join(paragraphs), lines[0]
        words = ddtp.normalised(document).split()
        if not 25 <= len(words) <= 600 or len(summary.split()) < 3:
            counts["length"] += 1
            continue
        beginning = " ".join(words[:20])
        if beginning in beginnings:
            counts["repeated"] += 1
            continue
        beginnings.add(beginning)
        yield package, document, summary


def lead_and_rest(blocks):
    """The lead paragraph of a help page and the text after it, or None."""
    blocks = [(tag, text) for tag, text in blocks if (tag == "p" or tag[0] == "h") and not NAVIGATION.match(text)]
    lead = next((number for number, (tag, text) in enumerate(blocks)
                 if tag == "p" and 6 <= len(text.split()) <= 45 and text.endswith(".") and not text.startswith(NO_LEAD)), None)
    if lead is None or lead > 3:
        return None
    rest = " ".join(text for tag, text in blocks[lead + 1 :] if tag[0] == "h" or text[-1] in ".!?:")
    return (blocks[lead][1], rest) if len(rest.split()) >= 40 else None


class Page(translations.Blocks):
    """Paragraphs and headings of the part of a help page that is its text."""

    OPENING = frozenset("p h1 h2 h3 h4 h5 h6".split())
    ENDING = OPENING
    CLOSING = OPENING
    SKIPPED = frozenset(("script", "style"))

    def handle_starttag(self, tag, attributes):
        if ("id", "DisplayArea") in attributes:
            tag = "body"
        elif tag == "body":
            return
        super().handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        if tag == "main":
            self._end()
            self._body = False
        super().handle_endtag(tag)


def help_rows(root, folder, counts):
    base = root / "usr/share/libreoffice/help" / folder / "text"
    seen = set()
    for path in sorted(base.rglob("*.html")):
        found = lead_and_rest(Page(translations.read_page(path)).blocks)
        if found is None:
            counts["no_lead_or_short"] += 1
            continue
        lead, rest = found
        if lead in seen or rest[:200] in seen:
            counts["repeated"] += 1
            continue
        seen.update((lead, rest[:200]))
        yield str(path.relative_to(base)), rest, lead


def make_tables(arguments, folder):
    counts = collections.Counter()
    if arguments.libreoffice:
        package, name = HELP[arguments.language]
        rows = [(document, text, summary, recipes.split_of("libreoffice " + document, 5, 5))
                for document, text, summary in help_rows(recipes.fetch([package], arguments.work)[package], name, counts)]
    else:
        catalogue = ddtp.Catalogue(recipes.package_lists(arguments.work, ("de", "en")))
        rows = [(package, text, summary, catalogue.split(package))
                for package, text, summary in description_rows(catalogue, arguments.language, counts)]
    if not rows:
        raise recipes.RecipeError("no text with a summary was found in the packages; remove "
                                  f"{arguments.work}/packages and {arguments.work}/apt and run again", 3)
    files = [folder / "report.txt"]
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items())) or "none"
    recipes.write_file(files[0], f"{len(rows)} pairs; left out: {left_out}\n")
    for split in recipes.SPLITS:
        files.append(folder / (split + ".tsv"))
        # Several versions of a description may stand under one package's name.
        table = [(f"{split}-{number:05d}", text, summary, document)
                 for number, (document, text, summary, where) in enumerate(rows) if where == split]
        recipes.write_table(files[-1], COLUMNS, table)
    return files


def main():
    parser = recipes.recipe_arguments("debian_sum", __doc__.splitlines()[0], variants=True)
    parser.add_argument("--language", choices=("en", "de"), default="en", help="of text and summary (default %(default)s)")
    parser.add_argument("--libreoffice", action="store_true", help="help pages and their lead paragraphs instead")
    arguments = parser.parse_args()
    recipes.need_program(arguments)
    folder = arguments.work / ("debian_sum_" + ("libreoffice_" if arguments.libreoffice else "") + arguments.language)
    code = recipes.digest_of_files(__file__, ddtp.__file__, translations.__file__)
    recipes.make_once(folder, ["debian_sum", arguments.language, arguments.libreoffice, code],
                      lambda: make_tables(arguments, folder))
    recipes.print_counts(folder)
    recipes.attribution(HELP_NOTICE if arguments.libreoffice else DDTP_NOTICE)
    if not arguments.no_prepare:
        settings = ["target.vocab_size=4000"] if arguments.libreoffice else []
        recipes.prepare(arguments.tactus, "debian_sum", folder, arguments.out or Path("runs") / folder.name, settings)


if __name__ == "__main__":
    recipes.run_recipe(main)
