"""Speech recipes on small inputs made here: texts, voices, splits, tables, bundles. No network."""

import json
import os
import sys
import tempfile
import unittest
import wave
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "data/recipes"), str(ROOT / "data/recipes/common")]
import audio
import bass_st
import bundle
import debian_st
import fetch as recipes
import speak


class TemporaryFolder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()


class Tables(TemporaryFolder):
    def test_a_second_write_changes_nothing(self):
        path = self.folder / "sub/train.tsv"
        rows = [("a", "one\ttext\n here"), ("b", "two\0")]
        self.assertTrue(recipes.write_table(path, ("id", "src_text"), rows))
        before = path.stat()
        self.assertFalse(recipes.write_table(path, ("id", "src_text"), rows))
        self.assertEqual((before.st_mtime_ns, before.st_ino), (path.stat().st_mtime_ns, path.stat().st_ino))
        self.assertEqual(list(recipes.read_table(path)), [{"id": "a", "src_text": "one text here"}, {"id": "b", "src_text": "two"}])
        self.assertEqual(os.listdir(path.parent), ["train.tsv"])
        with self.assertRaises(recipes.RecipeError):
            recipes.write_table(path, ("id", "src_text"), [("a",)])

    def test_a_damaged_table_is_named_with_its_line(self):
        path = self.folder / "t.tsv"
        path.write_text("id\ttext\na\tx\nb\n")
        with self.assertRaisesRegex(recipes.RecipeError, r"t\.tsv:3") as caught:
            list(recipes.read_table(path))
        self.assertEqual(caught.exception.code, 3)

    def test_work_is_done_once(self):
        calls = []

        def make():
            calls.append(1)
            recipes.write_file(self.folder / "made", "content")
            return [self.folder / "made"]

        for facts, expected in ((["a", 1], 1), (["a", 1], 1), (["a", 2], 2)):
            recipes.make_once(self.folder, facts, make)
            self.assertEqual(len(calls), expected)
        (self.folder / "made").write_text("other size")
        recipes.make_once(self.folder, ["a", 2], make)
        self.assertEqual(len(calls), 3)

    def test_splits(self):
        counts = {"train": 0, "dev": 0, "test": 0}
        for number in range(20000):
            counts[recipes.split_of(f"group {number}", test=8, dev=6)] += 1
        self.assertAlmostEqual(counts["test"] / 20000, 0.08, delta=0.01)
        self.assertAlmostEqual(counts["dev"] / 20000, 0.06, delta=0.01)
        self.assertEqual(recipes.split_of("group 1", 8, 6), recipes.split_of("group 1", 8, 6))
        # Lines of one conversation go together.
        self.assertEqual({bass_st.split_of_line(3, number) for number in range(160, 176)}, {bass_st.split_of_line(3, 160)})


class Texts(unittest.TestCase):
    def test_code_page(self):
        self.assertEqual(bass_st.decode(b"Sch)ne Gr#(e *hm }bel ~tna \x7fl", bass_st.GERMAN_CODE_PAGE), "Schöne Grüße ähm Übel Ätna Öl")
        self.assertEqual(bass_st.decode(b"`quoted'  text", bass_st.ENGLISH_CODE_PAGE), "'quoted' text")

    def test_stress_in_capitals(self):
        soften = bass_st.CapitalSoftener(["Could be the most stupid thing.", "I saw Paris once."])
        self.assertEqual(soften("That is STUPID! IN PARIS. LINC knows"), "That is stupid! In Paris. LINC knows")

    def test_speakable(self):
        self.assertEqual(debian_st.speakable("This \"tool\" (an old one) converts files - quickly.", "Dieses Werkzeug (ein altes) wandelt Dateien um."),
                         ("This tool converts files, quickly.", "Dieses Werkzeug wandelt Dateien um."))
        for text in ("Too short.", "Run it with --help to see more of it", "The file foo_bar is read at the start", "See /etc/passwd for all of the users",
                     "It uses libFoo.so.1 from the other package", "word " * 41):
            self.assertIsNone(debian_st.speakable(text, "Irgendein deutscher Text."), text)
        self.assertIsNone(debian_st.speakable("This one has an aside (here) in it", "Dieser hat keine Bemerkung dabei."))

    def test_chosen_rows_depend_on_ids_alone(self):
        rows = [{"id": f"r{n}", "src_text": f"Number {n} of these rows is read aloud here", "tgt_text": f"Zeile {n} wird vorgelesen", "subset": "x"}
                for n in range(300)]
        chosen = debian_st.choose_rows(rows, most_rows=20)
        self.assertEqual(chosen, debian_st.choose_rows(rows[::-1], most_rows=20))
        self.assertEqual(len(chosen), 20)
        seconds = sum(len(row["src_text"].split()) for row in debian_st.choose_rows(rows, hours=0.1)) / debian_st.WORDS_PER_SECOND
        self.assertAlmostEqual(seconds, 360, delta=5)
        same = [dict(row, src_text="This package contains the documentation files") for row in rows]
        self.assertEqual(len(debian_st.choose_rows(same)), debian_st.SAME_START)


