"""The same kernels by AdaptiveCpp's own compilers, where SYLVIT_ACPP names one that has them.

    source of instantiations --acpp--> program --run with ACPP_HCF_DUMP_DIRECTORY--> its container of IR (HCF)
    --llvm-to-ptx-tool, llvm-to-amdgpu-tool--> PTX, to ptxas; an amdgcn object

Kernels are lambdas there, so they are found again by the functor in the demangled name.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import amd, nvidia, tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = {"nvidia": "llvm-to-ptx", "amd": "llvm-to-amdgpu"}
BATCH = 16


def prefix():
    return os.environ.get("SYLVIT_ACPP")


def tool(vendor):
    """The compiler for a vendor, or None."""
    if not prefix() or vendor not in TOOLS:
        return None
    path = pathlib.Path(prefix()) / "lib" / "hipSYCL" / "llvm-to-backend" / f"{TOOLS[vendor]}-tool"
    return path if path.is_file() else None


def facts():
    if not prefix():
        return ["AdaptiveCpp's own compilers, llvm-to-ptx and llvm-to-amdgpu: not tried, SYLVIT_ACPP is not set"]
    return ["AdaptiveCpp's own compilers: " + ", ".join(
        f"{name} {'there' if tool(vendor) else 'not there'}" for vendor, name in TOOLS.items())]


def source_of(kernels):
    headers = "".join(f'#include "kernels/{header}"\n' for header in sorted({kernel["header"] for kernel in kernels}))
    launchers = ",\n".join(f"  launch_variant<{kernel['type']}, {kernel['sub_group_size']}, "
                           f"{str(kernel['local_memory']).lower()}>" for kernel in kernels)
    return (f'{headers}#include "runtime/ahead_of_time.hpp"\nnamespace sylvit::runtime {{\nusing namespace kernels;\n'
            f"Launcher launchers[] = {{\n{launchers}}};\n}}\n"
            "int main() { return sylvit::runtime::launchers[0] == nullptr; }\n")


def container_of(kernels, folder):
    """The HCF file of a batch."""
    source, program, dump = folder / "kernels.cpp", folder / "kernels", folder / "hcf"
    source.write_text(source_of(kernels))
    dump.mkdir()
    tools.run([pathlib.Path(prefix()) / "bin" / "acpp", "--acpp-targets=generic", "-O3", "-std=c++20",
               "-ffp-contract=fast", "-DSYLVIT_TOOLCHAIN_ACPP=1", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}",
               f"-I{ROOT / 'build' / 'include'}", source, "-o", program])
    tools.run([program], environment={"ACPP_HCF_DUMP_DIRECTORY": str(dump)})
    # The runtime library has containers of its own kernels; ours is the largest.
    files = sorted(dump.iterdir(), key=lambda path: path.stat().st_size)
    if not files:
        raise tools.ToolError("the program left no container of kernels behind")
    return files[-1]


def translate(vendor, folder, option, container, output):
    """The container's kernels as a vendor's code. The compilers look for their libraries as if they lay in <prefix>/bin, where an
    installation does not put them: so a copy in such a place runs."""
    installed, place = tool(vendor), folder / "prefix"
    (place / "bin").mkdir(parents=True)
    (place / "lib").symlink_to(pathlib.Path(prefix()).resolve() / "lib")
    program = shutil.copy2(installed, place / "bin")
    tools.run([program, "--build-opt", option, container, output, "llvm-ir.global"],
              environment={"LD_LIBRARY_PATH": f"{installed.parent}:{place / 'lib'}", "HIP_DEVICE_LIB_PATH": str(amd.libraries())})


def compiled(kernels, target, folder):
    """Resources by the kernel's type."""
    container, output = container_of(kernels, folder), folder / "out"
    option = ("ptx-target-device=" + target.name.removeprefix("sm_") if target.vendor == "nvidia"
              else "amdgpu-target-device=" + target.name)
    translate(target.vendor, folder, option, container, output)
    if target.vendor == "nvidia":
        found = nvidia.parsed(tools.run([nvidia.ptxas(), "-v", f"-arch={target.name}", output, "-o", folder / "cubin"]))
    else:
        undefined = tools.run([tools.llvm("llvm-nm"), "--undefined-only", "--just-symbol-name", output]).split()
        if undefined:
            raise tools.ToolError("undefined symbols: " + ", ".join(undefined))
        found = amd.parsed(tools.run([tools.llvm("llvm-readelf"), "--notes", output]))
    plain = dict(zip(found, demangled(found)))
    return {kernel["type"]: found[name] for kernel in kernels for name in found
            if normal(kernel["type"]) in plain[name]}


def demangled(names):
    text = subprocess.run([tools.find("c++filt")], input="\n".join(names), stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [normal(line) for line in text.splitlines()]


@functools.cache
def enumerators():
    """The kernels' own enumerators by name, as numbers."""
    found = {}
    for header in (ROOT / "src" / "kernels").glob("*.hpp"):
        for name, members in re.findall(r"enum class (\w+)[^{;]*\{([^}]*)\}", header.read_text()):
            names = re.findall(r"^\s*(\w+)", re.sub(r"//.*", "", members).replace(",", "\n"), re.MULTILINE)
            found |= {f"{name}::{member}": str(number) for number, member in enumerate(names)}
    return found


def normal(text):
    """A type without what compilers write differently: spaces, namespaces, casts of numbers, enumerators, zeros at the end of braces."""
    text = re.sub(r"\s|sylvit::(kernels::)?", "", text)
    text = re.sub(r"\w+::\w+", lambda match: enumerators().get(match[0], match[0]), text)
    text = re.sub(r"\(\w+\)(?=\d)", "", text).replace("false", "0").replace("true", "1")
    return re.sub(r"(?:(?<=\{)0|,0)(?:,0)*\}", "}", text)


def examine(wanted, chosen, check, refuse):
    """check(one, target, resources) and refuse(one, target, reason), for what AdaptiveCpp's tables name."""
    for target in chosen:
        if not tool(target.vendor):
            continue
        own = [one for one in wanted if target.name in one.tables]
        for start in range(0, len(own), BATCH):
            batch = own[start:start + BATCH]
            with tempfile.TemporaryDirectory(prefix="sylvit-device-code-") as name:
                try:
                    found = compiled([one.kernel for one in batch], target, pathlib.Path(name))
                except tools.ToolError as error:
                    for one in batch:
                        refuse(one, target.name, "AdaptiveCpp: " + str(error))
                    continue
            for one in batch:
                if one.kernel["type"] in found:
                    check(one, target, found[one.kernel["type"]])
                else:
                    refuse(one, target.name, "AdaptiveCpp: is missing from the compiled module")
