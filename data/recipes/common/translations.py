"""Pairs of English and German text in other packages: message catalogues, HTML pages of equal structure, game scripts.

Each function yields (document, English, German); a document is what must not be split between training and test.
"""

import html
import html.parser
import re
import struct

import fetch as recipes

STRING = r'"((?:[^"\\]|\\.)*)"'
DIALOGUE = re.compile(rf"dialogId\({STRING},\s*{STRING},\s*{STRING}\)\s*dialogStr\({STRING}\)")


def is_usable(english, german):
    """Translated at all, and of a plausible length."""
    return bool(german) and english != german and len(english) >= 3 and \
        0.4 < (len(german) + 5) / (len(english) + 5) < 2.6


def damaged(path, reason):
    return recipes.RecipeError(f"{path}: {reason}; remove the folder of its package and run again", 3)


def read_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, f"byte {error.start} is not UTF-8") from None


def messages(data, path):
    """(original, translation) of a compiled message catalogue (GNU gettext, "The format of GNU MO files"); of plural
    forms the first."""
    magic = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(data[:4])
    if magic is None:
        raise damaged(path, "not a compiled message catalogue")
    try:
        count, originals, translations = struct.unpack_from(magic + "3I", data, 8)
        for index in range(count):
            texts = []
            for table in (originals, translations):
                length, offset = struct.unpack_from(magic + "2I", data, table + 8 * index)
                if offset + length > len(data):
                    raise struct.error
                texts.append(data[offset : offset + length].decode("utf-8", "replace"))
            original, translation = texts
            if original:
                yield original.split("\x04")[-1].split("\0")[0], translation.split("\0")[0]
    except struct.error:
        raise damaged(path, "a message catalogue that was cut short") from None


def clean_message(text):
    """Plain text of a message: no markup, no escapes, no "context^" in front."""
    text = re.sub(r"<[^>]{1,80}>", "", text)
    text = text.replace("\\n", " ").replace('\\"', '"')
    text = re.sub(r"^[^\s^]{0,30}\^", "", text)
    return recipes.one_line(html.unescape(text))


def wesnoth(roots):
    """Story and dialogue of the game Battle for Wesnoth; a document is a campaign."""
    catalogues = sorted(path for root in roots for path in root.rglob("de/LC_MESSAGES/*.mo"))
    for path in catalogues:
        for original, translation in messages(path.read_bytes(), path):
            parts = original.split("\n\n"), translation.split("\n\n")
            if len(parts[0]) != len(parts[1]):
                parts = [original], [translation]
            for english, german in zip(*parts):
                yield path.stem, clean_message(english), clean_message(german)


def fillets(root):
    """Dialogue of the game Fish Fillets; a document is a level."""
    for path in sorted(root.rglob("script/*/dialogs_de.lua")):
        for match in DIALOGUE.finditer(read_text(path)):
            yield path.parent.name, clean_message(match[3]), clean_message(match[4])


def dictionary(root):
    """Words and phrases of the Ding dictionary; a document is an entry."""
    path = root / "usr/share/trans/de-en"
    for number, line in enumerate(read_text(path).split("\n")):
        if line.startswith("#") or "::" not in line:
            continue
        german, english = line.split("::")[:2]
        for left, right in zip(english.split("|"), german.split("|")):
            yield str(number), _headword(left), _headword(right)


def _headword(text):
    return recipes.one_line(re.sub(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|<[^>]*>", "", text.split(";")[0]))


class Blocks(html.parser.HTMLParser):
    """Text blocks of a page's body in order, [(tag, text)]."""

    OPENING = frozenset("p h1 h2 h3 h4 h5 h6 li dt td th".split())
    ENDING = OPENING | frozenset("dd ul ol div pre table tr dl".split())
    CLOSING = OPENING | frozenset(["dd", "div"])
    SKIPPED = frozenset("script style pre".split())

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.blocks, self._tag, self._words, self._skipped, self._body = [], None, [], 0, False
        self.feed(text)
        self.close()
        self._end()

    def handle_starttag(self, tag, attributes):
        self._body |= tag == "body"
        if tag in self.SKIPPED:
            self._skipped += 1
        if tag in self.ENDING:
            self._end()
        if tag in self.OPENING and self._body and not self._skipped:
            self._tag = tag

    def handle_endtag(self, tag):
        if tag in self.SKIPPED:
            self._skipped = max(self._skipped - 1, 0)
        if tag in self.CLOSING:
            self._end()

    def handle_data(self, data):
        if self._tag is not None and not self._skipped:
            self._words.append(data)

    def _end(self):
        text = recipes.one_line("".join(self._words))
        if self._tag is not None and text:
            self.blocks.append((self._tag, text))
        self._tag, self._words = None, []


def read_page(path):
    return path.read_text(encoding="utf-8", errors="replace")


def aligned_pages(english, german):
    """Blocks of two pages that have the same sequence of tags, as pairs; None where they do not."""
    left, right = Blocks(read_page(english)).blocks, Blocks(read_page(german)).blocks
    if [tag for tag, _ in left] != [tag for tag, _ in right]:
        return None
    return [(source, target) for (_, source), (_, target) in zip(left, right)]


def pages(name, german_root, german_files, english_of):
    """Pairs of pages; `english_of` names the English page of a German one. A document is a page."""
    misaligned = 0
    for german in german_files:
        english = english_of(german)
        if not english.is_file():
            continue
        aligned = aligned_pages(english, german)
        if aligned is None:
            misaligned += 1
            continue
        for source, target in aligned:
            yield str(german.relative_to(german_root)), source, target
    if misaligned:
        recipes.note(f"{name}: {misaligned} pages whose structure differs were left out")


DEBUG_TEXT = re.compile(r"(?:Help content debug info|This page is|Title is)")


def libreoffice(english_root, german_root):
    base = "usr/share/libreoffice/help"
    german = german_root / base / "de/text"
    english = english_root / base / "en-US/text"
    for page, source, target in pages("libreoffice", german, sorted(german.rglob("*.html")), lambda path: english / path.relative_to(german)):
        if not DEBUG_TEXT.match(source):
            yield page, source, target


def debian_reference(english_root, german_root):
    base = "usr/share/debian-reference"
    german, english = german_root / base, english_root / base
    yield from pages("debian_reference", german, sorted(german.glob("*.de.html")),
                     lambda path: english / (path.name[: -len(".de.html")] + ".en.html"))


def installation_guide(root):
    base = root / "usr/share/doc/installation-guide-amd64"
    yield from pages("installation_guide", base / "de", sorted((base / "de").glob("*.html")), lambda path: base / "en" / path.name)