class Voices(TemporaryFolder):
    def test_voices_follow_from_the_id(self):
        voices = [speak.voice_of(f"id{n}", 0.3) for n in range(3000)]
        self.assertEqual(voices, [speak.voice_of(f"id{n}", 0.3) for n in range(3000)])
        flite = [voice for voice in voices if voice[0] == "flite"]
        self.assertAlmostEqual(len(flite) / 3000, 0.3, delta=0.03)
        self.assertEqual({voice[1] for voice in flite}, set(speak.FLITE_VOICES))
        self.assertGreater(len({voice[1] for voice in voices if voice[0] == "espeak"}), 250)
        self.assertEqual({speak.voice_of(f"id{n}", 1)[0] for n in range(50)}, {"flite"})
        self.assertEqual({speak.voice_of(f"id{n}", 0)[0] for n in range(50)}, {"espeak"})

    def test_lengths_of_wav_files(self):
        path = self.folder / "a.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(22050)
            file.writeframes(bytes(2 * 22050))
        self.assertEqual(audio.wav_length(path), (22050, 22050))
        self.assertEqual(audio.frames_of(22050, 22050), 98)
        self.assertEqual(audio.frames_of(100, 22050), 0)


class Bundles(TemporaryFolder):
    def make(self):
        for name in ("texts", "bass/wav", "programs/bin"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "texts/train.tsv").write_text("id\tsrc_text\n")
        for split in ("dev", "test"):
            (self.folder / f"bass/{split}.tsv").write_text(f"id\taudio\n{split}1\twav/{split}.wav\n")
            (self.folder / f"bass/wav/{split}.wav").write_bytes(b"sound " + split.encode())
        (self.folder / "bass/wav/train.wav").write_bytes(b"not needed")
        (self.folder / "programs/bin/espeak-ng").write_text("program")
        bundle.make(self.folder / "b", self.folder / "texts", self.folder / "bass", self.folder / "programs", Path(sys.executable).resolve(),
                    "Notice.", {"flite_share": 0.3, "bass_splits": ["dev", "test"]})

    @unittest.skipUnless(Path("/lib64/ld-linux-x86-64.so.2").exists(), "bundles are for x86-64 Linux")
    def test_round_trip(self):
        sys.stdout = open(os.devnull, "w")
        try:
            self.make()
        finally:
            sys.stdout.close()
            sys.stdout = sys.__stdout__
        folder = self.folder / "b"
        texts, bass, programs, command, notice = bundle.unpack(folder, self.folder / "work")
        self.assertEqual((texts / "train.tsv").read_text(), "id\tsrc_text\n")
        self.assertEqual(sorted(path.name for path in (bass / "wav").iterdir()), ["dev.wav", "test.wav"])
        self.assertEqual((programs / "bin/espeak-ng").read_text(), "program")
        self.assertTrue(Path(command[0]).is_file() and Path(command[-1]).is_file())
        self.assertEqual(notice, "Notice.\n")
        self.assertEqual(bundle.settings(folder)["flite_share"], 0.3)
        self.assertTrue((folder / "data/recipes/debian_st.py").is_file() and (folder / "configs/recipes/debian_st.yaml").is_file())
        self.assertEqual(bundle.unpack(folder, self.folder / "work")[0], texts)
        (folder / "texts.tar.xz").write_bytes(b"damaged")
        with self.assertRaisesRegex(recipes.RecipeError, "texts.tar.xz is missing or damaged"):
            bundle.unpack(folder, self.folder / "work2")
        (folder / "bundle.json").write_text(json.dumps({"settings": {}}))
        with self.assertRaisesRegex(recipes.RecipeError, "no bundle"):
            bundle.settings(folder)


if __name__ == "__main__":
    unittest.main()
