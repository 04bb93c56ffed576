"""Sound files of recipes: writing wav, reading lengths, counting feature frames. Standard library only."""

import struct

from fetch import RecipeError

TARGET_RATE = 16000


def frames_of(samples, rate):
    """Feature frames (25 ms every 10 ms, whole frames only) of `samples` samples once they are resampled to 16 kHz."""
    resampled = samples * TARGET_RATE // rate
    return 1 + (resampled - 400) // 160 if resampled >= 400 else 0


def wav_bytes(samples, rate, bytes_per_sample=1):
    """A mono wav file around PCM samples (unsigned when of 8 bits, else signed little-endian)."""
    padding = b"\0" * (len(samples) % 2)
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples) + len(padding), b"WAVE", b"fmt ", 16, 1, 1, rate,
                         rate * bytes_per_sample, bytes_per_sample, 8 * bytes_per_sample, b"data", len(samples))
    return header + samples + padding


def wav_length(path):
    """(samples, rate) of a PCM wav file, from its header."""
    with open(path, "rb") as file:
        riff = file.read(12)
        rate = block = None
        while riff[:4] == b"RIFF" and riff[8:] == b"WAVE":
            header = file.read(8)
            if len(header) < 8:
                break
            name, size = struct.unpack("<4sI", header)
            if name == b"fmt " and size >= 16:
                rate, block = struct.unpack("<I4xH", file.read(size)[4:14])
            elif name == b"data" and rate:
                start = file.tell()
                return min(size, file.seek(0, 2) - start) // block, rate
            else:
                file.seek(size + size % 2, 1)
    raise RecipeError(f"{path} is not a wav file", 3)


def ogg_vorbis_length(path):
    """(samples, rate) of an Ogg Vorbis file: the rate from its first packet, the length from its last page."""
    data = path.read_bytes()
    if data[:4] != b"OggS" or data[28:35] != b"\x01vorbis":
        raise RecipeError(f"{path} is not an Ogg Vorbis file", 3)
    rate = struct.unpack_from("<I", data, 40)[0]
    last = data.rfind(b"OggS\0")
    samples = struct.unpack_from("<q", data, last + 6)[0]
    if samples < 0 or rate == 0:
        raise RecipeError(f"{path} is cut short: its last page says {samples} samples at {rate} Hz", 3)
    return samples, rate
