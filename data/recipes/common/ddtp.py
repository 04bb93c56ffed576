"""Debian's package descriptions: control stanzas, blocks and sentences of long descriptions, and which ones go together.

A long description (Debian policy 5.6.13) has lines that begin with one blank, which are filled paragraphs, lines with more
blanks, which stand as they are, and " ." for an empty line. In practice lists are written with bullets.
"""

import glob
import re
import unicodedata
from pathlib import Path

import fetch as recipes

BULLET = re.compile(r"\s*(?:[-*+o•·–]|\d+[.)]|\([a-z0-9]\))\s+")
URL = re.compile(r"https?://|www\.|<[^>]*@|\.(?:org|com|net|de)/")
SENTENCE_END = re.compile(r"""[.!?][")\]»“”]*\s+(?=["(„»“]?[A-ZÄÖÜ0-9])""")
ABBREVIATIONS = frozenset("""e.g i.e etc vs cf z.b d.h bzw usw evtl ca ggf u.a o.ä inkl resp dr mr mrs st no nr vol fig al inc ltd
co approx incl s.o s.u sog engl max min mio bspw""".split())
TEST, DEV, OUT_OF = 25, 25, 1000


def stanzas(path):
    """Yields each stanza of a control file as {field: [lines]}; continuation lines keep their leading blanks."""
    fields, name = {}, None
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            line = line.rstrip("\r\n")
            if not line:
                if fields:
                    yield fields
                fields, name = {}, None
            elif line[0] in " \t":
                if name is not None:
                    fields[name].append(line)
            else:
                name, _, value = line.partition(":")
                fields[name] = [value.strip()]
    if fields:
        yield fields


def _is_bookworm(release):
    """Whether a Release file is that of Debian 12 itself, not of its updates, backports or security archive."""
    with open(release, encoding="utf-8", errors="replace") as file:
        head = file.read(4096)
    return all(re.search(rf"^{field}$", head, re.M) for field in ("Origin: Debian", "Codename: bookworm"))


class Catalogue:
    """Packages and descriptions of Debian 12's main archive, from the lists that apt fetched. Lists of other sources
    (backports, updates, other vendors) may lie beside them."""

    advice = "run the recipe on Debian 12 with its main archive among the sources of apt, and again if the network failed"

    def __init__(self, lists):
        archives = [path.name[: -len(path.name.split("_")[-1])] for path in sorted(Path(lists).glob("*Release")) if _is_bookworm(path)]

        def only(pattern):
            found = [path for archive in archives for path in sorted(Path(lists).glob(glob.escape(archive) + pattern))]
            if not found:
                recipes.forget_lists(lists)
                raise recipes.RecipeError(f"{lists} holds no {pattern} of Debian 12; {self.advice}", 3)
            return found[0]

        self.files = only("main_binary-*_Packages"), only("main_i18n_Translation-en"), only("main_i18n_Translation-de")
        self.source, self.section, self.tags = {}, {}, {}
        for stanza in stanzas(self.files[0]):
            package = stanza.get("Package", [""])[0]
            self.source[package] = stanza.get("Source", [package])[0].split(" ")[0]
            self.section[package] = stanza.get("Section", [""])[0]
            self.tags[package] = " ".join(line.strip() for line in stanza.get("Tag", []))

    def descriptions(self, language):
        """{digest of the English text: (package, lines)}; the first line is the synopsis."""
        path, field = self.files[1 if language == "en" else 2], "Description-" + language
        found = {}
        for stanza in stanzas(path):
            if field in stanza and "Description-md5" in stanza and "Package" in stanza:
                found.setdefault(stanza["Description-md5"][0], (stanza["Package"][0], stanza[field]))
        return found

    def split(self, package):
        """All binary packages of one source package are in one split."""
        return recipes.split_of(self.source.get(package, package), TEST, DEV, OUT_OF)

    def held_out_first(self, keys, package_of):
        """`keys` with test before dev before train, so that a text that repeats stays where it must not be trained on."""
        rank = {"test": 0, "dev": 1, "train": 2}
        return sorted(keys, key=lambda key: rank[self.split(package_of(key))])


def blocks(lines):
    """Continuation lines as [(kind, text)]; kind is paragraph, item or verbatim."""
    found, kind, words = [], None, []

    def close():
        nonlocal kind, words
        if words:
            found.append((kind, recipes.one_line(" ".join(words))))
        kind, words = None, []

    for line in lines:
        body = line[1:]
        if body.strip() in ("", "."):
            close()
            continue
        bullet = BULLET.match(body)
        if bullet:
            close()
            kind, body = "item", body[bullet.end():]
        elif body[0] in " \t":
            if kind not in ("item", "verbatim"):
                close()
                kind = "verbatim"
        elif kind != "paragraph":
            close()
            kind = "paragraph"
        words.append(body.strip())
    close()
    return found


def sentences(text):
    """Splits at full stops, exclamation and question marks that a capital or a digit follows, abbreviations and numbers apart."""
    found, start = [], 0
    for end in SENTENCE_END.finditer(text):
        words = text[start : end.start()].split()
        last = words[-1].lower().lstrip('("„') if words else ""
        if last in ABBREVIATIONS or re.fullmatch(r"[a-z]", last) or last.isdigit() and text[end.start()] == ".":
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    rest = text[start:].strip()
    return found + [rest] if rest else found


def normalised(text):
    """Letters and digits in lower case with single blanks: texts that differ in nothing else are the same text."""
    return re.sub(r"[^a-z0-9äöüß]+", " ", unicodedata.normalize("NFKC", text).lower()).strip()


def fault(english, german):
    """Why a pair is no use for translation, or None."""
    if english == german:
        return "same"
    if len(english) < 3 or len(german) < 3:
        return "short"
    if not 0.55 <= (len(german) + 5) / (len(english) + 5) <= 2.2:
        return "length_ratio"
    if URL.search(english) or URL.search(german):
        return "url"
    if sum(character.isalpha() or character == " " for character in english) < 0.75 * len(english):
        return "not_letters"
    if "<trans>" in german or "\ufffd" in german:
        return "untranslated"
    words, translated = set(normalised(english).split()), set(normalised(german).split())
    if len(words) >= 5 and len(words & translated) > 0.7 * len(words):
        return "copied"
    return None


def pairs(english, german):
    """Yields (kind, English, German) of two descriptions (lists of lines): the synopsis, then sentences or paragraphs of
    blocks that correspond one to one. Descriptions whose blocks do not correspond give their synopsis alone."""
    yield "synopsis", english[0], german[0]
    left, right = blocks(english[1:]), blocks(german[1:])
    if [kind for kind, _ in left] != [kind for kind, _ in right]:
        # Lists may be laid out otherwise in the translation; the paragraphs may still correspond.
        left, right = ([block for block in side if block[0] == "paragraph"] for side in (left, right))
        if len(left) != len(right):
            return
    for (kind, source), (_, target) in zip(left, right):
        if kind == "verbatim":
            continue
        source_sentences, target_sentences = sentences(source), sentences(target)
        if len(source_sentences) == len(target_sentences):
            for pair in zip(source_sentences, target_sentences):
                yield ("sentence" if kind == "paragraph" else "item"), *pair
        else:
            yield "paragraph", source, target
