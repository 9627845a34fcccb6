"""From kernels by name to their resources on every target, with a cache of both steps on disk."""

import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile

from . import amd, intel, ir, nvidia, tools
from .resources import Resources

VENDORS = {"intel": intel, "nvidia": nvidia, "amd": amd}


def why_not(vendor):
    """What is missing to compile for this vendor, or nothing."""
    try:
        tools.find("spirv-val")
        VENDORS[vendor].versions()
    except tools.Missing as missing:
        return str(missing)
    return ""


def spirv_modules(program, batches, jobs):
    """Batches of kernels to files, and for batches that do not compile an error text."""
    folder = tools.cache_directory() / "spirv"
    folder.mkdir(parents=True, exist_ok=True)
    shares = [batches[start::jobs] for start in range(jobs)]

    def build(share):
        if not share:
            return []
        done = subprocess.run([program, "spirv", str(folder)], input=json.dumps(share), stdout=subprocess.PIPE,
                              text=True, check=False)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode != 0 and len(answers) < len(share):
            answers.append({"name": share[len(answers)]["name"], "error": "the compiler ended the process"})
            return answers + build(share[len(answers):])
        return answers

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return {answer["name"]: answer for answers in pool.map(build, shares) for answer in answers}


def fingerprint(vendor):
    """Of all that turns a module into resources, beside the module and the target."""
    folder = pathlib.Path(__file__).parent
    hashed = hashlib.sha256()
    for name in ("compile.py", "ir.py", "resources.py", "tools.py", f"{vendor}.py"):
        hashed.update((folder / name).read_bytes())
    hashed.update("\n".join(VENDORS[vendor].versions()).encode())
    return hashed.hexdigest()


class Module:
    """A SPIR-V module: valid or not, what it needs, and what its kernels become on a target."""

    def __init__(self, path, fingerprints):
        self.path = pathlib.Path(path)
        self.digest = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self.fingerprints = fingerprints

    def remembered(self, kind, key, make):
        """make()'s JSON, from the cache if it was made before. A tool's refusal is remembered too."""
        name = hashlib.sha256(f"{kind}/{self.digest}/{key}".encode()).hexdigest()
        path = tools.cache_directory() / kind / name[:2] / f"{name}.json"
        if path.is_file():
            answer = json.loads(path.read_text())
        else:
            try:
                answer = {"result": make()}
            except tools.ToolError as error:
                if error.by_signal:
                    raise
                answer = {"error": str(error)}
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
                json.dump(answer, file)
            pathlib.Path(file.name).replace(path)
        if "error" in answer:
            raise tools.ToolError(answer["error"])
        return answer["result"]

    def capabilities(self):
        """Also validates: ToolError if the module is not valid."""

        def make():
            tools.run([tools.find("spirv-val"), self.path])
            listing = tools.run([tools.find("spirv-dis"), "--no-color", self.path])
            return re.findall(r"^\s*OpCapability (\w+)", listing, flags=re.M)

        return set(self.remembered("valid", tools.version(tools.find("spirv-val"), "--version"), make))

    @functools.cached_property
    def inlined(self):
        """As IR, for all targets that begin with it."""
        with tempfile.TemporaryDirectory(prefix="sylvit-device-code-") as folder:
            return ir.inlined(self.path, pathlib.Path(folder))

    def resources(self, target):
        """By the kernel's entry; ToolError if a tool does not take it."""

        def make():
            with tempfile.TemporaryDirectory(prefix="sylvit-device-code-") as name:
                folder = pathlib.Path(name)
                vendor = VENDORS[target.vendor]
                source = self.path if target.vendor == "intel" else self.inlined
                return {kernel.removeprefix("__sycl_kernel_"): found.to_json()
                        for kernel, found in vendor.compiled(source, target, folder).items()}

        made = self.remembered("resources", target.name + self.fingerprints[target.vendor], make)
        return {entry: Resources(**values) for entry, values in made.items()}
