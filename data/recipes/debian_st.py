#!/usr/bin/env python3
"""Speech translation, English speech to German text: sentences of Debian's packages, spoken by espeak-ng and flite.

The texts are the rows of the recipe debian_mt (which runs first where its tables are missing): human translations. The
speech is synthetic, of many voices; a second pair of dev and test sets, dev_bass and test_bass, is human speech (recipe
bass_st), because a model that has heard synthetic voices only says little about people.

Which rows are spoken
- 5 to 40 words that can be read aloud: no paths, options, names with underscores and the like; asides in brackets are
  left out on both sides where both sides have as many of them, else the row is; quotation marks are left out.
- At most 100 rows that begin with the same three words ("This package contains").
- In the order of a hash of the id, until about --hours are reached (at 2.5 words a second); up to 500 rows of dev and
  1,000 of test.

Voice, speed and pitch follow from a hash of the id: 308 espeak-ng voices and 4 flite voices. The same program versions
give the same sound and, with the same tactus program, the same corpus, byte for byte. The reference is made by a portable
tactus (-DTACTUS_NATIVE=OFF): another one may differ in the last bit of a feature.

--bundle DIR makes a folder from which a machine without network builds the same corpus: sh DIR/build.sh --out OUT.
"""

import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import bundle
import fetch as recipes
import speak
from fetch import RecipeError, note

WORDS = (5, 40)
WORDS_PER_SECOND = 2.5
SAME_START = 100
EVALUATION_ROWS = {"dev": 500, "test": 1000}
BASS_SPLITS = ("dev", "test")
COLUMNS = ("id", "src_text", "tgt_text", "subset")

QUOTES = re.compile(r'["“”„»«`]|(?<!\w)[\'‘’‚]|[\'‘’](?!\w)')
DASHES = re.compile(r"\s+[-–—]+\s+")
ASIDE = re.compile(r"\s*\([^()]*\)")
PLAIN = re.compile(r"[A-Za-z0-9 ,.;:!?'%&+-]*")
CODE = re.compile(r"(?<!\S)-|--|[a-z][A-Z]|[A-Za-z]\.[A-Za-z]|\d{5}|\+\+|:[^\s]")

NOTICE = """
Texts: the sources of recipe debian_mt, under their own licences; credit as that recipe prints it.
Speech: made by espeak-ng (GPL-3+, rules and formants, no recorded voice) and flite (BSD-like; its voices are from Carnegie
Mellon University: CMU ARCTIC awb, rms, slt, and kal). The programs run as processes; nothing is linked.
dev_bass, test_bass: see the notice of "Beneath a Steel Sky" above.
"""


def speakable(english, german):
    """The pair as it is spoken and translated, or None where it cannot be read aloud."""
    english, german = english.replace("’", "'"), german.replace("’", "'")
    if len(ASIDE.findall(english)) != len(ASIDE.findall(german)):
        return None
    pair = []
    for text in (english, german):
        text = QUOTES.sub("", ASIDE.sub("", text))
        pair.append(recipes.one_line(DASHES.sub(", ", text)))
    english, german = pair
    if not WORDS[0] <= len(english.split()) <= WORDS[1] or not german or not english[0].isalnum():
        return None
    if not PLAIN.fullmatch(english) or CODE.search(english) or re.search(r"[()\[\]{}<>_=|\\/]", german):
        return None
    return english, german


def choose_rows(rows, most_rows=None, hours=None):
    """Rows to speak out of debian_mt's, in the order in which they are taken."""
    chosen, starts, seconds = [], {}, 0.0
    for row in sorted(rows, key=lambda row: (recipes.hash_number("debian_st " + row["id"], 16), row["id"])):
        if most_rows is not None and len(chosen) >= most_rows or hours is not None and seconds >= 3600 * hours:
            break
        pair = speakable(row["src_text"], row["tgt_text"])
        if pair is None:
            continue
        start = " ".join(pair[0].lower().split()[:3])
        starts[start] = starts.get(start, 0) + 1
        if starts[start] <= SAME_START:
            chosen.append({"id": row["id"], "src_text": pair[0], "tgt_text": pair[1], "subset": row.get("subset", "")})
            seconds += len(pair[0].split()) / WORDS_PER_SECOND
    return chosen


def make_texts(work, hours):
    """Tables of what is spoken, in WORK/debian_st/texts."""
    source = work / "debian_mt"
    if not all((source / (split + ".tsv")).is_file() for split in recipes.SPLITS):
        note("the tables of debian_mt are missing: running that recipe")
        script = Path(__file__).resolve().with_name("debian_mt.py")
        code = recipes.run_program([sys.executable, script, "--work", work, "--no-prepare"], stdout=sys.stderr).returncode
        if code != 0:
            raise RecipeError("the recipe debian_mt stopped; its message is above", code if code > 0 else 1)
    texts = work / "debian_st" / "texts"
    for split in recipes.SPLITS:
        rows = choose_rows(recipes.read_table(source / (split + ".tsv")), EVALUATION_ROWS.get(split),
                           hours if split == "train" else None)
        if not rows:
            raise RecipeError(f"{source / (split + '.tsv')} has no row that can be spoken", 3)
        recipes.write_table(texts / (split + ".tsv"), COLUMNS, ([row[column] for column in COLUMNS] for row in rows))
    return texts


