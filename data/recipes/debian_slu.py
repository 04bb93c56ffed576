#!/usr/bin/env python3
"""Language understanding: what a package is for, by the labels that people gave it (debtags).

The utterance is a package's synopsis; its intent is the archive's section and the first use:: tag, its object the first
works-with:: tag ("-" where there is none). The target is "INTENT OBJECT UTTERANCE" with INTENT = SECTION_ACTION, in the
order of SLURP's recipe: the label first, then what was said. Columns section, action and object hold the labels alone.
To speak the utterances is up to the recipe debian_st's programs. Splits are by source package.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import ddtp
import fetch as recipes

COLUMNS = ("id", "src_text", "tgt_text", "section", "action", "object")
TAG = re.compile(r"([\w-]+)::(?:\{([^}]*)\}|([\w:+.-]+))")

NOTICE = """
Synopses by Debian's maintainers, each under its package's licence; labels by Debian's debtags project. Both stand in
Debian's archive.
"""


def labels(tags, facet):
    """Values of a facet; the field writes several as "facet::{one,two}"."""
    values = (value for name, several, one in TAG.findall(tags) if name == facet for value in (several.split(",") if several else [one]))
    return sorted(value for value in values if value and value != "TODO")


def rows_of(catalogue):
    """Yields (package, utterance, section, action, object)."""
    synopses = {}
    for package, lines in catalogue.descriptions("en").values():
        synopses.setdefault(package, lines[0])
    seen = set()
    for package, tags in catalogue.tags.items():
        action, thing = labels(tags, "use"), labels(tags, "works-with")
        utterance = synopses.get(package, "")
        if not utterance or not action or utterance.lower() in seen:
            continue
        seen.add(utterance.lower())
        yield package, utterance, catalogue.section[package], action[0], thing[0] if thing else "-"


def make_tables(work, folder):
    catalogue = ddtp.Catalogue(recipes.package_lists(work, ("de", "en")))
    tables = {split: [] for split in recipes.SPLITS}
    kinds = set(), set(), set()
    for package, utterance, section, action, thing in rows_of(catalogue):
        for kind, label in zip(kinds, (section, action, thing)):
            kind.add(label)
        target = f"{section}_{action} {thing} {utterance}"
        split = recipes.split_of(catalogue.source.get(package, package), test=8, dev=6)
        tables[split].append((package, utterance, target, section, action, thing))
    if not kinds[0]:
        raise recipes.RecipeError("no labelled package was found in the package lists; " + catalogue.advice, 3)
    files = [folder / "report.txt"]
    recipes.write_file(files[0], f"{len(kinds[0])} sections, {len(kinds[1])} actions, {len(kinds[2])} objects\n")
    for split, rows in tables.items():
        files.append(folder / (split + ".tsv"))
        recipes.write_table(files[-1], COLUMNS, rows)
    return files


def main():
    arguments = recipes.recipe_arguments("debian_slu", __doc__.splitlines()[0]).parse_args()
    recipes.need_program(arguments)
    folder = arguments.work / "debian_slu"
    code = recipes.digest_of_files(__file__, ddtp.__file__)
    recipes.make_once(folder, ["debian_slu", code], lambda: make_tables(arguments.work, folder))
    recipes.print_counts(folder)
    recipes.attribution(NOTICE)
    if not arguments.no_prepare:
        recipes.prepare(arguments.tactus, "debian_slu", folder, arguments.out)


if __name__ == "__main__":
    recipes.run_recipe(main)
