#!/usr/bin/env python3
"""Checks the quickstart corpus beside this file; prints a summary, exits 1 and names what is wrong if anything is.

It trusts no column further than it can be recomputed: held-out pairs are searched in the texts, lengths are read from
the audio files.
"""

import sys
from collections import Counter
from pathlib import Path

import audio
from generate import COLUMNS, MAX_OVERLAP, PLAN, SPLITS, overlap, word_pairs
from grammar import HELD_OUT, held_out_in
from voices import NEW_VOICES, TRAINING_VOICES

HERE = Path(__file__).resolve().parent
MAX_AUDIO_BYTES = 9_500_000
MIN_WORD_COUNT = 5
SECONDS = (0.4, 4.0)  # shortest and longest utterance
MEAN_SECONDS = (1.0, 2.0)


def read_manifest(split):
    """Rows of a manifest as dictionaries; the path and line are in every message about its form."""
    path = HERE / f"{split}.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    if tuple(lines[0].split("\t")) != COLUMNS:
        raise ValueError(f"{path}:1: expected the columns {' '.join(COLUMNS)}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) != len(COLUMNS) or not all(cells):
            raise ValueError(f"{path}:{number}: expected {len(COLUMNS)} non-empty fields")
        rows.append(dict(zip(COLUMNS, cells)))
    return rows


def words(text):
    return text.replace(",", "").split()


def check_sizes(splits):
    for split in SPLITS:
        expected = {subset: count for name, subset, count, _, _ in PLAN if name == split}
        found = dict(Counter(row["subset"] for row in splits[split]))
        if found != expected:
            yield f"{split}: {found} utterances, expected {expected}"


def check_texts(splits):
    """No text twice anywhere, and no training or dev text close to a test text."""
    seen = {}
    for split in SPLITS:
        for row in splits[split]:
            for column in ("id", "src_text"):
                first = seen.setdefault(row[column], row["id"])
                if column == "src_text" and first != row["id"]:
                    yield f"{row['id']}: the text of {first} again: {row['src_text']}"
            if row["src_text"] != row["src_text"].lower():
                yield f"{row['id']}: source text is not lower case"
    test = [(row["id"], word_pairs(row["src_text"])) for row in splits["test"]]
    for row in splits["train"] + splits["dev"]:
        pairs = word_pairs(row["src_text"])
        for other, other_pairs in test:
            if overlap(pairs, other_pairs) > MAX_OVERLAP:
                yield f"{row['id']}: more than {MAX_OVERLAP} of its word pairs in common with {other}"


def check_voices(splits):
    known = {voice.name for voice in TRAINING_VOICES}
    new = {voice.name for voice in NEW_VOICES}
    for row in splits["train"] + splits["dev"] + splits["test"]:
        if row["speaker"] not in (new if row["subset"] == "new_voice" else known):
            yield f"{row['id']}: speaker {row['speaker']} in subset {row['subset']}"
    spoken = Counter(row["speaker"] for row in splits["train"])
    for voice in sorted(known):
        if spoken[voice] < 100:
            yield f"train: speaker {voice} has only {spoken[voice]} utterances"


def check_held_out(splits):
    """Pairs meet in compositional phrases only, and both of their pieces are common in training by themselves."""
    train_words = Counter(word for row in splits["train"] for word in words(row["src_text"]))
    for split in SPLITS:
        for row in splits[split]:
            pairs = held_out_in(row["src_text"])
            if bool(pairs) != (row["subset"] == "compositional"):
                found = [(pair.left, pair.right) for pair in pairs]
                yield f"{row['id']}: subset {row['subset']}, but held-out pairs: {found}"
            for pair in pairs:
                for word in f"{pair.left} {pair.right}".split():
                    if train_words[word] < MIN_WORD_COUNT:
                        yield f"{row['id']}: {word} occurs only {train_words[word]} times in training"


def check_vocabulary(splits):
    for column in ("src_text", "tgt_text"):
        counts = Counter(word for row in splits["train"] for word in words(row[column]))
        for split in ("dev", "test"):
            for word in sorted({word for row in splits[split] for word in words(row[column])}):
                if counts[word] < MIN_WORD_COUNT:
                    yield f"{split}: {word} occurs only {counts[word]} times in training"


def check_audio(splits):
    listed = set()
    for split in SPLITS:
        for row in splits[split]:
            path = HERE / row["audio"]
            listed.add(path)
            if not path.is_file():
                yield f"{row['id']}: {row['audio']} is missing"
                continue
            length = audio.opus_length(path)
            if audio.count_frames(length) != int(row["n_frames"]):
                yield f"{row['id']}: n_frames is {row['n_frames']}, the audio has {audio.count_frames(length)}"
            if not SECONDS[0] <= length / audio.SAMPLE_RATE <= SECONDS[1]:
                yield f"{row['id']}: lasts {length / audio.SAMPLE_RATE:.2f} s"
        mean = sum(int(row["n_frames"]) for row in splits[split]) / 100 / len(splits[split])
        if not MEAN_SECONDS[0] <= mean <= MEAN_SECONDS[1]:
            yield f"{split}: {mean:.2f} s on average"
    files = {path for path in (HERE / "audio").rglob("*") if path.is_file()}
    for path in sorted(files - listed):
        yield f"{path.relative_to(HERE)}: in no manifest"
    total = sum(path.stat().st_size for path in files)
    if total > MAX_AUDIO_BYTES:
        yield f"audio: {total} bytes, at most {MAX_AUDIO_BYTES} wanted"


def summarise(splits):
    for split in SPLITS:
        rows = splits[split]
        seconds = sum(int(row["n_frames"]) for row in rows) / 100
        english, german = ({word for row in rows for word in words(row[c])} for c in ("src_text", "tgt_text"))
        speakers = len({row["speaker"] for row in rows})
        print(f"{split}: {len(rows)} utterances, {seconds:.0f} s ({seconds / len(rows):.2f} s each), "
              f"{speakers} speakers, {len(english)} English and {len(german)} German words")
    total = sum(path.stat().st_size for path in (HERE / "audio").rglob("*.opus"))
    print(f"audio: {total / 1e6:.2f} MB; {len(HELD_OUT)} held-out pairs")


def main():
    try:
        splits = {split: read_manifest(split) for split in SPLITS}
    except (OSError, ValueError) as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 1
    summarise(splits)
    checks = (check_sizes, check_texts, check_voices, check_held_out, check_vocabulary, check_audio)
    problems = [problem for check in checks for problem in check(splits)]
    for problem in problems:
        print(f"check.py: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
