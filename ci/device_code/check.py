"""What must hold for a kernel on a target."""

# Bytes a lane. OpenCL's own functions, pow for one, keep a few; an array of ours that is indexed while running would be
# larger.
PRIVATE_ALLOWED = 32


def before_compiling(kernel, target):
    """Reasons why a launch cannot work there, whatever the compiler makes of the kernel."""
    wanted = kernel["sub_group_size"]
    if wanted and not target.runs_sub_groups_of(wanted):
        yield f"sub-groups of {wanted}, and the device has " + ", ".join(str(size) for size in target.sub_group_sizes)
    if kernel["work_items"] > target.max_work_group:
        yield f"work-groups of {kernel['work_items']}, and the device takes {target.max_work_group}"
    if kernel["local_bytes"] > target.local_bytes:
        yield f"{kernel['local_bytes']} bytes of local memory, and a work-group may have {target.local_bytes}"


def after_compiling(kernel, target, resources):
    if resources.spill_bytes > 0:
        yield f"spills {resources.spill_bytes} bytes of registers to memory"
    if resources.private_bytes > PRIVATE_ALLOWED:
        yield f"keeps {resources.private_bytes} bytes of private arrays in memory"
    local = kernel["local_bytes"] + resources.static_local_bytes
    if kernel["local_bytes"] <= target.local_bytes < local:
        yield f"{local} bytes of local memory with its own, and a work-group may have {target.local_bytes}"
    wanted = kernel["sub_group_size"]
    if wanted and resources.width != wanted and target.runs_sub_groups_of(wanted) != "several in one":
        yield f"was compiled {resources.width} lanes wide and not {wanted}"
    if resources.registers > target.max_registers:
        yield f"{resources.registers} registers, and a work-item has {target.max_registers}"
    part, limit = target.occupancy(kernel["work_items"], local, resources.width or target.width(0),
                                   resources.registers)
    if part == 0:
        yield f"no work-group fits a core: {limit}"


# Capabilities of a SPIR-V module that stand for instructions which not every device has. f16 in memory (Float16Buffer) every
# OpenCL device has, and its conversions (Float16) all of the targets.
def missing_instructions(capabilities, target):
    if "Float64" in capabilities and not target.fp64:
        yield "computes in f64, and the device has no instructions for it"
    for name in sorted(capabilities & {"AtomicFloat32AddEXT", "AtomicFloat64AddEXT", "JointMatrixINTEL",
                                       "CooperativeMatrixKHR", "SubgroupBlockIOINTEL"}):
        yield f"needs the capability {name}, which not every device of the backend has"
