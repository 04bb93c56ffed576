"""Fetching Debian packages for recipes, and what all recipes share: errors, splits, tables, notices, preparation.

Nothing is installed: packages and package lists lie in folders under the recipe's work folder, and no step needs root.
Every file appears under its final name only when it is complete, so that a recipe may be stopped and started again at
any time; what is finished is not done twice.

  WORK/apt/            package lists of the system's own sources
  WORK/packages/NAME.deb, WORK/packages/NAME/    a package and its unpacked files
"""

import argparse
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SPLITS = ("train", "dev", "test")
REPOSITORY = Path(__file__).resolve().parents[3]


class Stopped(BaseException):
    """SIGTERM or SIGHUP arrived."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


class RecipeError(Exception):
    """One line that says what to do. Code 1: the machine (network, disk, programs); code 3: the data."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


# ------------------------------------------------------------------------------------------------------ packages


def fetch(packages, work):
    """Downloads and unpacks `packages` under `work`; returns {name: folder}. A version is pinned as "name=version"."""
    _need("apt-get", "dpkg-deb")
    folder = Path(work) / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    roots = {}
    for package in packages:
        name = package.split("=")[0]
        root, deb = folder / name, folder / (name + ".deb")
        if not root.is_dir():
            if not (deb.is_file() and _is_complete(deb)):
                _download(package, deb, Path(work))
            _unpack(deb, root)
        roots[name] = root
    return roots


def with_dependencies(packages, work):
    """Names of the packages and of all that they depend on, down to the C library, whatever is installed here."""
    options = [*_apt_options(package_lists(work)), "-o", "Dir::State::status=/dev/null"]
    result = _run_apt(["apt-get", "-q", "-s", "install", "--no-install-recommends", *packages, *options], work)
    names = re.findall(r"^Inst (\S+)", result.stdout, re.M)
    if result.returncode != 0 or not names:
        raise RecipeError(f"the packages that {', '.join(packages)} depend on are not in the lists of this system's sources "
                          f"({_system_name()}); run the recipe on Debian 12")
    return sorted(names)


def package_version(name, work):
    """Version of a fetched package, as Debian writes it."""
    deb = Path(work) / "packages" / (name + ".deb")
    result = subprocess.run(["dpkg-deb", "-f", deb, "Version"], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else "unknown"


def package_lists(work, languages=()):
    """Folder with the package lists of the system's sources as plain text files, with the translated descriptions of
    `languages`: *_Packages and *_i18n_Translation-LANGUAGE. Fetched once; remove the folder to fetch them anew."""
    _need("apt-get")
    name = "lists" + "".join("-" + language for language in languages)
    lists = (Path(work) / "apt" / name).resolve()
    stamp = lists / "complete"
    if stamp.is_file():
        return lists
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    note("fetching package lists" + (f" ({', '.join(languages)})" if languages else ""))
    command = ["apt-get", "-q", "update", *_apt_options(lists), "-o", "Acquire::Languages=" + (",".join(languages) or "none")]
    result = _run_apt(command, lists)
    if not list(lists.glob("*_Packages")):
        raise RecipeError("package lists could not be fetched; " + _network_advice(result))
    # A source that cannot be reached at all is the system's affair; one that sent a part of its lists is asked again.
    if not re.search(r"Failed to fetch \S*/(?:binary-|i18n/)", result.stderr):
        stamp.write_text("")
    return lists


def forget_lists(lists):
    """What should be in the lists is not: the next run fetches them again."""
    (Path(lists) / "complete").unlink(missing_ok=True)


def _apt_options(lists):
    cache = lists.parent / "cache"
    (cache / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State::Lists": lists,
        "Dir::Cache": cache,
        "Dir::Cache::pkgcache": "",  # a cache file would need locks and is soon out of date
        "Dir::Cache::srcpkgcache": "",
        "Acquire::GzipIndexes": "false",
        "Acquire::Retries": "3",
        "Acquire::http::Timeout": "30",
        "APT::Update::Post-Invoke-Success::": "",
        "DPkg::Post-Invoke::": "",
    }
    if os.geteuid() == 0:
        options["APT::Sandbox::User"] = "root"  # the user _apt cannot write to the work folder
    return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]


def _download(package, deb, work):
    lists = package_lists(work)
    partial = deb.with_name(deb.stem + ".partial").resolve()
    partial.mkdir(exist_ok=True)
    note(f"downloading {package}")
    command = ["apt-get", "-q", "download", package, *_apt_options(lists)]
    result = _run_apt(command, partial)
    if result.returncode != 0 and "Unable to locate" not in result.stderr:
        # Lists grow old: a newer version replaces the file they name.
        shutil.rmtree(lists, ignore_errors=True)
        result = _run_apt(["apt-get", "-q", "download", package, *_apt_options(package_lists(work))], partial)
    found = sorted(partial.glob("*.deb"))
    if result.returncode != 0 or not found:
        if not any(partial.iterdir()):
            partial.rmdir()
        forget_lists(lists)
        raise RecipeError(_download_advice(package, result))
    if not _is_complete(found[-1]):
        shutil.rmtree(partial)
        raise RecipeError(f"package {package} arrived damaged; run the recipe again")
    os.replace(found[-1], deb)
    shutil.rmtree(partial)


