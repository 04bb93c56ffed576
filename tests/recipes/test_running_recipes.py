"""How a recipe is run: stopping it, fetching lists, errors before anything is downloaded. No network."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "data/recipes/common")]
import fetch as recipes

RECIPE = """
import sys
sys.path.insert(0, sys.argv[1])
import fetch as recipes
def main():
    recipes.run_program(["sh", "-c", "echo $$ > started.part; mv started.part started; exec sleep 60"])
recipes.run_recipe(main)
"""


class TemporaryFolder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()


class Stopping(TemporaryFolder):
    def stop(self, number, prefix=()):
        (self.folder / "started").unlink(missing_ok=True)
        process = subprocess.Popen([*prefix, sys.executable, "-c", RECIPE, recipes.__file__.rsplit("/", 1)[0]], cwd=self.folder,
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while not (self.folder / "started").is_file() and time.monotonic() < deadline:
            time.sleep(0.01)
        child = int((self.folder / "started").read_text())
        process.send_signal(number)
        return process, child

    def test_a_program_does_not_outlive_its_recipe(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            process, child = self.stop(number)
            self.assertIn("stopped; run the recipe again", process.communicate(timeout=20)[1])
            self.assertEqual(process.returncode, 128 + number)
            with self.assertRaises(ProcessLookupError):
                os.kill(child, 0)

    def test_a_recipe_started_with_nohup_ignores_a_closed_terminal(self):
        process, child = self.stop(signal.SIGHUP, ["nohup"])
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(0.2)
        os.kill(child, signal.SIGKILL)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0)


class Lists(TemporaryFolder):
    def fetch(self, errors):
        def run(command, folder):
            (folder / "x_main_binary-amd64_Packages").write_text("")
            return subprocess.CompletedProcess(command, 0, "", errors)

        with unittest.mock.patch.object(recipes, "_run_apt", run), unittest.mock.patch.object(recipes, "_need"), \
                unittest.mock.patch.object(recipes, "note"):
            return (recipes.package_lists(self.folder, ("de",)) / "complete").is_file()

    def test_lists_that_arrived_in_part_are_fetched_again(self):
        self.assertFalse(self.fetch("W: Failed to fetch http://x/dists/bookworm/main/i18n/Translation-de  Connection failed\n"))
        self.assertFalse(self.fetch("W: Failed to fetch http://x/dists/bookworm/main/binary-amd64/Packages  Connection failed\n"))

    def test_a_source_that_does_not_answer_does_not_matter(self):
        self.assertTrue(self.fetch("W: Failed to fetch http://y/dists/z/InRelease  Could not resolve 'y'\n"))


class Program(unittest.TestCase):
    def test_a_missing_program_is_found_first(self):
        missing = argparse.Namespace(no_prepare=False, tactus=Path("/no/such/tactus"))
        with self.assertRaisesRegex(recipes.RecipeError, "/no/such/tactus is missing: build it"):
            recipes.need_program(missing)
        missing.no_prepare = True
        recipes.need_program(missing)

    def test_data_sets_of_one_recipe_do_not_overwrite_each_other(self):
        self.assertEqual(recipes.recipe_arguments("x", "X").parse_args([]).out, Path("runs/x"))
        self.assertIsNone(recipes.recipe_arguments("x", "X", variants=True).parse_args([]).out)
        self.assertEqual(recipes.recipe_arguments("x", "X", variants=True).parse_args(["--out", "y"]).out, Path("y"))


if __name__ == "__main__":
    unittest.main()
