"""Speaking tables of English text with espeak-ng and flite. The programs run as processes, one for each utterance; they
and their libraries lie in one folder, started by the loader that lies beside them, so that the machine's own libraries
do not matter:

  PROGRAMS/bin/espeak-ng, flite    PROGRAMS/lib/*.so*    PROGRAMS/espeak-ng-data/

Voice, speed and pitch of an utterance follow from a hash of its id, so that the same table gives the same sound."""

import functools
import hashlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import audio
import fetch as recipes
from fetch import RecipeError, hash_number, note

PACKAGES = ("espeak-ng", "flite")
COLUMNS = ("id", "audio", "n_frames", "src_text", "tgt_text", "speaker", "subset")
BYTES_PER_SECOND = 2 * 22050

FLITE_VOICES = ("awb", "kal16", "rms", "slt")
ESPEAK_ACCENTS = ("en-029", "en-gb", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-gb-x-rp", "en-us")
# Without whispers, croaks and robots.
ESPEAK_VARIANTS = """f1 f2 f3 f4 f5 m1 m2 m3 m4 m5 m6 m7 m8 klatt klatt2 klatt4 adam Andy anika Annie belinda benjamin caleb
david Denis ed edward Gene grandma grandpa john Lee linda max Michael michel Mike paul quincy rob robert steph travis victor
zac""".split()


def voice_of(item, flite_share):
    """(engine, voice, speed, pitch) of the item with this id. Speed is words a minute for espeak-ng, and the length of
    sounds in percent of the voice's own for flite, which has no pitch."""
    if hash_number("engine " + item) % 1000 < round(1000 * flite_share):
        return "flite", FLITE_VOICES[hash_number("voice " + item) % len(FLITE_VOICES)], 85 + hash_number("speed " + item) % 35, 0
    accent = ESPEAK_ACCENTS[hash_number("accent " + item) % len(ESPEAK_ACCENTS)]
    variant = ESPEAK_VARIANTS[hash_number("voice " + item) % len(ESPEAK_VARIANTS)]
    return "espeak", f"{accent}+{variant}", 130 + hash_number("speed " + item) % 70, 30 + hash_number("pitch " + item) % 45


def program_command(programs, name):
    """The words that start bin/NAME with the libraries beside it."""
    loader = next(iter(sorted((programs / "lib").glob("ld-linux*"))), None)
    if loader is None:
        raise RecipeError(f"{programs / 'lib'} holds no program loader; remove {programs} and run the recipe again", 3)
    return [str(loader), "--inhibit-cache", "--library-path", str(programs / "lib"), str(programs / "bin" / name)]


def speech_command(programs, voice, text, output):
    engine, name, speed, pitch = voice
    if engine == "flite":
        return [*program_command(programs, "flite"), "-voice", name, "--setf", f"duration_stretch={speed / 100}", "-t", text,
                "-o", str(output)]
    return [*program_command(programs, "espeak-ng"), "--path", str(programs), "-v", name, "-s", str(speed), "-p", str(pitch),
            "-w", str(output), text]


def speak_row(programs, folder, flite_share, row):
    """Speaks one row unless its file is there; returns (path relative to folder's parent, frames, speaker)."""
    voice = voice_of(row["id"], flite_share)
    speaker = "/".join(str(part) for part in voice)
    name = hashlib.sha1(f"{speaker}\n{row['src_text']}".encode()).hexdigest()[:20]
    path = folder / name[:2] / (name + ".wav")
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{name}.{os.getpid()}.part")
        result = subprocess.run(speech_command(programs, voice, row["src_text"], partial), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={"LC_ALL": "C.UTF-8"})
        if result.returncode != 0 or not partial.is_file():
            reason = result.stderr.decode(errors="replace").strip().splitlines()
            raise RecipeError(f"{voice[0]} could not speak {row['id']} ({(reason or ['no reason given'])[-1]}); "
                              "free disk space if it is short, and run the recipe again")
        os.replace(partial, path)
    return f"{folder.name}/{name[:2]}/{path.name}", audio.frames_of(*audio.wav_length(path)), speaker


def speak_table(programs, rows, folder, flite_share, jobs, what):
    """Speaks all rows with `jobs` processes; returns the rows of the manifest, in the same order, and those without sound."""
    started = reported = time.monotonic()
    done, manifest, silent = 0, [], []
    with multiprocessing.Pool(jobs, _leave_interrupts_to_the_parent) as pool:
        for row, (path, frames, speaker) in zip(rows, pool.imap(functools.partial(speak_row, programs, folder, flite_share), rows, 8)):
            if frames > 0:
                manifest.append((row["id"], path, frames, row["src_text"], row["tgt_text"], speaker, row["subset"]))
            else:
                silent.append(row["id"])
            done += 1
            now = time.monotonic()
            if now - reported >= 10 or done == len(rows):
                reported = now
                note(f"{what}: spoken {done} of {len(rows)}, {done / max(now - started, 1e-3):.0f} a second")
    return manifest, silent


def _leave_interrupts_to_the_parent():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# ------------------------------------------------------------------------------------- the folder of the programs


def stage_programs(work):
    """Fetches the programs with all that they need and lays them out under WORK/speech_programs; returns that folder."""
    programs = Path(work) / "speech_programs"
    if programs.is_dir():
        return programs
    roots = recipes.fetch(recipes.with_dependencies(PACKAGES, work), work)
    partial = programs.with_name(programs.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    data = next(roots["espeak-ng-data"].rglob("espeak-ng-data/phontab"), None)
    if data is None:
        raise RecipeError("package espeak-ng-data holds no phontab; run the recipe on Debian 12", 3)
    copy_english_data(data.parent, partial / "espeak-ng-data")
    for name in PACKAGES:
        shutil.copy(roots[name] / "usr/bin" / name, partial / "bin" / name)
    folders = sorted({str(path.parent.resolve()) for root in roots.values() for path in root.rglob("*.so*")})
    loader = next(path for path in sorted(roots["libc6"].rglob("ld-linux*.so*")) if path.is_file())
    used = copy_libraries(loader, [partial / "bin" / name for name in PACKAGES], folders, partial / "lib")
    for name in sorted(PACKAGES + ("espeak-ng-data",) + tuple(roots)):
        if name in PACKAGES or name == "espeak-ng-data" or any(Path(path).is_relative_to(roots[name].resolve()) for path in used):
            copyright_file = roots[name] / "usr/share/doc" / name / "copyright"
            if copyright_file.is_file():
                (partial / "licences").mkdir(exist_ok=True)
                version = recipes.package_version(name, work)
                shutil.copy(copyright_file, partial / "licences" / f"{name}_{version.replace(':', '%3a')}.txt")
    os.rename(partial, programs)
    return programs


def copy_english_data(source, target):
    """espeak-ng's phonemes, voices, and what English needs; the other languages' dictionaries stay out."""
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        if path.is_dir() and path.name in ("lang", "voices"):
            shutil.copytree(path, target / path.name)
        elif path.is_file() and (path.name == "en_dict" or not path.name.endswith("_dict")):
            shutil.copy(path, target / path.name)


def copy_libraries(loader, programs, folders, target):
    """Copies the loader and every library that the programs load, searched in `folders` (none: where the system has them),
    to `target`. Returns the libraries' own places."""
    target.mkdir(parents=True, exist_ok=True)
    search = ["--inhibit-cache", "--library-path", ":".join(folders)] if folders else []
    used = {}
    for program in programs:
        result = subprocess.run([str(loader), *search, "--list", str(program)], capture_output=True, text=True)
        for line in result.stdout.splitlines():
            name, _, place = line.strip().partition(" => ")
            if place.startswith("/"):
                used[name] = place.rsplit(" (", 1)[0]
        if result.returncode != 0 or "not found" in result.stdout:
            raise RecipeError(f"{program}: not all libraries are there ({result.stderr.strip() or result.stdout.strip()})", 3)
    for name, place in used.items():
        if "/" not in name:
            shutil.copy(os.path.realpath(place), target / name)
    shutil.copy(os.path.realpath(loader), target / Path(loader).name)
    return [os.path.realpath(place) for place in used.values()]