def _download_advice(package, result):
    if re.search(r"Unable to locate|no installation candidate|Version .* was not found", result.stderr):
        return (f"package {package} is not in the lists of this system's sources ({_system_name()}); "
                "add a source that has it (Debian 12 main does) or run the recipe on Debian 12")
    return f"package {package} could not be downloaded; " + _network_advice(result)


def _network_advice(result):
    lines = [line for line in result.stderr.splitlines() if line.startswith(("E:", "Err", "W:"))] or ["no reason given"]
    if re.search(r"No space left", result.stderr):
        return "no space is left on the disk: free some or choose another --work"
    return f"check the network and the sources of apt, then run the recipe again (apt: {lines[0][:160]})"


def _run_apt(command, folder):
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    return run_program(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True)


def _is_complete(deb):
    """The control part is readable and the archive's members end where the file ends."""
    if subprocess.run(["dpkg-deb", "-I", deb], capture_output=True).returncode != 0:
        return False
    with open(deb, "rb") as file:
        size, position = os.fstat(file.fileno()).st_size, 8
        while position < size:
            file.seek(position)
            header = file.read(60)
            if len(header) < 60 or not header[48:58].strip().isdigit():
                return False
            position += 60 + int(header[48:58])
            position += position % 2
    return position in (size, size + 1)


def _unpack(deb, root):
    partial = root.with_name(root.name + ".unpacking")
    shutil.rmtree(partial, ignore_errors=True)
    result = subprocess.run(["dpkg-deb", "-x", deb, partial], capture_output=True, text=True)
    if result.returncode != 0:
        reason = (result.stderr.strip() or "no reason given").splitlines()[-1]
        shutil.rmtree(partial, ignore_errors=True)
        raise RecipeError(f"{deb} cannot be unpacked ({reason}); free disk space or remove that file, then run the recipe again")
    os.rename(partial, root)


def _need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise RecipeError(f"program {program} is missing: fetching needs Debian 12, Ubuntu 24.04 or a relative of theirs")


def _system_name():
    try:
        return re.search(r'^PRETTY_NAME="?([^"\n]*)', Path("/etc/os-release").read_text(), re.M)[1]
    except (OSError, TypeError):
        return "unknown system"


# -------------------------------------------------------------------------------------------------------- tables


def hash_number(text, digits=8):
    """The first hexadecimal digits of the SHA-1 of `text` as a number: the same on every machine."""
    return int(hashlib.sha1(text.encode()).hexdigest()[:digits], 16)


def split_of(group, test, dev, out_of=100, digits=8):
    """Split of everything that belongs to `group`: `test` and `dev` parts of `out_of`, the rest is train."""
    part = hash_number(group, digits) % out_of
    return "test" if part < test else "dev" if part < test + dev else "train"


def one_line(text):
    """White space of any kind becomes single blanks, so that the text is one field of a table."""
    return " ".join(text.replace("\0", " ").split())


def write_file(path, content):
    """Writes bytes or text atomically; a file that has this content already is left alone. Returns whether it was written."""
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return False
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def write_table(path, columns, rows):
    """A manifest: header line, tab separated, no quoting. Fields are made one line."""
    lines = ["\t".join(columns)]
    for row in rows:
        fields = [one_line(str(field)) for field in row]
        if len(fields) != len(columns):
            raise RecipeError(f"{path}: row {fields[0]!r} has {len(fields)} fields, the header {len(columns)}", 3)
        lines.append("\t".join(fields))
    return write_file(path, "\n".join(lines) + "\n")


def read_table(path):
    """Rows of a manifest as dictionaries."""
    with open(path, encoding="utf-8", newline="\n") as file:
        columns = file.readline().rstrip("\n").split("\t")
        for number, line in enumerate(file, 2):
            fields = line.rstrip("\n").split("\t")
            if len(fields) != len(columns):
                raise RecipeError(f"{path}:{number}: expected {len(columns)} fields, found {len(fields)}; "
                                  "remove the file and run its recipe again", 3)
            yield dict(zip(columns, fields))


def make_once(folder, facts, make):
    """Calls make(), which returns the files that it wrote under `folder`, unless they are there already, with the sizes
    they had, made from the same `facts` (strings or numbers: options, versions, digests of code)."""
    stamp = Path(folder) / "made.json"
    try:
        made = json.loads(stamp.read_text())
        if made["facts"] == facts and all((stamp.parent / name).stat().st_size == size for name, size in made["files"].items()):
            return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    stamp.unlink(missing_ok=True)
    files = {os.path.relpath(path, folder): os.stat(path).st_size for path in make()}
    write_file(stamp, json.dumps({"facts": facts, "files": files}, indent=0))
    return True


