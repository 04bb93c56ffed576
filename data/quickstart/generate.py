#!/usr/bin/env python3
"""Builds the quickstart corpus beside this file: {train,dev,test}.tsv and audio/.

Needs the programs espeak-ng, flite and opusenc. Same seed, same texts and speakers; same versions of the programs, same
bytes. See README.md for what the splits mean.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import audio
from grammar import Grammar, held_out_in
from voices import NEW_VOICES, TRAINING_VOICES

HERE = Path(__file__).resolve().parent
SEED = 13
COLUMNS = ("id", "audio", "n_frames", "src_text", "tgt_text", "speaker", "subset")
# Largest share of neighbouring word pairs that a training or dev phrase may have in common with a test phrase.
MAX_OVERLAP = 0.6
SPLITS = ("train", "dev", "test")
# split, subset, utterances, voices, whether the phrases must contain a held-out pair
PLAN = (("test", "compositional", 60, TRAINING_VOICES, True), ("test", "seen_voice", 70, TRAINING_VOICES, False),
        ("test", "new_voice", 70, NEW_VOICES, False), ("dev", "seen_voice", 150, TRAINING_VOICES, False),
        ("train", "seen_voice", 2500, TRAINING_VOICES, False))


@dataclass(frozen=True)
class Utterance:
    id: str
    split: str
    subset: str
    english: str
    german: str
    voice: object
    speed: float
    pitch: object

    @property
    def path(self):
        return f"audio/{self.voice.name}/{self.id}.opus"


def word_pairs(english):
    """The set of neighbouring words, with the two ends of the text."""
    words = ["<s>", *english.split(), "</s>"]
    return frozenset(zip(words, words[1:]))


def overlap(a, b):
    """Dice coefficient of two sets."""
    return 2 * len(a & b) / (len(a) + len(b))


def plan_corpus(seed=SEED):
    """All utterances, every English text once.

    Test texts are drawn first; a later text too close to one of them is drawn again, so that no test phrase is a
    training phrase with one word changed.
    """
    grammar = Grammar(seed)
    rng = random.Random(seed + 1)
    used = set()
    test_pairs = []
    utterances = []
    for split, subset, count, voices, held_out in PLAN:
        settings = []
        made = 0
        while made < count:
            english, german = grammar.draw()
            if english in used or bool(held_out_in(english)) != held_out:
                continue
            pairs = word_pairs(english)
            if split == "test":
                test_pairs.append(pairs)
            elif any(overlap(pairs, other) > MAX_OVERLAP for other in test_pairs):
                continue
            used.add(english)
            if not settings:
                settings = [(voice, *rng.choice(voice.settings())) for voice in voices]
                rng.shuffle(settings)
            number = sum(u.split == split for u in utterances) + 1
            utterances.append(Utterance(f"{split}{number:04d}", split, subset, english, german, *settings.pop()))
            made += 1
    return utterances


def speak(utterance, serial, scratch):
    """Writes one utterance's audio and returns its number of feature frames."""
    wav = os.path.join(scratch, "speech.wav")
    subprocess.run(utterance.voice.command(utterance.english, utterance.speed, utterance.pitch, wav), check=True,
                   stdout=subprocess.DEVNULL)
    samples = audio.normalise(audio.trim(audio.resample(*audio.read_wav(wav))))
    path = HERE / utterance.path
    path.parent.mkdir(parents=True, exist_ok=True)
    audio.encode_opus(samples, str(path), serial)
    if audio.opus_length(path) != len(samples):
        raise ValueError(f"{path}: {audio.opus_length(path)} samples stored, {len(samples)} expected")
    return audio.count_frames(len(samples))


def write_manifest(split, rows):
    with open(HERE / f"{split}.tsv", "w", encoding="utf-8", newline="\n") as file:
        for row in (COLUMNS, *rows):
            file.write("\t".join(map(str, row)) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--texts-only", action="store_true", help="print split, subset and both texts; write nothing")
    arguments = parser.parse_args()
    utterances = plan_corpus()
    if arguments.texts_only:
        for u in utterances:
            print(u.split, u.subset, u.english, u.german, sep="\t")
        return 0
    missing = [program for program in ("espeak-ng", "flite", "opusenc") if shutil.which(program) is None]
    if missing:
        print(f"generate.py: not found: {', '.join(missing)}; install espeak-ng, flite and opus-tools", file=sys.stderr)
        return 1
    shutil.rmtree(HERE / "audio", ignore_errors=True)
    rows = {split: [] for split in SPLITS}
    with tempfile.TemporaryDirectory() as scratch:
        for serial, u in enumerate(utterances, start=1):
            frames = speak(u, serial, scratch)
            rows[u.split].append((u.id, u.path, frames, u.english, u.german, u.voice.name, u.subset))
            if serial % 100 == 0 or serial == len(utterances):
                print(f"\r{serial}/{len(utterances)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for split in SPLITS:
        write_manifest(split, rows[split])
    return 0


if __name__ == "__main__":
    sys.exit(main())
