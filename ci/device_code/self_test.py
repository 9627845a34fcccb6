"""Kernels that must fail, and some that must not: shows that the check can fail."""

import json
import pathlib
import subprocess
import tempfile

from . import __main__ as device_code, amd, check, compile as compiling, nvidia, targets as devices, tools


def forward(head_size, lanes, columns, rows, key_block, sub_groups):
    return {"functor": "AttentionForward", "score": "relu", "dtype": "f32", "head_size": head_size,
            "numbers": {"lanes": lanes, "columns": columns, "rows": rows, "key_block": key_block, "query_tiles": 1,
                        "sub_groups": sub_groups, "resident": 0}}


UNKNOWN_TYPE = "an element type that is none"

# What it is, the kernel, where, and what the failure says (empty: it passes).
KERNELS = [
    ("a sound tile", forward(64, 16, 1, 4, 8, 1), ("dg2-g10", "pvc", "sm_80", "gfx90a", "gfx1100"), ""),
    ("a register tile of 8 x 8", forward(16, 16, 8, 8, 8, 1), ("dg2-g10",), "spills"),
    ("a register tile of 16 x 16", forward(16, 8, 16, 16, 16, 1), ("sm_80", "gfx1100"), "spills"),
    ("four sub-groups at head size 256", forward(256, 32, 1, 4, 8, 4), ("sm_80", "gfx90a"), "bytes of local memory"),
    ("sub-groups of 8", forward(64, 8, 1, 4, 8, 1), ("pvc",), "sub-groups of 8"),
    ("sub-groups of 64", forward(64, 64, 1, 4, 8, 1), ("gfx1100",), "sub-groups of 64"),
    ("sub-groups of 12", forward(64, 12, 1, 4, 8, 1), ("sm_80",), "sub-groups of 12"),
    ("64 sub-groups of 32", forward(8, 32, 1, 4, 4, 64), ("sm_80",), "work-groups of 2048"),
    (UNKNOWN_TYPE, forward(64, 16, 1, 4, 8, 1), ("sm_80",), "does not compile"),
]

CALLS_NOTHING = """
target datalayout = "e"
target triple = "spir64-unknown-unknown"
declare spir_func float @nowhere(float)
define spir_kernel void @__sycl_kernel_lost(ptr addrspace(1) %out) {
  %value = call spir_func float @nowhere(float 1.0)
  store float %value, ptr addrspace(1) %out
  ret void
}
"""


def kernels_fail(program, jobs, vendors):
    """One line for each expectation that is not met."""
    places = {name: devices.named(name) for case in KERNELS for name in case[2]}
    chosen = [target for target in places.values() if target.vendor in vendors]
    names = [target.name for target in chosen]
    described = json.loads(subprocess.run([program, "describe"], input=json.dumps([case[1] for case in KERNELS]),
                                          stdout=subprocess.PIPE, text=True, check=True).stdout)
    wanted = []
    for kernel, (what, _, where, _) in zip(described, KERNELS):
        if what == UNKNOWN_TYPE:
            kernel["type"] = kernel["type"].replace("float", "quarter")
        wanted.append(device_code.Wanted(kernel))
        wanted[-1].tables = {name: "self-test" for name in where if name in names}
    _, failures = device_code.Examination(program, chosen, jobs).examine(wanted)
    for kernel, (what, _, where, says) in zip(described, KERNELS):
        for name in (name for name in where if name in names):
            reasons = [failure["reason"] for failure in failures
                       if failure["type"] == kernel["type"] and failure["target"] == name]
            print(f"  {name:8} {what:34} {'; '.join(reasons)[:110] or 'passes'}")
            if not says and reasons or says and not any(says in reason for reason in reasons):
                yield f"{what} on {name}: expected '{says or 'a pass'}'"


def refused(what, action, says):
    try:
        action()
    except tools.ToolError as error:
        print(f"  {'':8} {what:34} {str(error)[:110]}")
        if says not in str(error):
            yield f"{what}: expected '{says}'"
        return
    yield f"{what} was accepted"


def run(program, jobs, vendors):
    """`vendors` are those whose tools are there."""
    print("== Self-test: what must fail")
    wrong = list(kernels_fail(program, jobs, vendors))
    with tempfile.TemporaryDirectory(prefix="sylvit-device-code-") as name:
        folder = pathlib.Path(name)
        for name, vendor, target in (("nvidia", nvidia, "sm_80"), ("amd", amd, "gfx90a")):
            if name not in vendors:
                continue
            wrong += refused(f"an undefined function, {target}",
                             lambda: vendor.compiled(CALLS_NOTHING, devices.named(target), folder), "undefined symbols")
        broken = folder / "broken.spv"
        broken.write_bytes(bytes.fromhex("03022307") + bytes(16))
        wrong += refused("SPIR-V that is not valid", compiling.Module(broken, {}).capabilities, "spirv-val")
    for capability, name, expected in (("Float64", "dg2-g10", True), ("Float64", "pvc", False),
                                       ("Kernel", "dg2-g10", False), ("Float16Buffer", "tgllp", False),
                                       ("AtomicFloat32AddEXT", "sm_80", True)):
        if bool(list(check.missing_instructions({capability}, devices.named(name)))) != expected:
            wrong.append(f"{capability} on {name}")
    for line in wrong:
        print("NOT AS EXPECTED  " + line)
    print("== Self-test: " + ("failed" if wrong else "as expected"))
    return 1 if wrong else 0
