"""SPIR-V to LLVM IR for NVIDIA and AMD.

    SPIR-V --llvm-spirv--> IR for "spir64" --here--> IR of the target, with OpenCL's built-in functions still called
    by name --llvm-link--> with the target's library of them --opt, llc--> device code

SPIR's address spaces are 0 private, 1 global, 2 constant, 3 local, 4 generic; the targets have generic at 0.
"""

import re

from . import tools

# Calls that every target has an instruction for; the libraries' own versions may be software.
INTRINSICS = {"_Z3fmafff": "llvm.fma.f32", "_Z3madfff": "llvm.fmuladd.f32", "_Z4sqrtf": "llvm.sqrt.f32",
              "_Z4fabsf": "llvm.fabs.f32", "_Z4fminff": "llvm.minnum.f32", "_Z4fmaxff": "llvm.maxnum.f32"}


def versions():
    """Of what turns SPIR-V into IR and IR into code."""
    return [tools.version(tools.llvm("llc"), "--version"), tools.version(tools.spirv_reader(), "--version")]


def inlined(module, folder):
    """The module as text: kernels only, all they call inlined, every value named."""
    bitcode = folder / "spir.bc"
    tools.run([tools.spirv_reader(), "-r", module, "-o", bitcode])
    text = folder / "spir.ll"
    tools.run([tools.llvm("llvm-dis"), bitcode, "-o", text])
    spir = re.sub(r"^(define internal [^{]*?)(#\d+ )?\{$", r"\1alwaysinline \2{", text.read_text(), flags=re.M)
    text.write_text(spir)
    named = folder / "named.ll"
    tools.run([tools.llvm("opt"), "-S", "-passes=always-inline,globaldce,sroa,instnamer", text, "-o", named])
    return named.read_text()


def common(text, triple, layout, kernel_convention):
    text = re.sub(r"^target datalayout = .*$", f'target datalayout = "{layout}"', text, flags=re.M)
    text = re.sub(r"^target triple = .*$", f'target triple = "{triple}"', text, flags=re.M)
    text = text.replace("spir_kernel", kernel_convention).replace("spir_func ", "")
    for name, intrinsic in INTRINSICS.items():
        text = re.sub(rf"@{name}\b", f"@{intrinsic}", text)
    return text


def for_nvidia(text):
    """Private and generic memory are both address space 0 there."""
    layout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
    text = common(text, "nvptx64-nvidia-cuda", layout, "ptx_kernel")
    text = text.replace(" addrspace(4)", "").replace("addrspace(2)", "addrspace(4)")
    text = re.sub(r"(@llvm\.[\w.]*)\.p4\b", r"\1.p0", text)
    return re.sub(r"addrspacecast ptr (\S+) to ptr(?! addrspace)", r"bitcast ptr \1 to ptr", text)


def for_amd(text):
    """Private memory is address space 5 there, and arguments that are structs lie in constant memory (4)."""
    layout = ("e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128-"
              "p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-"
              "v2048:2048-n32:64-S32-A5-G1-ni:7:8:9")
    text = common(text, "amdgcn-amd-amdhsa", layout, "amdgpu_kernel")
    text = re.sub(r"\bptr addrspace\(4\)", "GENERIC", text)
    text = re.sub(r"\baddrspace\(2\)", "addrspace(4)", text)
    text = re.sub(r"\bptr\b(?! addrspace)", "ptr addrspace(5)", text)
    text = text.replace("GENERIC", "ptr")
    text = re.sub(r"^(\s*%\S+ = alloca [^\n]*?)(, !\S+ !\d+)?$", r"\1, addrspace(5)\2", text, flags=re.M)
    text = re.sub(r"@llvm\.[\w.]*", lambda name: re.sub(r"\.p([04])\b", lambda p: ".p5" if p[1] == "0" else ".p0",
                                                        name[0]), text)
    return re.sub(r"^define amdgpu_kernel [^\n]*\{\n(?:[\w.]+:[^\n]*\n)?", arguments_in_constant_memory, text,
                  flags=re.M)


def arguments_in_constant_memory(match):
    """The kernel's first lines with a private copy of each struct argument; the optimiser sees through it."""
    head = match[0]
    copies = []

    def argument(found):
        struct, name = found["struct"], found["name"]
        copies.append(f"  {name} = alloca {struct}, align 8, addrspace(5)\n"
                      f"  {name}.value = load {struct}, ptr addrspace(4) {name}.given, align 8\n"
                      f"  store {struct} {name}.value, ptr addrspace(5) {name}, align 8\n")
        return f"ptr addrspace(4) byref({struct}) align 8 {name}.given"

    head = re.sub(r'ptr addrspace\(5\) [^,()]*byval\((?P<struct>%"[^"]*"|%[\w.:]+)\) align \d+ (?P<name>%[\w.]+)',
                  argument, head)
    return head + "".join(copies)
