#!/usr/bin/env python3
"""Speech translation, Dutch or Czech speech to German or English text, from the game "Fish Fillets - Next Generation".

The packages fillets-ng-data-nl and -cs hold the game's dialogues as Ogg Vorbis at 22 kHz, fillets-ng-data their texts in
many languages: about 1,530 Dutch (1.5 h) and 1,680 Czech (1.6 h) utterances of a few speakers. The English sounds are
effects, not speech. Sound files are read where the packages were unpacked.

A level of the game is one conversation and stays in one split, by hash (82 % / 8 % / 10 % of the levels).
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import audio
import fetch as recipes
from fetch import note

COLUMNS = ("id", "audio", "n_frames", "src_text", "tgt_text", "speaker", "subset")
TEST_PART, DEV_PART = 10, 8
STRING = r'"((?:[^"\\]|\\.)*)"'
DIALOGUE = re.compile(rf"dialogId\({STRING},\s*{STRING},\s*{STRING}\)(?:\s*dialogStr\({STRING}\))?")
SPEAKERS = {"font_small": "small fish", "font_big": "big fish"}

NOTICE = """
Speech and texts: "Fish Fillets - Next Generation", Debian packages fillets-ng-data {version} and {package}.
GPL-2, version 2 only. Ivo Danihelka, Pavel Danihelka, ALTAR interactive and translators.
Copyright notice: {docs}
"""


def unquote(text):
    return recipes.one_line(re.sub(r"\\(.)", lambda match: " " if match[1] == "n" else match[1], text))


def read_dialogues(path):
    """{key: (speaker's font, English, this language or None)} of a dialogs_LANGUAGE.lua file."""
    if not path.is_file():
        return {}
    return {match[1]: (match[2], unquote(match[3]), unquote(match[4]) if match[4] else None)
            for match in DIALOGUE.finditer(path.read_text(encoding="utf-8"))}


def texts_of_level(folder, source, target):
    """{key: (speaker, source text, target text)} of the lines that have both."""
    english, spoken = read_dialogues(folder / "dialogs_en.lua"), read_dialogues(folder / f"dialogs_{source}.lua")
    translated = read_dialogues(folder / f"dialogs_{target}.lua")
    lines = {}
    for key, (font, original, text) in spoken.items():
        if target == "en":
            translation = english.get(key, (font, original, None))[1]
        else:
            translation = translated.get(key, (None, None, None))[2]
        if text and translation:
            lines[key] = (SPEAKERS.get(font, font), text, translation)
    return lines


def make_tables(script, sound, folder, source, target, package):
    tables, without_text, silent = {split: [] for split in recipes.SPLITS}, 0, 0
    for level in sorted(path.name for path in script.iterdir() if path.is_dir()):
        lines = texts_of_level(script / level, source, target)
        split = recipes.split_of("fillets:" + level, TEST_PART, DEV_PART)
        for path in sorted((sound / level / source).glob("*.ogg")):
            if path.stem not in lines:
                without_text += 1
                continue
            speaker, text, translation = lines[path.stem]
            frames = audio.frames_of(*audio.ogg_vorbis_length(path))
            if frames == 0:
                silent += 1
                continue
            tables[split].append((f"{level}/{path.stem}", Path("..") / path.relative_to(folder.parent), frames, text, translation,
                                  speaker, level))
    note(f"{without_text} sound files without text or translation left out (effects, most of them), {silent} without samples")
    files = [folder / (split + ".tsv") for split in recipes.SPLITS]
    for path in files:
        recipes.write_table(path, COLUMNS, tables[path.stem])
    return files


def main():
    parser = recipes.recipe_arguments("fillets_st", __doc__.splitlines()[0], variants=True)
    parser.add_argument("--source", choices=("nl", "cs"), default="nl", help="language of the speech (default %(default)s)")
    parser.add_argument("--target", choices=("de", "en"), default="de", help="language of the translation (default %(default)s)")
    arguments = parser.parse_args()
    recipes.need_program(arguments)
    package = "fillets-ng-data-" + arguments.source
    roots = recipes.fetch(("fillets-ng-data", package), arguments.work)
    folder = arguments.work / f"fillets_st_{arguments.source}_{arguments.target}"
    script, sound = (root / "usr/share/games/fillets-ng" / part
                     for root, part in ((roots["fillets-ng-data"], "script"), (roots[package], "sound")))
    version = recipes.package_version("fillets-ng-data", arguments.work)
    facts = [version, recipes.package_version(package, arguments.work), recipes.digest_of_files(__file__, audio.__file__)]
    recipes.make_once(folder, facts, lambda: make_tables(script, sound, folder, arguments.source, arguments.target, package))
    recipes.print_counts(folder)
    docs = roots["fillets-ng-data"] / "usr/share/doc/fillets-ng-data/copyright"
    recipes.attribution(NOTICE.format(version=version, package=package, docs=docs))
    if not arguments.no_prepare:
        recipes.prepare(arguments.tactus, "fillets_st", folder, arguments.out or Path("runs") / folder.name)


if __name__ == "__main__":
    recipes.run_recipe(main)
