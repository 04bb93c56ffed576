#!/usr/bin/env python3
"""Speech translation, English speech to German text, from the adventure game "Beneath a Steel Sky" (1994).

The CD version in Debian's package beneath-a-steel-sky has acted English speech for nearly every line, and the official
German text of it: about 3,470 utterances, 1.9 hours, 8 bit at 11,025 Hz, mean 2.0 s. The code in which the texts are
written is read from the package scummvm when the recipe runs.

What becomes of the data
- Speech is written as it is, to wav files; preparation resamples it to 16 kHz.
- The game's own code page becomes Unicode. The old German spelling stays.
- Words in CAPITALS mark stress, which no text can be scored for. By default they get the form that the same word has
  elsewhere in the texts of its language; where there is none, English becomes lower case, and German is spelt as in the
  word list of package wogerman (which also restores the ß that capitals lack), with one capital if it is not there:
  most such words are compound nouns. Abbreviations and names stay. `--capitals keep` leaves all as it is.
- Lines of less than 0.4 s or more than 20 s, and of less than 3 or more than 30 characters a second are left out.
- Lines follow one another in conversations: blocks of 16 text numbers stay in one split (86 % / 6 % / 8 %), by hash.
"""

import collections
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import audio
import fetch as recipes
import sky_game
from fetch import note

PACKAGES = ("beneath-a-steel-sky", "scummvm", "wogerman")
COLUMNS = ("id", "audio", "n_frames", "src_text", "tgt_text", "subset")
SECONDS = (0.4, 20)
CHARACTERS_PER_SECOND = (3, 30)

GERMAN_CODE_PAGE = {"#": "ü", "(": "ß", ")": "ö", "*": "ä", "}": "Ü", "~": "Ä", "\x7f": "Ö", "`": '"'}
ENGLISH_CODE_PAGE = {"`": "'"}  # an opening quotation mark; the closing one is an apostrophe

ABBREVIATIONS = frozenset("LINC LINCS ID TV WD SOS VHS ASCII HQ OK".split())
NAMES = frozenset("""JOHN NORA KANSAS GODDARD LOVECRAFT ULTAR COLE STEFAN STEVEN STEPHEN LAWRENCE JAMES BARRY WALTER NOBBY ONAN
MUTT BULWARK RADICHEM SANICOOL WILLY OVERMANN REICH""".split())
WORD = re.compile(r"[^\W\d_]+")

NOTICE = """
Speech and texts: "Beneath a Steel Sky", (C) Revolution Software Ltd, Debian package beneath-a-steel-sky {version}.
Free to distribute on any medium if readme and all copyright notices stay intact; a modified version must be marked as
such prominently; no fee may be taken for the game itself. The tables and wav files made here are such a modified
version. Readme and copyright notice: {docs}
Text code: read from Debian's scummvm program (GPL-3+); nothing of ScummVM is copied. Spelling of German words: wogerman (GPL-2+).
"""


def decode(raw, code_page):
    return recipes.one_line("".join(code_page.get(character, character) for character in raw.decode("latin-1")))


class CapitalSoftener:
    """Gives words in capitals the form that is most frequent elsewhere in `texts` (inside of sentences before their start),
    or else the form in `word_list`; unknown words get one capital or none."""

    def __init__(self, texts, word_list=(), capitalise_unknown=False):
        self.capitalise_unknown = capitalise_unknown
        inside, anywhere = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for text in texts:
            for match in WORD.finditer(text):
                word = match[0]
                if not (word.isupper() and len(word) > 1):
                    anywhere[word.casefold()][word] += 1
                    if not starts_sentence(text, match.start()):
                        inside[word.casefold()][word] += 1
        self.forms = {}
        for word in word_list:
            known = self.forms.get(word.casefold())
            # Of two words that differ in their first letter alone, the one that is no noun.
            if known is None or known[0].isupper() and word[0].islower():
                self.forms[word.casefold()] = word
        # Ties go to the form that comes first in the alphabet, so that nothing depends on the order of the texts.
        for counts in (anywhere, inside):
            for word, of_word in counts.items():
                self.forms[word] = min(of_word, key=lambda form: (-of_word[form], form))

    def __call__(self, text):
        return WORD.sub(lambda match: self._soften(text, match), text)

    def _soften(self, text, match):
        word, before = match[0], text[: match.start()]
        if not word.isupper() or word in ABBREVIATIONS:
            return word
        if len(word) == 1:  # the S of IT'S
            return word.lower() if re.search(r"[^\W\d_]{2}'$", before) and before[:-1][-2:].isupper() else word
        form = self.forms.get(word.casefold())
        if form is None:
            form = word.capitalize() if word in NAMES or self.capitalise_unknown else word.lower()
        return form[0].upper() + form[1:] if starts_sentence(text, match.start()) else form


