"""Text recipes on small inputs made here: parsers, filters, splits without leakage. No network."""

import collections
import struct
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "data/recipes"), str(ROOT / "data/recipes/common")]
import ddtp
import debian_mt
import debian_slu
import debian_sum
import fetch as recipes
import translations


RELEASE = "Origin: Debian\nLabel: Debian\nSuite: oldstable\nCodename: bookworm\nArchitectures: all amd64\n"


def catalogue_message_file(pairs, endian):
    originals, translated = [a.encode() for a, _ in pairs], [b.encode() for _, b in pairs]
    head, table = 28, 8 * len(pairs)
    blob, places = b"", []
    for text in originals + translated:
        places.append((len(text), head + 2 * table + len(blob)))
        blob += text + b"\0"
    fields = struct.pack(endian + "7I", 0x950412DE, 0, len(pairs), head, head + table, 0, 0)
    return fields + b"".join(struct.pack(endian + "2I", *place) for place in places) + blob


class TemporaryFolder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


class Descriptions(TemporaryFolder):
    def test_stanzas(self):
        path = self.write("list", "Package: a\nTag: x::y,\n z::w\n\n\nPackage: b\r\nDescription-en: short\n  .\n")
        found = list(ddtp.stanzas(path))
        self.assertEqual(found[0], {"Package": ["a"], "Tag": ["x::y,", " z::w"]})
        self.assertEqual(found[1], {"Package": ["b"], "Description-en": ["short", "  ."]})

    def test_blocks(self):
        lines = [" One paragraph", " goes on.", " .", " - an item", "   with a follower", " 2) another", "  verbatim here", " .", "  code", "  more",
                 " Text."]
        self.assertEqual(ddtp.blocks(lines), [("paragraph", "One paragraph goes on."), ("item", "an item with a follower"),
                                              ("item", "another verbatim here"), ("verbatim", "code more"), ("paragraph", "Text.")])
        self.assertEqual(ddtp.blocks([" .", "", " "]), [])

    def test_sentences(self):
        self.assertEqual(ddtp.sentences("It works, e.g. Here. Does it? Yes! In the 3. Reich z.B. Das."),
                         ["It works, e.g. Here.", "Does it?", "Yes!", "In the 3. Reich z.B. Das."])
        self.assertEqual(ddtp.sentences("no end"), ["no end"])
        self.assertEqual(ddtp.sentences(" "), [])

    def test_pairs_need_blocks_that_correspond(self):
        english = ["tool", " One. Two.", " .", " - item", "  code"]
        german = ["Werkzeug", " Eins. Zwei.", " .", " - Punkt", "  code"]
        self.assertEqual(list(ddtp.pairs(english, german)),
                         [("synopsis", "tool", "Werkzeug"), ("sentence", "One.", "Eins."), ("sentence", "Two.", "Zwei."),
                          ("item", "item code", "Punkt code")])
        other = ["Werkzeug", " Eins, zwei und drei."]
        self.assertEqual(list(ddtp.pairs(english[:2], other))[1:], [("paragraph", "One. Two.", "Eins, zwei und drei.")])
        self.assertEqual(list(ddtp.pairs(english, ["Werkzeug", " A.", " .", " B."])), [("synopsis", "tool", "Werkzeug")])

    def test_faults(self):
        for english, german, reason in (("same", "same", "same"), ("ab", "cd", "short"), ("a short text", "x" * 60, "length_ratio"),
                                        ("see http://a.b now", "siehe http://a.b jetzt", "url"), ("1234 56 a", "1234 56 b", "not_letters"),
                                        ("a fine text", "<trans> text", "untranslated"),
                                        ("this was never really translated", "this was never really übersetzt", "copied"),
                                        ("a fine text", "ein guter Text", None)):
            self.assertEqual(ddtp.fault(english, german), reason, english)

    def lists(self):
        packages, en, de = "", "", ""
        for number in range(400):
            name = f"pack{number}"
            packages += f"Package: {name}\nSource: src{number // 2}\nSection: games\nTag: use::playing, works-with::{{text,audio}}\n\n"
            text = f" This is the long text number {number % 100} of its kind. " + "It has many words in it. " * 5
            en += f"Package: {name}\nDescription-md5: m{number}\nDescription-en: synopsis number {number % 100} here\n{text}\n\n"
            de += (f"Package: {name}\nDescription-md5: m{number}\nDescription-de: Kurztext Nummer {number % 100} hier\n"
                   f" Dies ist der lange Text Nummer {number % 100} seiner Art. " + "Viele Wörter stehen darin. " * 5 + "\n\n")
        self.write("x_bookworm_InRelease", RELEASE)
        self.write("x_bookworm_main_binary-amd64_Packages", packages)
        self.write("x_bookworm_main_i18n_Translation-en", en)
        self.write("x_bookworm_main_i18n_Translation-de", de)
        for other in ("a_bookworm-backports_", "a_bookworm-security_"):
            self.write(other + "InRelease", RELEASE.replace("bookworm", other[2:-1]))
        self.write("b_bookworm_InRelease", RELEASE.replace("Debian", "Vendor"))
        for other in ("a_bookworm-backports_", "a_bookworm-security_", "a.vendor_bookworm_", "b_bookworm_"):
            self.write(other + "main_binary-amd64_Packages", "Package: pack0\nSource: other\n")
            self.write(other + "main_i18n_Translation-en", "Package: pack0\nDescription-md5: m0\nDescription-en: another text\n")
        return ddtp.Catalogue(self.folder)

    def test_no_text_of_dev_or_test_is_trained_on(self):
        catalogue = self.lists()
        rows = {"ddtp": list(debian_mt.ddtp_rows(catalogue, collections.Counter())),
                "other": [(f"page{n % 50}", f"synopsis number {n % 100} here", f"Übersetzung {n}") for n in range(200)]
                         + [(f"page{n % 50}", f"fresh text {n}", f"Kurztext Nummer {n} hier") for n in range(100)]}
        by_split, lost = debian_mt.assign(rows)
        self.assertTrue(all(by_split.values()))
        self.assertGreater(lost["other"], 0)
        for side in (1, 2):
            held_out = {ddtp.normalised(row[side]) for split in ("dev", "test") for row in by_split[split]}
            self.assertFalse(held_out & {ddtp.normalised(row[side]) for row in by_split["train"]})
        groups = [{(row[3], row[4]) for row in by_split[split]} for split in recipes.SPLITS]
        self.assertFalse(groups[0] & groups[1] or groups[0] & groups[2] or groups[1] & groups[2])
        ids = [row[0] for table in by_split.values() for row in table]
        self.assertEqual(len(ids), len(set(ids)))

    def test_summaries(self):
        counts = collections.Counter()
        rows = list(debian_sum.description_rows(self.lists(), "en", counts))
        self.assertEqual(len(rows), 100)
        self.assertEqual(counts["repeated"], 300)
        self.assertTrue(rows[0][1].startswith("This is the long text") and rows[0][2].startswith("synopsis number"))

    def test_labels(self):
        rows = list(debian_slu.rows_of(self.lists()))
        self.assertEqual(len(rows), 100)
        self.assertEqual(rows[0], ("pack0", "synopsis number 0 here", "games", "playing", "audio"))
        self.assertEqual(debian_slu.labels("use::TODO, use::editing, works-with::text, works-with::audio", "works-with"), ["audio", "text"])

    def test_lists_of_other_archives_are_left_alone(self):
        catalogue = self.lists()
        self.assertEqual(catalogue.source["pack0"], "src0")
        self.assertEqual(catalogue.descriptions("en")["m0"][1][0], "synopsis number 0 here")

    def test_lists_without_translations_are_fetched_again(self):
        self.write("y_bookworm_InRelease", RELEASE)
        self.write("y_bookworm_main_binary-amd64_Packages", "")
        stamp = self.write("complete", "")
        with self.assertRaisesRegex(recipes.RecipeError, "Translation-en") as caught:
            ddtp.Catalogue(self.folder)
        self.assertEqual(caught.exception.code, 3)
        self.assertFalse(stamp.exists())

    def test_stanzas_without_a_name_are_passed_over(self):
        self.lists()
        with open(self.folder / "x_bookworm_main_i18n_Translation-en", "a", encoding="utf-8") as file:
            file.write("Description-md5: m\nDescription-en: nobody's\n\nSection: games\n\n")
        self.assertEqual(len(ddtp.Catalogue(self.folder).descriptions("en")), 400)

    def test_a_source_without_texts_is_an_error(self):
        self.lists()
        empty = collections.defaultdict(lambda: self.folder / "nothing")
        with unittest.mock.patch.object(recipes, "fetch", lambda packages, work: empty), \
                unittest.mock.patch.object(recipes, "package_lists", lambda work, languages: self.folder), \
                self.assertRaisesRegex(recipes.RecipeError, "libreoffice: no pair of texts") as caught:
            debian_mt.collect(self.folder, False)
        self.assertEqual(caught.exception.code, 3)


