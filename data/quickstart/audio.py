"""Speech as 16 kHz mono PCM, from a synthesizer's output to a small Ogg Opus file. Standard library only."""

import array
import functools
import io
import math
import operator
import subprocess
import sys
import wave

SAMPLE_RATE = 16000
BIT_RATE_KBPS = 12
PEAK = 0.6 * 32767

_HALF_WIDTH = 12  # zero crossings of the resampling filter on each side


def read_wav(path):
    """Samples (array of 16-bit integers) and rate of a mono WAV file."""
    with wave.open(path, "rb") as wav:
        if wav.getnchannels() != 1 or wav.getsampwidth() != 2:
            raise ValueError(f"{path}: expected 16-bit mono, got {wav.getsampwidth() * 8}-bit, {wav.getnchannels()} ch")
        samples = array.array("h", wav.readframes(wav.getnframes()))
        if sys.byteorder == "big":
            samples.byteswap()
        return samples, wav.getframerate()


@functools.lru_cache(maxsize=None)
def _polyphase_filters(up, down):
    """One Hann-windowed sinc per output phase, cut off at the lower of the two Nyquist frequencies."""
    cutoff = min(1.0, up / down)
    reach = math.ceil(_HALF_WIDTH / cutoff)
    filters = []
    for phase in range(up):
        taps = []
        for k in range(-reach + 1, reach + 1):
            x = k - phase / up
            window = 0.5 + 0.5 * math.cos(math.pi * x / reach) if abs(x) < reach else 0.0
            sinc = 1.0 if x == 0 else math.sin(math.pi * cutoff * x) / (math.pi * cutoff * x)
            taps.append(cutoff * sinc * window)
        total = sum(taps)
        filters.append([tap / total for tap in taps])
    return reach, filters


def resample(samples, rate):
    """The samples at 16 kHz, as a list of floats."""
    if rate == SAMPLE_RATE:
        return list(map(float, samples))
    divisor = math.gcd(rate, SAMPLE_RATE)
    up, down = SAMPLE_RATE // divisor, rate // divisor
    reach, filters = _polyphase_filters(up, down)
    padded = [0.0] * (reach - 1) + list(samples) + [0.0] * (reach + 1)
    result = []
    for n in range(len(samples) * up // down):
        start, phase = divmod(n * down, up)
        result.append(sum(map(operator.mul, filters[phase], padded[start:start + 2 * reach])))
    return result


def trim(samples, keep_before=0.04, keep_after=0.08, floor=0.02):
    """Cuts the silence at both ends: 10 ms blocks whose RMS is below `floor` times the loudest, less a short margin."""
    block = SAMPLE_RATE // 100
    energies = [sum(x * x for x in samples[i:i + block]) for i in range(0, len(samples), block)]
    threshold = max(energies) * floor * floor
    loud = [i for i, energy in enumerate(energies) if energy > threshold]
    first = max(0, loud[0] * block - round(keep_before * SAMPLE_RATE))
    last = min(len(samples), (loud[-1] + 1) * block + round(keep_after * SAMPLE_RATE))
    return samples[first:last]


def normalise(samples):
    """16-bit samples with the same peak for every utterance."""
    gain = PEAK / max(map(abs, samples))
    return array.array("h", (round(gain * x) for x in samples))


def encode_opus(samples, path, serial):
    """Writes an Ogg Opus file. `serial` is the stream's number, given so that a rebuild yields the same bytes."""
    pcm = array.array("h", samples)
    if sys.byteorder == "big":
        pcm.byteswap()
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(SAMPLE_RATE)
        wav.writeframes(pcm.tobytes())
    subprocess.run(["opusenc", "--quiet", "--speech", "--bitrate", str(BIT_RATE_KBPS), "--vbr", "--comp", "10",
                    "--framesize", "60", "--padding", "0", "--serial", str(serial), "-", path],
                   input=buffer.getvalue(), check=True)


def opus_length(path):
    """Samples at 16 kHz in an Ogg Opus file: last granule position less pre-skip, both counted at 48 kHz (RFC 7845)."""
    with open(path, "rb") as file:
        data = file.read()
    head, last = data.find(b"OpusHead"), data.rfind(b"OggS")
    if head < 0 or last < 0:
        raise ValueError(f"{path}: not an Ogg Opus file")
    pre_skip = int.from_bytes(data[head + 10:head + 12], "little")
    granule = int.from_bytes(data[last + 6:last + 14], "little")
    return (granule - pre_skip) // 3


def count_frames(length):
    """10 ms feature frames of 25 ms in `length` samples."""
    return 1 + (length - 400) // 160