def starts_sentence(text, position):
    """Nothing, or the end of a sentence, lies before; an ellipsis ends none."""
    before = text[:position].rstrip("\"'(- ")
    return not before or (before[-1] in ".!?" and not before.endswith(".."))


def is_usable(samples, english, german):
    seconds = samples / sky_game.SAMPLE_RATE
    if not english or not german or not SECONDS[0] <= seconds <= SECONDS[1]:
        return False
    return CHARACTERS_PER_SECOND[0] <= len(english) / seconds <= CHARACTERS_PER_SECOND[1]


def split_of_line(section, number):
    return recipes.split_of(f"s{section}_{number // 16}", test=8, dev=6, digits=6)


def extract(roots):
    """Yields (section, number in the section, samples, English, German) of every spoken line."""
    index = next(roots["beneath-a-steel-sky"].rglob("sky.dnr"), None)
    program = next(roots["scummvm"].rglob("games/scummvm"), None)
    if index is None or program is None:
        raise recipes.RecipeError("the packages do not hold sky.dnr and the scummvm program; run the recipe on Debian 12", 3)
    archive = sky_game.GameArchive(index.parent)
    code = sky_game.find_text_code(program.read_bytes())
    starts = sky_game.SECTION_STARTS
    for section, (first, end) in enumerate(zip(starts, starts[1:])):
        texts = {language: archive.texts(section, language) for language in sky_game.LANGUAGES}
        for number in range(end - first):
            samples = archive.speech(first + number)
            if samples is not None and all(texts.values()):
                english, german = (sky_game.decode_text(texts[language], number, code) for language in ("en", "de"))
                yield section, number, samples, decode(english, ENGLISH_CODE_PAGE), decode(german, GERMAN_CODE_PAGE)


def make_tables(roots, folder, capitals):
    """Writes the wav files and tables; returns their paths."""
    note("reading speech and texts of the game")
    lines = list(extract(roots))
    usable = [line for line in lines if is_usable(len(line[2]), line[3], line[4])]
    note(f"{len(lines)} spoken lines, {len(usable)} usable")
    soften = (lambda text: text, lambda text: text)
    if capitals == "soften":
        words = next(roots["wogerman"].rglob("dict/ogerman")).read_text(encoding="utf-8").split()
        soften = CapitalSoftener([line[3] for line in usable]), CapitalSoftener([line[4] for line in usable], words, True)
    tables, files = {split: [] for split in recipes.SPLITS}, []
    for section, number, samples, english, german in usable:
        name = f"s{section}_{number:04d}"
        files.append(folder / "wav" / (name + ".wav"))
        recipes.write_file(files[-1], audio.wav_bytes(samples, sky_game.SAMPLE_RATE))
        tables[split_of_line(section, number)].append(
            (name, f"wav/{name}.wav", audio.frames_of(len(samples), sky_game.SAMPLE_RATE), soften[0](english), soften[1](german),
             f"section{section}"))
    for split, rows in tables.items():
        files.append(folder / (split + ".tsv"))
        recipes.write_table(files[-1], COLUMNS, rows)
    return files


def build(work, capitals="soften"):
    """Fetches and makes the tables; returns (folder, notice)."""
    roots = recipes.fetch(PACKAGES, work)
    folder = Path(work) / ("bass_st" if capitals == "soften" else "bass_st_" + capitals)
    version = recipes.package_version(PACKAGES[0], work)
    code = recipes.digest_of_files(__file__, sky_game.__file__, audio.__file__)
    recipes.make_once(folder, [version, capitals, code], lambda: make_tables(roots, folder, capitals))
    docs = next(roots[PACKAGES[0]].rglob("doc/" + PACKAGES[0]))
    return folder, NOTICE.format(version=version, docs=docs)


def main():
    parser = recipes.recipe_arguments("bass_st", __doc__.splitlines()[0])
    parser.add_argument("--capitals", choices=("soften", "keep"), default="soften",
                        help="what becomes of words in capitals, which mark stress (default %(default)s)")
    arguments = parser.parse_args()
    recipes.need_program(arguments)
    folder, notice = build(arguments.work, arguments.capitals)
    recipes.print_counts(folder)
    recipes.attribution(notice)
    if not arguments.no_prepare:
        recipes.prepare(arguments.tactus, "bass_st", folder, arguments.out)


if __name__ == "__main__":
    recipes.run_recipe(main)
