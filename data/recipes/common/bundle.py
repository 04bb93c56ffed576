"""A folder from which a machine without network and packages builds the corpus of debian_st:

  build.sh                     starts data/recipes/debian_st.py --from-bundle
  data/recipes, configs        the recipe
  texts.tar.xz                 the tables of what is spoken
  bass.tar.xz                  human speech: tables and wav files of its dev and test sets
  programs.tar.xz              espeak-ng and flite with voices, data and libraries
  tactus.tar.xz                the program that prepares, with its libraries
  bundle.json                  settings, and the digest of each archive
  NOTICE                       sources, licences, credit

The machine needs x86-64 Linux and Python 3 with its standard library; not even its C library is used by the programs.
"""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import fetch as recipes
import speak
from fetch import RecipeError, note

ARCHIVES = ("texts", "bass", "programs", "tactus")
MOST_BYTES = 60_000_000
SCRIPT = """#!/bin/sh
# Builds the corpus: sh build.sh --out DIR [--work DIR] [--jobs N]
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -B "$here/data/recipes/debian_st.py" --from-bundle "$here" "$@"
"""


def make(folder, texts, bass, programs, tactus, notice, settings):
    """Writes the bundle; whatever lay in `folder` before is replaced once the new one is complete."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "bundle.json").is_file():
        raise RecipeError(f"{folder} holds something else; name a new folder")
    if not Path(tactus).is_file():
        raise RecipeError(f"program {tactus} is missing: build it with -DTACTUS_NATIVE=OFF -DTACTUS_CUDA=OFF and name it with --tactus")
    partial = folder.with_name(folder.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    copy_recipe(partial)
    staged = partial / "staged"
    stage_bass(bass, settings["bass_splits"], staged / "bass")
    stage_tactus(Path(tactus), staged / "tactus")
    digests = {}
    for name, source in zip(ARCHIVES, (texts, staged / "bass", programs, staged / "tactus")):
        note(f"packing {name}")
        digests[name] = pack(source, partial / (name + ".tar.xz"))
    shutil.rmtree(staged)
    recipes.write_file(partial / "NOTICE", notice.strip() + "\n")
    recipes.write_file(partial / "build.sh", SCRIPT)
    recipes.write_file(partial / "bundle.json", json.dumps({"settings": settings, "sha256": digests}, indent=1))
    size = sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        raise RecipeError(f"the bundle would have {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}; give fewer --hours", 3)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    for name in ARCHIVES:
        note(f"{name}: {(folder / (name + '.tar.xz')).stat().st_size / 1e6:.1f} MB")
    print(f"{folder}: {size / 1e6:.1f} MB; on the other machine: sh {folder.name}/build.sh --out DIR")


def copy_recipe(target):
    source = recipes.REPOSITORY
    for name in ("data/recipes/debian_st.py", "configs/recipes/debian_st.yaml"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)
    for path in sorted((source / "data/recipes/common").glob("*.py")):
        (target / "data/recipes/common").mkdir(exist_ok=True)
        shutil.copy(path, target / "data/recipes/common" / path.name)


def stage_bass(bass, splits, target):
    """The tables and wav files of the splits that are needed."""
    for split in splits:
        table = Path(bass) / (split + ".tsv")
        recipes.write_file(target / table.name, table.read_bytes())
        for row in recipes.read_table(table):
            recipes.write_file(target / row["audio"], (Path(bass) / row["audio"]).read_bytes())


def stage_tactus(tactus, target):
    """The program without symbols, and the libraries and the loader that this system gives it."""
    (target / "bin").mkdir(parents=True)
    shutil.copy(tactus, target / "bin/tactus")
    if shutil.which("strip"):
        subprocess.run(["strip", target / "bin/tactus"], check=False)
    loader = next((path for path in map(Path, ("/lib64/ld-linux-x86-64.so.2",)) if path.exists()), None)
    if loader is None:
        raise RecipeError("bundles are made on x86-64 Linux with the GNU C library")
    speak.copy_libraries(loader, [target / "bin/tactus"], [], target / "lib")


def pack(source, archive):
    """Packs the files of a folder in the order of their names, without owners and times; returns the archive's digest."""
    with tarfile.open(archive, "w:xz", preset=6) as tar:
        for path in sorted(Path(source).rglob("*")):
            if not path.is_file():
                continue
            entry = tar.gettarinfo(path, path.relative_to(source))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            with open(path, "rb") as file:
                tar.addfile(entry, file)
    return digest(archive)


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def read_facts(folder):
    try:
        facts = json.loads((Path(folder) / "bundle.json").read_text())
        return facts["settings"], facts["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RecipeError(f"{folder} is no bundle of debian_st: bundle.json is missing or damaged", 3) from None


def settings(folder):
    return read_facts(folder)[0]


def unpack(folder, work):
    """Unpacks what is not unpacked yet under WORK/bundle; returns (texts, bass, programs, command of tactus, notice)."""
    folder, target = Path(folder), Path(work) / "bundle"
    places = {}
    for name, expected in read_facts(folder)[1].items():
        archive = folder / (name + ".tar.xz")
        if not archive.is_file() or digest(archive) != expected:
            raise RecipeError(f"{archive} is missing or damaged; copy the bundle again", 3)
        places[name] = target / f"{name}-{expected[:12]}"
        if places[name].is_dir():
            continue
        partial = places[name].with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:xz") as tar:
            options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(partial, **options)
        partial.rename(places[name])
    command = speak.program_command(places["tactus"], "tactus")
    return places["texts"], places["bass"], places["programs"], command, (folder / "NOTICE").read_text()
