#!/usr/bin/env python3
"""Translation, English to German: texts of Debian's packages that people wrote and translated.

Sources: package descriptions (DDTP), LibreOffice's help, the game Battle for Wesnoth, Debian Reference, Debian's
installation guide, the game Fish Fillets, and with --ding a dictionary of words and phrases.

Splits: every document is in one split, by a hash: a document is a source package, a help page, a chapter, a level; of
Wesnoth a campaign. Texts whose English or German side, in letters and digits, is the same are one text: it stays in test
before dev before train, over all sources. So nothing of dev or test can be trained on.
"""

import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import ddtp
import fetch as recipes
import translations

COLUMNS = ("id", "src_text", "tgt_text", "subset", "document")
WESNOTH = ["wesnoth-1.16-" + name for name in "data core did dm dw ei httt l low nr sof sota sotbe thot trow tsg ttb utbs".split()]
PACKAGES = ["libreoffice-help-en-us", "libreoffice-help-de", "debian-reference-en", "debian-reference-de",
            "installation-guide-amd64", "fillets-ng-data", *WESNOTH]

NOTICE = """
ddtp: package descriptions by Debian's maintainers (each under its package's licence), translated by the Debian
  Description Translation Project; both stand in Debian's archive.
libreoffice: help of LibreOffice, MPL-2.0, (C) LibreOffice contributors, Oracle and others.
wesnoth: The Battle for Wesnoth, GPL-2+, (C) David White and the Wesnoth project, with its translators.
debian_reference: GPL-2+, Osamu Aoki and translators.   installation_guide: GPL-2, the Debian Installer team.
fillets: Fish Fillets NG, GPL-2, ALTAR interactive and translators.   ding (--ding): GPL-2+, Frank Richter, TU Chemnitz.
"""


def ddtp_rows(catalogue, counts):
    """(document, English, German) of the descriptions; repeats of an English text are left out."""
    english, german = catalogue.descriptions("en"), catalogue.descriptions("de")
    both = [key for key in english if key in german]
    seen = set()
    for key in catalogue.held_out_first(both, lambda key: english[key][0]):
        package, lines = english[key]
        for _, source, target in ddtp.pairs(lines, german[key][1]):
            reason = ddtp.fault(source, target)
            text = ddtp.normalised(source)
            if reason is None and text in seen:
                reason = "repeated"
            if reason is not None:
                counts[reason] += 1
                continue
            seen.add(text)
            yield catalogue.source.get(package, package), source, target


def usable_rows(rows, counts):
    """The same for the other sources."""
    seen = set()
    for document, source, target in rows:
        if not translations.is_usable(source, target):
            counts["unusable"] += 1
        elif source in seen:
            counts["repeated"] += 1
        else:
            seen.add(source)
            yield document, source, target


def collect(work, ding):
    """{source: [(document, English, German)]} in the order in which sources are listed, and {source: Counter of drops}."""
    roots = recipes.fetch(PACKAGES + (["trans-de-en"] if ding else []), work)
    catalogue = ddtp.Catalogue(recipes.package_lists(work, ("de", "en")))
    raw = {
        "libreoffice": translations.libreoffice(roots["libreoffice-help-en-us"], roots["libreoffice-help-de"]),
        "wesnoth": translations.wesnoth([roots[name] for name in WESNOTH]),
        "debian_reference": translations.debian_reference(roots["debian-reference-en"], roots["debian-reference-de"]),
        "installation_guide": translations.installation_guide(roots["installation-guide-amd64"]),
        "fillets": translations.fillets(roots["fillets-ng-data"]),
    }
    if ding:
        raw["ding"] = translations.dictionary(roots["trans-de-en"])
    dropped = collections.defaultdict(collections.Counter)
    rows = {"ddtp": list(ddtp_rows(catalogue, dropped["ddtp"]))}
    for name, pairs in raw.items():
        rows[name] = list(usable_rows(pairs, dropped[name]))
    for name, pairs in rows.items():
        if not pairs:
            raise recipes.RecipeError(f"{name}: no pair of texts was found; remove {work}/packages and {work}/apt and run again", 3)
    return rows, dropped


def assign(rows):
    """Rows of each split as (id, English, German, source, document), and how many a source lost to texts held out."""
    by_split = {split: [] for split in recipes.SPLITS}
    for source, pairs in rows.items():
        for number, (document, english, german) in enumerate(pairs):
            # Package names are hashed as they are, so that recipes on descriptions agree about them.
            group = document if source == "ddtp" else f"{source} {document}"
            split = recipes.split_of(group, ddtp.TEST, ddtp.DEV, ddtp.OUT_OF)
            by_split[split].append((f"{source}-{number:06d}", english, german, source, document))
    lost, held_out = collections.Counter(), (set(), set())
    for split in ("test", "dev", "train"):
        kept = []
        for row in by_split[split]:
            sides = ddtp.normalised(row[1]) or row[1], ddtp.normalised(row[2]) or row[2]
            if sides[0] in held_out[0] or sides[1] in held_out[1]:
                lost[row[3]] += 1
            else:
                kept.append((row, sides))
        if split != "train":
            for _, sides in kept:
                held_out[0].add(sides[0])
                held_out[1].add(sides[1])
        by_split[split] = [row for row, _ in kept]
    return by_split, lost


def report(rows, by_split, dropped, lost):
    lines = [f"{'source':<20}{'pairs':>8}{'train':>8}{'dev':>7}{'test':>7}  left out"]
    for source, pairs in rows.items():
        counts = [sum(row[3] == source for row in by_split[split]) for split in recipes.SPLITS]
        left_out = dict(dropped[source], in_held_out_text=lost[source])
        lines.append(f"{source:<20}{len(pairs):>8}{counts[0]:>8}{counts[1]:>7}{counts[2]:>7}  "
                     + ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()) if count))
    return "\n".join(lines) + "\n"


def make_tables(work, folder, ding):
    rows, dropped = collect(work, ding)
    by_split, lost = assign(rows)
    files = [folder / "report.txt"]
    recipes.write_file(files[0], report(rows, by_split, dropped, lost))
    for split, table in by_split.items():
        files.append(folder / (split + ".tsv"))
        recipes.write_table(files[-1], COLUMNS, table)
    return files


def main():
    parser = recipes.recipe_arguments("debian_mt", __doc__.splitlines()[0], variants=True)
    parser.add_argument("--ding", action="store_true", help="add a dictionary of words and phrases (330,000 pairs)")
    arguments = parser.parse_args()
    recipes.need_program(arguments)
    folder = arguments.work / ("debian_mt_ding" if arguments.ding else "debian_mt")
    code = recipes.digest_of_files(__file__, ddtp.__file__, translations.__file__)
    recipes.make_once(folder, ["debian_mt", arguments.ding, code], lambda: make_tables(arguments.work, folder, arguments.ding))
    recipes.print_counts(folder)
    recipes.attribution(NOTICE)
    if not arguments.no_prepare:
        recipes.prepare(arguments.tactus, "debian_mt", folder, arguments.out or Path("runs") / folder.name)


if __name__ == "__main__":
    recipes.run_recipe(main)
