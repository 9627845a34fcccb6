"""An amdgcn object by LLVM."""

import pathlib
import re

from . import ir, tools
from .resources import Resources


def libraries():
    """ROCm's device libraries: Debian's packages, the older ones elsewhere than the newer, and AMD's own."""
    return tools.first_of("ROCm's device libraries", "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
                          "/usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode", "/opt/rocm/amdgcn/bitcode")


def versions():
    libraries()
    return ir.versions()


def isa_version(name):
    """gfx90a: 9010, gfx1100: 11000; as the device libraries count."""
    major, minor, step = int(name[3:-2]), int(name[-2], 16), int(name[-1], 16)
    return major * 1000 + minor * 100 + step


def settings(target):
    """What the device libraries want to know. Debian's package has files for it, but not for newer devices."""
    numbers = {"__oclc_ISA_version": ("i32", isa_version(target.name)), "__oclc_ABI_version": ("i32", 500),
               "__oclc_wavefrontsize64": ("i8", int(target.sub_group_sizes == (64,))),
               "__oclc_daz_opt": ("i8", 0), "__oclc_unsafe_math_opt": ("i8", 0), "__oclc_finite_only_opt": ("i8", 0),
               "__oclc_correctly_rounded_sqrt32": ("i8", 1)}
    return 'target triple = "amdgcn-amd-amdhsa"\n' + "".join(
        f"@{name} = linkonce_odr protected local_unnamed_addr addrspace(4) constant {kind} {value}\n"
        for name, (kind, value) in numbers.items())


def compiled(text, target, folder):
    """Resources of every kernel in the IR, by the kernel's name."""
    start, constants = folder / "amd.ll", folder / "settings.ll"
    start.write_text(ir.for_amd(text))
    constants.write_text(settings(target))
    linked, better, code = folder / "amd.bc", folder / "amd.opt.bc", folder / "amd.o"
    needed = [libraries() / f"{name}.bc" for name in ("opencl", "ocml", "ockl")]
    tools.run([tools.llvm("llvm-link"), "--only-needed", "--internalize", start, *needed, constants,
               "-o", linked])
    processor = f"-mcpu={target.name}"
    tools.run([tools.llvm("opt"), "-O3", processor, linked, "-o", better])
    tools.run([tools.llvm("llc"), "-O3", processor, "-filetype=obj", better, "-o", code])
    # A link with undefined symbols would succeed.
    undefined = tools.run([tools.llvm("llvm-nm"), "--undefined-only", "--just-symbol-name", code]).split()
    if undefined:
        raise tools.ToolError("undefined symbols: " + ", ".join(undefined))
    final = folder / "amd.hsaco"
    tools.run([tools.llvm("ld.lld"), "-shared", code, "-o", final])
    return parsed(tools.run([tools.llvm("llvm-readelf"), "--notes", final]))


def parsed(notes):
    """The list amdhsa.kernels. Entries at its own depth are a kernel's; deeper ones are its arguments'."""
    found = {}
    for kernel in re.split(r"^  - ", notes, flags=re.M)[1:]:
        own = dict(re.findall(r"^(?: {4})?\.(\w+): +(\S+)$", kernel, flags=re.M))
        if "vgpr_count" not in own:
            continue
        spills = int(own.get("vgpr_spill_count", 0)) * 4
        private = int(own["private_segment_fixed_size"])
        found[own["name"]] = Resources(registers=int(own["vgpr_count"]), width=int(own["wavefront_size"]),
                                       spill_bytes=spills, private_bytes=max(0, private - spills),
                                       static_local_bytes=int(own["group_segment_fixed_size"]),
                                       scalar_spills=int(own.get("sgpr_spill_count", 0)))
    return found
