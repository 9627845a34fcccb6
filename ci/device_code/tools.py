"""Finding the compilers and running them."""

import functools
import glob
import os
import pathlib
import shutil
import subprocess


class ToolError(Exception):
    """A tool did not accept its input; the text says which and why. One that a signal ended may have been stopped from outside."""

    def __init__(self, text, by_signal=False):
        super().__init__(text)
        self.by_signal = by_signal


class Missing(Exception):
    """A program or a library is not installed; the text says which."""


def cache_directory():
    own = os.environ.get("SYLVIT_CACHE_DIR")
    if own:
        return pathlib.Path(own) / "device-code"
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "sylvit" / "device-code"


def run(command, stdin=None, environment=None):
    """Standard output and error of a command as text; ToolError if it fails."""
    done = subprocess.run([str(word) for word in command], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          env=None if environment is None else {**os.environ, **environment})
    if done.returncode != 0:
        name = pathlib.Path(str(command[0])).name
        how = f"ends with {done.returncode}" if done.returncode > 0 else f"is ended by signal {-done.returncode}"
        raise ToolError(f"{name} {how}: {shortened(done.stdout)}", by_signal=done.returncode < 0)
    return done.stdout


def shortened(log):
    """The lines of a log that say what is wrong, on one line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "cannot" in line.lower()]
    return " / ".join((telling or lines or ["it says nothing"])[:3])[:400]


@functools.cache
def find(*names, where=()):
    """The first of these programs that is on PATH or in one of the folders."""
    for name in names:
        for folder in where:
            path = pathlib.Path(folder) / name
            if path.is_file():
                return str(path)
        found = shutil.which(name)
        if found:
            return found
    raise Missing(f"{names[0]} is not there")


@functools.cache
def llvm_number():
    """19 is what docs/device-code.md was made with; otherwise the newest LLVM that is there as a whole."""
    programs = ("llvm-link", "llvm-dis", "opt", "llc", "llvm-nm", "llvm-readelf", "ld.lld")
    for number in (19, *range(40, 15, -1)):
        if all(shutil.which(f"{program}-{number}") for program in programs):
            return number
    raise Missing("LLVM with lld is not there")


def llvm(program):
    return find(f"{program}-{llvm_number()}")


@functools.cache
def spirv_reader():
    """The newest llvm-spirv whose IR this LLVM reads."""
    return find(*(f"llvm-spirv-{number}" for number in range(llvm_number(), 14, -1)))


@functools.cache
def first_of(what, *patterns):
    """The first path that fits one of the patterns; {} in a pattern is LLVM's number."""
    for pattern in patterns:
        for path in sorted(glob.glob(pattern.replace("{}", str(llvm_number()))), reverse=True):
            return pathlib.Path(path)
    raise Missing(f"{what} is not there")


@functools.cache
def version(program, *options):
    """The first line that tells a version."""
    done = subprocess.run([program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    for line in done.stdout.splitlines():
        if "version" in line.lower() or "release" in line.lower():
            return line.strip()
    return done.stdout.strip().split("\n")[0]
