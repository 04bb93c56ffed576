"""Reading "Beneath a Steel Sky" (CD version 0.0372): the archive, its compression, its texts and its speech.

The game is two files. sky.dnr is an index: a 32-bit count, then 8 bytes for each entry: number (16 bits), place in
sky.dsk (24 bits; the highest one says that it counts in units of 16 bytes), size (22 bits) and two flags: bit 22, the
entry has no header of 22 bytes in front of compressed data; bit 23, it is stored as it is. All numbers are
little-endian except in the RNC header.

Compression is RNC ProPack method 1 (LZ77 with Huffman codes that come anew with each chunk).

Texts of 32 lines each are coded with one binary code for all languages. The code is not in the game's files; it is read
from Debian's ScummVM program when the recipe runs and known by its SHA-256.
"""

import hashlib
import struct

from fetch import RecipeError

SAMPLE_RATE = 11025
HEADER = 22
SPEECH_BASE = 50000
TEXT_BASE = 60600
LANGUAGES = {"en": 0, "de": 1}
# Texts of the game's sections, numbered throughout: the first of each section, and the end.
SECTION_STARTS = (0, 600, 1100, 2430, 3380, 4530, 5080, 5230, 5400)

CODE_NODES = 245
CODE_SHA256 = "a365679a5c3ca7f817826dcca0d85ad4a6b0097e5e482537301f9b7685110e7d"
CODE_START = bytes((1, 20, 0, 2, 7, 0))


class BitReader:
    """Bits of an RNC stream, lowest first, in 16-bit words between which literal bytes lie. The stream's reader is one
    word ahead: literals follow the word that was read last."""

    def __init__(self, data, position):
        self.data, self.position = data, position
        self.bits, self.count = self._word(), 16

    def _word(self):
        return int.from_bytes(self.data[self.position : self.position + 2], "little")

    def take(self, width):
        value = self.bits & ((1 << width) - 1)
        self.bits >>= width
        self.count -= width
        if self.count < 16:
            self.position += 2
            self.bits |= self._word() << self.count
            self.count += 16
        return value

    def literals(self, length):
        start = self.position
        self.position += length
        self.count -= 16
        self.bits = (self.bits & ((1 << self.count) - 1)) | self._word() << self.count
        self.count += 16
        return self.data[start : start + length]


def read_code(reader):
    """A canonical Huffman code: list of (bits as they lie in the stream, their number, symbol), shortest first."""
    lengths = [reader.take(4) for _ in range(reader.take(5))]
    code, value = [], 0
    for length in range(1, max(lengths, default=0) + 1):
        for symbol, of_symbol in enumerate(lengths):
            if of_symbol == length:
                code.append((int(format(value, f"0{length}b")[::-1], 2), length, symbol))
                value += 1
        value <<= 1
    return code


def read_number(reader, code):
    """A symbol says how many bits the number has; numbers below 2 are their own symbol."""
    for bits, length, symbol in code:
        if reader.bits & ((1 << length) - 1) == bits:
            reader.take(length)
            return symbol if symbol < 2 else 1 << (symbol - 1) | reader.take(symbol - 1)
    raise RecipeError("compressed data is damaged: a code that does not exist", 3)


def unpack_rnc(packed):
    """Decompresses an RNC method 1 block and compares its checksum."""
    if packed[:4] != b"RNC\x01":
        raise RecipeError(f"compressed data begins with {packed[:4]!r}, expected RNC method 1", 3)
    size, _, checksum = struct.unpack_from(">IIH", packed, 4)
    reader = BitReader(packed, 18)
    reader.take(2)  # "locked" and "with key", unused here
    out = bytearray()
    while len(out) < size:
        before = len(out)
        literal_code, distance_code, length_code = (read_code(reader) for _ in range(3))
        for remaining in range(reader.take(16), 0, -1):
            literals = read_number(reader, literal_code)
            if literals:
                out += reader.literals(literals)
            if remaining > 1:
                distance = read_number(reader, distance_code) + 1
                length = read_number(reader, length_code) + 2
                if distance > len(out):
                    raise RecipeError("compressed data is damaged: a copy from before its start", 3)
                for _ in range(length):
                    out.append(out[-distance])
        if len(out) == before:
            raise RecipeError("compressed data is damaged: an empty chunk", 3)
    if len(out) != size or crc16(out) != checksum:
        raise RecipeError("compressed data is damaged: size or checksum differ", 3)
    return bytes(out)


