"""Checks what the shared libraries of an installed sylvit export: what the public headers declare, and nothing else.

    check_exports.py <prefix>
"""
import pathlib
import re
import subprocess
import sys

# What a caller of the C++ and of the C interface cannot do without.
NEEDED = {
    "libsylvit.so": ["sylvit::Device::open(", "sylvit::attention_forward(", "sylvit::attention_backward(", "sylvit::gemm(",
                     "sylvit::Vit::forward(", "sylvit::VitWeights::load(", "typeinfo for sylvit::Error", "sylvit_model_run",
                     "sylvit_last_error", "sylvit_attention_forward", "sylvit::KernelSource::read("],
    "libsylvit_images.so": ["sylvit::read_image(", "sylvit::transform_image("],
    "libsylvit_data.so": ["sylvit::ImageSet::open("],
}


def exported(library):
    """The demangled names of the defined dynamic symbols."""
    lines = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return [line.split(maxsplit=2)[2] for line in lines.splitlines()]


def problem_of(symbol, declared):
    """Why the symbol should not be there; None if it may."""
    name = re.sub(r"^(typeinfo|typeinfo name|vtable|VTT) for ", "", symbol)
    if re.fullmatch(r"sylvit_[a-z_]+", name):
        return None if name in declared else "is not in sylvit.h"
    # The qualified name, without arguments and ABI tags: the part before the first parenthesis that is no operator().
    qualified = re.sub(r"\[abi:\w+\]", "", name).split("(")[0]
    parts = qualified.split("::")
    if parts[0] != "sylvit" or len(parts) < 2:
        return "is not in namespace sylvit"
    if parts[1] in {"runtime", "nn", "data", "io", "blas", "tuning", "kernels", "reference", "c", "cli"}:
        return f"is in the library's own namespace sylvit::{parts[1]}"
    for part in parts[1:]:
        part = part.lstrip("~")
        if part.startswith("operator"):
            continue
        if part not in declared:
            return f"names {part}, which no public header declares"
    return None


def main(prefix):
    headers = pathlib.Path(prefix, "include", "sylvit")
    declared = set()
    for header in headers.glob("*.h*"):
        declared |= set(re.findall(r"\w+", header.read_text()))
    failures = []
    for library, needed in NEEDED.items():
        symbols = exported(str(pathlib.Path(prefix, "lib", library)))
        for symbol in symbols:
            problem = problem_of(symbol, declared)
            if problem:
                failures.append(f"{library} exports {symbol}, which {problem}")
        failures += [f"{library} does not export {name}" for name in needed
                     if not any(symbol.startswith(name) for symbol in symbols)]
    for failure in failures[:20]:
        print(f"check_exports: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
