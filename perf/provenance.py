"""What a run is made with: the machine, the commit, the versions of everything, the command line."""

import importlib.metadata
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0))

# Vendor, family, models and name of a CPU; the first that fits. AMD's family 25 is told apart by AVX-512.
CPUS = [
    ("AuthenticAMD", 23, range(0, 48), "Zen"),
    ("AuthenticAMD", 23, range(48, 256), "Zen 2"),
    ("AuthenticAMD", 25, "avx512f", "Zen 4"),
    ("AuthenticAMD", 25, range(0, 256), "Zen 3"),
    ("AuthenticAMD", 26, range(0, 256), "Zen 5"),
    ("GenuineIntel", 6, (60, 63, 69, 70), "Haswell"),
    ("GenuineIntel", 6, (61, 71, 79, 86), "Broadwell"),
    ("GenuineIntel", 6, (85,), "Skylake-SP"),
    ("GenuineIntel", 6, (106, 108), "Ice Lake"),
    ("GenuineIntel", 6, (143,), "Sapphire Rapids"),
    ("GenuineIntel", 6, (207,), "Emerald Rapids"),
    ("GenuineIntel", 6, (173, 174), "Granite Rapids"),
]


def recognise(cpuinfo):
    """Model and family of the first CPU of /proc/cpuinfo's text, and the start of the machine's name."""
    facts = dict(re.findall(r"^(\w[\w ]*?)\s*:[ \t]*(.*)$", cpuinfo.split("\n\n")[0], re.MULTILINE))
    flags = facts.get("flags", facts.get("Features", "")).split()
    family, model = int(facts.get("cpu family", 0)), int(facts.get("model", 0))

    def fits(vendor, number, which):
        if (vendor, number) != (facts.get("vendor_id"), family):
            return False
        return which in flags if isinstance(which, str) else model in which

    name = next((name for *cpu, name in CPUS if fits(*cpu)), platform.machine())
    if name == "Skylake-SP" and int(facts.get("stepping", 0)) >= 5:
        name = "Cascade Lake" if int(facts["stepping"]) < 10 else "Cooper Lake"
    slug = re.sub("[ _]", "-", name.lower().replace("zen ", "zen"))
    vectors = next((label for flag, label in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), None)
    return facts.get("model name"), f"{name} ({vectors})" if vectors else name, slug


def first_line(*command):
    try:
        output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return output.splitlines()[0] if output else ""


def machine(name=None):
    cpu, family, slug = recognise(pathlib.Path("/proc/cpuinfo").read_text())
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
    return {"name": name or f"{slug}-{CORES}cores", "cpu": cpu, "family": family, "cores": CORES,
            "os": system[1] if system else None}


def commit():
    changed = first_line("git", "status", "--porcelain", "--", ".", ":!perf/results", ":!perf/README.md")
    name = first_line("git", "rev-parse", "--short=9", "HEAD")
    return name and name + ("-dirty" if changed else "")


def versions(program, modules):
    """Of the program, the compiler that its build names, the peers, and the SYCL wheels that ci/setup pins."""
    cache = pathlib.Path(program).resolve().parent / "CMakeCache.txt"
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    found = {"sylvit": first_line(str(pathlib.Path(program).resolve()), "--version"),
             "compiler": first_line(compiler[1], "--version") if compiler else None,
             "python": platform.python_version()}
    for module in modules:
        try:
            found[module] = importlib.metadata.version(module)
        except importlib.metadata.PackageNotFoundError:
            found[module] = None
    wheels = (ROOT / "requirements.txt").read_text()
    return found | dict(re.findall(r"^([\w-]+)==([\w.]+)", wheels, re.MULTILINE))


def command(program):
    """The command line as one would repeat it, without this machine's directories."""
    def shown(word):
        if not word.startswith("/"):
            return word
        path = pathlib.Path(os.path.abspath(word))
        return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else "/".join(("…", *path.parts[-2:]))
    return " ".join([program, *map(shlex.quote, map(shown, sys.argv[1:]))])
