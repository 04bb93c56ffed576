#!/usr/bin/env python3
"""Filter banks (80 bins, Povey window, no dither) on one core: Tactus against kaldi-native-fbank, taking turns in one run.

Of kaldi-native-fbank the time of accept_waveform and input_finished counts, which compute all frames; reading them does not. Its
binding copies the samples one by one; that time is measured with a frame longer than the utterance, and given apart. Needs numpy,
kaldi-native-fbank and the program fbank_bench (ninja -C build fbank_bench).
usage: python3 tests/bench/fbank_against_kaldi.py [--bench build/tests/fbank_bench] [--rounds 9] [FILE.wav ...]
Files are 16 kHz, 16 bits, one channel; without any, 20 utterances of noise of 2 to 12 seconds are made.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time
import wave

import kaldi_native_fbank as knf
import numpy as np


def write_noise(folder):
    random = np.random.default_rng(1)
    files = []
    for i in range(20):
        files.append(os.path.join(folder, f"{i}.wav"))
        with wave.open(files[-1], "wb") as f:
            f.setparams((1, 2, 16000, 0, "NONE", ""))
            f.writeframes((random.standard_normal(32000 + 8000 * i) * 3000).clip(-32768, 32767).astype("<i2").tobytes())
    return files


def samples_of(path):
    with wave.open(path) as f:
        assert f.getparams()[:3] == (1, 2, 16000), f"{path}: expected one channel of 16 bits at 16 kHz"
        return np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32)


def kaldi_seconds(waves, frame_ms=25.0):
    """Seconds and frames of one pass."""
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.frame_length_ms = frame_ms
    options.mel_opts.num_bins = 80
    seconds, frames = 0.0, 0
    for samples in waves:
        fbank = knf.OnlineFbank(options)
        start = time.perf_counter()
        fbank.accept_waveform(16000, samples)
        fbank.input_finished()
        seconds += time.perf_counter() - start
        frames += fbank.num_frames_ready
    return seconds, frames


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bench", default="build/tests/fbank_bench")
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("files", nargs="*")
options = parser.parse_args()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # inherited by the program
with tempfile.TemporaryDirectory() as folder:
    files = options.files or write_noise(folder)
    waves = [samples_of(f) for f in files]
    longest = 1000 * max(map(len, waves)) / 16000 + 1000
    ours, whole, copying = [], [], []
    for _ in range(options.rounds):
        frames, nanoseconds = subprocess.run([options.bench, "3", *files], check=True, capture_output=True, text=True).stdout.split()
        ours.append(float(nanoseconds))
        passes = [kaldi_seconds(waves) for _ in range(3)]
        assert passes[0][1] == int(frames), "the numbers of frames differ"
        whole.append(1e9 * min(p[0] for p in passes) / int(frames))
        copying.append(1e9 * min(kaldi_seconds(waves, longest)[0] for _ in range(3)) / int(frames))
a, b, c = map(statistics.median, (ours, whole, copying))
print(f"{len(files)} utterances, {frames} frames, medians of {options.rounds} rounds, ns a frame")
print(f"tactus              {a:8.0f}")
print(f"kaldi-native-fbank  {b:8.0f}   of which copying the samples {c:.0f}, computing {b - c:.0f}")
