"""Machine code by ocloc, Intel's offline compiler."""

import os
import pathlib
import re

from . import tools
from .resources import Resources


def unpacked():
    """Where ci/setup --device-code unpacks Debian's package, which it does not install: that would add a GPU driver."""
    return pathlib.Path(os.environ.get("SYLVIT_DEVICE_TOOLS", "/nonexistent")) / "ocloc" / "usr"


def ocloc():
    return tools.find("ocloc", where=(unpacked() / "bin",))


def environment():
    libraries = unpacked() / "lib" / "x86_64-linux-gnu"
    return {"LD_LIBRARY_PATH": str(libraries)} if libraries.is_dir() else None


def versions():
    ocloc()
    identity = unpacked() / "version"
    return ["ocloc " + (identity.read_text().strip() if identity.is_file() else "of this machine: " + ocloc())]


def compiled(module, target, folder):
    """Resources of every kernel in the SPIR-V module, by the kernel's name."""
    binary = folder / f"{target.name}.zebin"
    tools.run([ocloc(), "compile", "-spirv_input", "-file", module, "-device", target.name, "--format", "zebin",
               "-output", binary.name, "-output_no_suffix", "-out_dir", folder], environment=environment())
    information = tools.run([tools.find("readelf"), "--wide", "-p", ".ze_info", binary])
    return parsed(information)


def parsed(information):
    """The kernels of the section .ze_info, which is YAML."""
    found = {}
    text = information.replace("\\n\n", "\n")  # readelf writes the ends of lines out
    for kernel in re.split(r"^ +- name: +", text, flags=re.M)[1:]:
        name = kernel.split()[0]
        if "execution_env:" not in kernel or name == "Intel_Symbol_Table_Void_Program":
            continue
        # Scratch is what registers are spilled to, global buffers hold private arrays.
        memory = {"scratch": 0, "global": 0}
        for kind, size in re.findall(r"- type: +(\w+)\s+usage: +\w+\s+size: +(\d+)", kernel):
            memory[kind] = memory.get(kind, 0) + int(size)
        found[name] = Resources(registers=number(kernel, "grf_count"), width=number(kernel, "simd_size"),
                                spill_bytes=memory["scratch"], private_bytes=memory["global"],
                                static_local_bytes=number(kernel, "slm_size"))
    return found


def number(text, key):
    found = re.search(rf"\b{key}: +(\d+)", text)
    return int(found[1]) if found else 0