def crc16(data):
    """CRC-16 with polynomial 0xA001, start 0."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
        table.append(value)
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc


class GameArchive:
    """The entries of sky.dsk."""

    def __init__(self, folder):
        index = (folder / "sky.dnr").read_bytes()
        count = struct.unpack_from("<I", index)[0]
        if len(index) < 4 + 8 * count:
            raise RecipeError(f"{folder / 'sky.dnr'} is cut short; remove the unpacked package and run the recipe again", 3)
        self.entries = {}
        for at in range(4, 4 + 8 * count, 8):
            number = struct.unpack_from("<H", index, at)[0]
            self.entries[number] = (int.from_bytes(index[at + 2 : at + 5], "little"), int.from_bytes(index[at + 5 : at + 8], "little"))
        self.disk = open(folder / "sky.dsk", "rb")

    def load(self, number):
        """The entry as it is used, decompressed; None where there is none."""
        if number not in self.entries:
            return None
        place, size = self.entries[number]
        self.disk.seek((place & 0x7FFFFF) * (16 if place & 0x800000 else 1))
        data = self.disk.read(size & 0x3FFFFF)
        stored = size & 0x800000
        if stored or not struct.unpack_from("<H", data)[0] & 0x80:
            return data
        body = unpack_rnc(data[HEADER:])
        return body if size & 0x400000 else data[:HEADER] + body

    def speech(self, number):
        """Samples (unsigned 8 bit, 11,025 Hz) of a text's speech, or None."""
        data = self.load(SPEECH_BASE + number)
        if data is None:
            return None
        end = struct.unpack_from("<H", data, 12)[0]
        return data[HEADER:end] if end > HEADER else data[HEADER:]

    def texts(self, section, language):
        return self.load(TEXT_BASE + section + 8 * LANGUAGES[language])


def find_text_code(program):
    """The code of the texts: nodes of (next for bit 0, next for bit 1, character); a leaf has no next ones."""
    at = program.find(CODE_START)
    while at >= 0:
        table = program[at : at + 3 * CODE_NODES]
        if hashlib.sha256(table).hexdigest() == CODE_SHA256:
            return [tuple(table[3 * node : 3 * node + 3]) for node in range(CODE_NODES)]
        at = program.find(CODE_START, at + 1)
    raise RecipeError("the scummvm program does not hold the game's text code in the known form; "
                      "run the recipe on Debian 12 (scummvm 2.7)", 3)


def decode_text(texts, number, code):
    """Bytes of line `number` of a section. The section starts with the offsets of lengths and of texts and the size of
    each block of 32 lines, counted in units of 2 bits; a length byte above 127 counts eight of them."""
    block, line = divmod(number, 32)
    lengths_at, texts_at = struct.unpack_from("<HH", texts)
    start = sum(struct.unpack_from(f"<{block}H", texts, 4)) if block else 0
    for length in texts[lengths_at + 32 * block : lengths_at + number]:
        start += (length & 127) << 3 if length & 128 else length
    position, bit = texts_at + start // 4, 8 - 2 * (start % 4)
    out = bytearray()
    node = 0
    while True:
        if bit == 0:
            position, bit = position + 1, 8
        bit -= 1
        node = code[node][texts[position] >> bit & 1]
        left, right, character = code[node]
        if left == 0 and right == 0:
            if character == 0:
                return bytes(out)
            out.append(character)
            node = 0
            if len(out) > 1000:
                raise RecipeError(f"text {number} does not end", 3)