def digest_of_files(*paths):
    """Short digest of the contents, for the facts of make_once()."""
    return hashlib.sha256(b"".join(Path(path).read_bytes() for path in paths)).hexdigest()[:16]


def print_counts(folder, splits=SPLITS):
    """The report that was written when the tables were made, if any, and one line for each table: items, hours where the
    table has sound, words."""
    report = Path(folder) / "report.txt"
    if report.is_file():
        print(report.read_text(encoding="utf-8"), end="")
    for split in splits:
        path = Path(folder) / (split + ".tsv")
        if not path.is_file():
            continue
        rows = list(read_table(path))
        hours = sum(int(row.get("n_frames") or 0) for row in rows) / 360000
        words = ", ".join(f"{sum(len(row[column].split()) for row in rows)} words {column}"
                          for column in ("src_text", "tgt_text") if rows and column in rows[0])
        print(f"{split}: {len(rows)} rows" + (f", {hours:.2f} h" if hours else "") + (", " + words if words else ""))


# ------------------------------------------------------------------------------------------------- running a recipe


def run_program(words, **options):
    """Like subprocess.run(), but a program does not outlive a recipe that is stopped: it is asked to end, and waited for."""
    with subprocess.Popen([str(word) for word in words], **options) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def note(text):
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


def attribution(text):
    """Prints where the data comes from, its licence and whom to credit."""
    print("Source and licence")
    for line in text.strip().splitlines():
        print("  " + line.rstrip())
    sys.stdout.flush()


def recipe_arguments(name, description, variants=False):
    """Argument parser with what every recipe takes. With `variants`, options choose among data sets; each has a folder of
    its own, and `out` is None where it was not given."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--work", type=Path, default=Path("runs/packages"), metavar="DIR",
                        help="downloads and tables; several recipes may share it (default %(default)s)")
    parser.add_argument("--out", type=Path, default=None if variants else Path("runs") / name, metavar="DIR",
                        help="folder of the prepared corpus (default runs/ and the name of the folder of tables)" if variants
                        else "folder of the prepared corpus (default %(default)s)")
    parser.add_argument("--tactus", type=Path, default=REPOSITORY / "build/tactus", metavar="PATH",
                        help="the program (default build/tactus)")
    parser.add_argument("--no-prepare", action="store_true", help="make the tables only")
    return parser


def need_program(arguments):
    """Says that the program is missing before anything is downloaded for it."""
    if not arguments.no_prepare and not arguments.tactus.is_file():
        raise RecipeError(_program_advice(arguments.tactus))


def _program_advice(path):
    return f"program {path} is missing: build it (./run build), name it with --tactus, or give --no-prepare"


def prepare(tactus, recipe, tables, out, settings=()):
    """Runs `tactus prepare` on configs/recipes/RECIPE.yaml with the tables in folder `tables`, unless OUT holds the corpus
    of these tables already. `tactus` is the program's path, or the words of a command that starts it."""
    # An absolute path, because a bare name would be looked up in PATH.
    command = [str(word) for word in (tactus if isinstance(tactus, (list, tuple)) else [Path(tactus).absolute()])]
    if not Path(command[-1]).is_file():
        raise RecipeError(_program_advice(command[-1]))
    configuration, out = REPOSITORY / "configs/recipes" / (recipe + ".yaml"), Path(out)
    facts = ["corpus", digest_of_files(configuration, command[-1], *sorted(Path(tables).glob("*.tsv"))), list(settings)]

    def run():
        words = [*command, "prepare", str(configuration), "--out", str(out)]
        for setting in (f"input.path={Path(tables).resolve()}", *settings):
            words += ["--set", setting]
        sys.stdout.flush()
        code = run_program(words).returncode
        if code < 0:
            raise RecipeError(f"tactus prepare was ended by signal {-code} (9: often for lack of memory); run the recipe again")
        if code != 0:
            raise RecipeError(f"tactus prepare stopped with exit code {code}; its message is above", code)
        return [out / "corpus.h5"]

    if not make_once(out, facts, run):
        note(f"{out / 'corpus.h5'} is complete already")


def run_recipe(main):
    """Runs main() and turns what can go wrong outside the program into one line and an exit code."""
    recipe = os.getpid()

    def stop(number, _):
        if os.getpid() != recipe:  # in a worker, which inherits this and simply ends
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # else started with nohup
            signal.signal(number, stop)
    try:
        main()
    except RecipeError as error:
        sys.exit(_stop(str(error), error.code))
    except KeyboardInterrupt:
        sys.exit(_stop("stopped; run the recipe again to go on from here", 130))
    except Stopped as stopped:
        sys.exit(_stop("stopped; run the recipe again to go on from here", 128 + stopped.number))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_stop("the reader of the output has gone; run the recipe again to go on from here", 1))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            sys.exit(_stop("no space is left on the disk: free some or choose another --work and --out", 1))
        sys.exit(_stop(f"{error.filename or 'a file'}: {error.strerror}", 1))


def _stop(message, code):
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    return code