class Translations(TemporaryFolder):
    def test_message_catalogues_of_both_byte_orders(self):
        pairs = [("", "Header"), ("context\x04Hello", "Hallo"), ("one\0many", "eins\0viele"), ("Ä", "ä")]
        for endian in "<>":
            data = catalogue_message_file(pairs, endian)
            self.assertEqual(list(translations.messages(data, "a.mo")), [("Hello", "Hallo"), ("one", "eins"), ("Ä", "ä")])
            with self.assertRaisesRegex(recipes.RecipeError, "^a.mo: .* cut short"):
                list(translations.messages(data[: len(data) - 4], "a.mo"))
        with self.assertRaisesRegex(recipes.RecipeError, "^a.mo: not a compiled"):
            list(translations.messages(b"not one", "a.mo"))

    def test_clean_messages(self):
        self.assertEqual(translations.clean_message("female^<i>Good\n day</i> &amp; \\\"bye\\\""), 'Good day & "bye"')

    def test_wesnoth_paragraphs(self):
        path = self.folder / "translations/de/LC_MESSAGES/wesnoth-x.mo"
        path.parent.mkdir(parents=True)
        path.write_bytes(catalogue_message_file([("One.\n\nTwo.", "Eins.\n\nZwei."), ("A.\n\nB.", "A und B.")], "<"))
        self.assertEqual(list(translations.wesnoth([self.folder])),
                         [("wesnoth-x", "One.", "Eins."), ("wesnoth-x", "Two.", "Zwei."), ("wesnoth-x", "A. B.", "A und B.")])

    def test_blocks_of_a_page(self):
        page = ("<html><head><title>no</title></head><body><h1>Head <b>line</b></h1><script>var x = '<p>';</script><p>One &amp;\n two<p>Three"
                "<pre>code</pre><ul><li>item<ul><li>inner</li></ul></li></ul><table><tr><td>cell</td></tr></table><dd>lost</dd></body></html>")
        self.assertEqual(translations.Blocks(page).blocks, [("h1", "Head line"), ("p", "One & two"), ("p", "Three"), ("li", "item"),
                                                            ("li", "inner"), ("td", "cell")])

    def test_pages_align_by_their_tags(self):
        english = self.write("en.html", "<body><h1>A</h1><p>B</p></body>")
        self.assertEqual(translations.aligned_pages(english, self.write("de.html", "<body><h1>X</h1><p>Y</p></body>")),
                         [("A", "X"), ("B", "Y")])
        self.assertIsNone(translations.aligned_pages(english, self.write("de.html", "<body><h1>X</h1><li>Y</li></body>")))

    def test_dialogue_of_fillets(self):
        self.write("script/level/dialogs_de.lua", 'dialogId("m-1", "font", "Hello \\"you\\"")\ndialogStr("Hallo")\n')
        self.assertEqual(list(translations.fillets(self.folder)), [("level", 'Hello "you"', "Hallo")])
        (self.folder / "script/level/dialogs_de.lua").write_bytes(b"\xff")
        with self.assertRaisesRegex(recipes.RecipeError, "dialogs_de.lua: byte 0 is not UTF-8"):
            list(translations.fillets(self.folder))

    def test_leads_of_help_pages(self):
        lead = "This command opens the dialog for all of the settings."
        body = "".join(f"<p>Sentence number {n} of the page says something about it.</p>" for n in range(9))
        page = f'<body><p>menu</p><main id="DisplayArea"><h1>Title</h1><p>{lead}</p>{body}</main><p>foot</p></body>'
        found = debian_sum.lead_and_rest(debian_sum.Page(page).blocks)
        self.assertEqual(found[0], lead)
        self.assertTrue(found[1].startswith("Sentence number 0") and found[1].endswith("number 8 of the page says something about it."))
        self.assertIsNone(debian_sum.lead_and_rest(debian_sum.Page(page.replace(body, "")).blocks))


if __name__ == "__main__":
    unittest.main()