def speak_texts(texts, bass, programs, folder, flite_share, jobs):
    """Makes the sound and the manifests of all splits in `folder`."""
    tables = {split: list(recipes.read_table(texts / (split + ".tsv"))) for split in recipes.SPLITS}
    check_disk(folder, sum(len(row["src_text"].split()) for rows in tables.values() for row in rows))
    for split in reversed(recipes.SPLITS):
        rows, silent = speak.speak_table(programs, tables[split], folder / "wav", flite_share, jobs, split)
        if silent:
            note(f"{split}: {len(silent)} rows gave no sound and are left out, {silent[0]} first")
        recipes.write_table(folder / (split + ".tsv"), speak.COLUMNS, rows)
    for split in BASS_SPLITS:
        rows = [(row["id"], os.path.relpath(bass / row["audio"], folder), row["n_frames"], row["src_text"], row["tgt_text"], "bass",
                 row["subset"]) for row in recipes.read_table(bass / (split + ".tsv"))]
        recipes.write_table(folder / (split + "_bass.tsv"), speak.COLUMNS, rows)


def vocabulary(rows):
    """Pieces that so many rows can support and make use of."""
    return next((size for most, size in ((1000, 1000), (4000, 2000), (12000, 4000)) if rows < most), 8000)


def check_disk(folder, words):
    folder.mkdir(parents=True, exist_ok=True)
    needed = words / WORDS_PER_SECOND * speak.BYTES_PER_SECOND
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.rglob("*.wav"))
    if free < 1.2 * needed:
        raise RecipeError(f"{folder}: the sound needs about {needed / 1e9:.1f} GB until it is prepared, {free / 1e9:.1f} GB are "
                          "free; free some, choose another --work, or give fewer --hours")


def build_corpus(arguments, texts, bass, programs, tactus):
    """From texts to a corpus. Sound is removed once the corpus is complete."""
    folder = arguments.work / "debian_st"
    facts = ["debian_st", recipes.digest_of_files(*sorted(texts.glob("*.tsv")), *sorted(bass.glob("*.tsv"))), arguments.flite_share,
             recipes.digest_of_files(*sorted((programs / "bin").iterdir()), speak.__file__)]
    complete = arguments.out / "debian_st.json"
    if not arguments.no_prepare and complete.is_file() and complete.read_text() == repr(facts) and \
            (arguments.out / "corpus.h5").is_file():
        note(f"{arguments.out / 'corpus.h5'} is complete already")
        return
    speak_texts(texts, bass, programs, folder, arguments.flite_share, arguments.jobs)
    recipes.print_counts(folder, ("train", "dev", "test", "dev_bass", "test_bass"))
    if arguments.no_prepare:
        return
    size = vocabulary(sum(1 for _ in recipes.read_table(folder / "train.tsv")))
    recipes.prepare(tactus, "debian_st", folder, arguments.out, [f"target.vocab_size={size}", f"source.vocab_size={size}"])
    recipes.write_file(complete, repr(facts))
    if not arguments.keep_audio:
        shutil.rmtree(folder / "wav")


def main():
    parser = recipes.recipe_arguments("debian_st", __doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=20, help="hours of speech to train on, about (default %(default)s)")
    parser.add_argument("--flite-share", type=float, default=0.3, metavar="SHARE",
                        help="part of the utterances that flite speaks, 0 to 1; the rest is espeak-ng's (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (default: all cores)")
    parser.add_argument("--keep-audio", action="store_true", help="keep the sound files, 160 MB an hour")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="make a folder that builds the corpus without network")
    parser.add_argument("--from-bundle", type=Path, metavar="DIR", help="build from such a folder (as its build.sh does)")
    arguments = parser.parse_args()
    if not 0 <= arguments.flite_share <= 1 or arguments.hours <= 0 or arguments.jobs < 1:
        parser.error("--flite-share must be from 0 to 1, --hours and --jobs positive")
    if not arguments.from_bundle:
        recipes.need_program(arguments)
    if arguments.from_bundle:
        texts, bass, programs, tactus, notice = bundle.unpack(arguments.from_bundle, arguments.work)
        arguments.flite_share = bundle.settings(arguments.from_bundle)["flite_share"]
    else:
        import bass_st
        bass, notice = bass_st.build(arguments.work)
        texts, programs, tactus = make_texts(arguments.work, arguments.hours), speak.stage_programs(arguments.work), arguments.tactus
    recipes.attribution(notice + NOTICE)
    if arguments.bundle:
        bundle.make(arguments.bundle, texts, bass, programs, tactus, notice + NOTICE,
                    {"flite_share": arguments.flite_share, "bass_splits": list(BASS_SPLITS)})
    else:
        build_corpus(arguments, texts, bass, programs, tactus)


if __name__ == "__main__":
    recipes.run_recipe(main)
