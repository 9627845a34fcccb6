"""PTX by LLVM, machine code by ptxas."""

import os
import pathlib
import re

from . import ir, tools
from .resources import Resources


def library():
    return tools.first_of("libclc", "/usr/lib/llvm-{}/lib/clang/{}/lib/libclc/nvptx64--nvidiacl.bc",
                          "/usr/lib/clc/nvptx64--nvidiacl.bc")


def ptxas():
    """The CUDA toolkit's if it is on PATH, otherwise that of the wheel that ci/setup --device-code installs."""
    folder = os.environ.get("SYLVIT_DEVICE_TOOLS", "")
    wheel = [path.parent for path in pathlib.Path(folder or "/nonexistent").glob("cuda/nvidia/**/bin/ptxas")]
    return tools.find("ptxas") if not wheel else tools.find("ptxas", where=tuple(wheel))


def versions():
    library()
    return [*ir.versions(), tools.version(ptxas(), "--version")]


def compiled(text, target, folder):
    """Resources of every kernel in the IR, by the kernel's name."""
    start = folder / "nvidia.ll"
    start.write_text(ir.for_nvidia(text))
    linked, better, ptx = folder / "nvidia.bc", folder / "nvidia.opt.bc", folder / "nvidia.ptx"
    tools.run([tools.llvm("llvm-link"), "--only-needed", "--internalize", start, library(), "-o", linked])
    processor = f"-mcpu={target.name}"
    tools.run([tools.llvm("opt"), "-O3", processor, linked, "-o", better])
    tools.run([tools.llvm("llc"), "-O3", processor, better, "-o", ptx])
    unresolved = [line for line in ptx.read_text().splitlines() if line.startswith(".extern .func")]
    if unresolved:
        raise tools.ToolError("undefined symbols: " + "; ".join(unresolved))
    log = tools.run([ptxas(), "-v", f"-arch={target.name}", ptx, "-o", folder / "nvidia.cubin"])
    return parsed(log)


def parsed(log):
    found = {}
    name = None
    for line in log.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)'", line)
        if entry:
            name = entry[1]
            found[name] = Resources(registers=0, width=32, spill_bytes=0)
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if memory and name:
            found[name].spill_bytes = max(int(memory[2]), int(memory[3]))
            found[name].private_bytes = int(memory[1])
        used = re.search(r"Used (\d+) registers", line)
        if used and name:
            found[name].registers = int(used[1])
            shared = re.search(r"(\d+) bytes smem", line)
            found[name].static_local_bytes = int(shared[1]) if shared else 0
    return found
