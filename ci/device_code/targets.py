"""The GPUs that device code is checked for, and how many threads of a kernel one of their cores holds.

A core is what a work-group runs on: a streaming multiprocessor (NVIDIA), a compute unit (AMD), a Xe core (Intel). The
figures are the vendors': CUDA programming guide (technical specifications per compute capability), AMD's ISA guides,
Intel's oneAPI GPU optimization guide. Occupancy is the part of a core's threads (warps, waves, EU threads) that can be
resident at once; it says how well latency can be hidden, and nothing about traffic.
"""

from dataclasses import dataclass


def up(value, step):
    return (value + step - 1) // step * step


@dataclass(frozen=True)
class Target:
    name: str  # what its compiler calls it
    vendor: str
    architecture: str  # what tuning tables call it
    examples: str
    backends: tuple
    sub_group_sizes: tuple
    max_work_group: int
    local_bytes: int  # that one work-group may have
    core_local_bytes: int
    core_threads: int  # warps, waves or EU threads that a core holds
    core_groups: int
    # Registers as the vendor counts them: of a core in 32-bit words per lane group (NVIDIA: all lanes together).
    registers: int = 0
    register_step: int = 1
    max_registers: int = 255
    local_reserved: int = 0
    local_step: int = 1
    fp64: bool = True

    def width(self, sub_group_size):
        """Lanes of a thread: the kernel's own sub-group size, else what the compiler takes."""
        return sub_group_size or self.sub_group_sizes[-1]

    def runs_sub_groups_of(self, wanted):
        """As runtime/grid_check.cpp has it: where the hardware has one size, several narrower tiles share it."""
        if wanted in self.sub_group_sizes:
            return "as they are"
        alone = len(self.sub_group_sizes) == 1 and self.sub_group_sizes[0] % wanted == 0
        return "several in one" if alone else ""

    def threads_of(self, work_items, width):
        return up(work_items, width) // width

    def occupancy(self, work_items, local_bytes, width, registers):
        """Resident threads over all that a core could hold, and what limits them."""
        threads = self.threads_of(work_items, width)
        limits = {"threads": self.core_threads // threads, "work-groups": self.core_groups}
        if local_bytes > 0:
            limits["local memory"] = self.core_local_bytes // (up(local_bytes, self.local_step) + self.local_reserved)
        if self.vendor == "nvidia" and registers > 0:
            limits["registers"] = self.registers // (up(registers * width, self.register_step) * threads)
        elif self.vendor == "amd" and registers > 0:
            # Each of the core's four (CDNA) or two (RDNA) SIMDs has its own file and its own waves.
            simds = 4 if self.sub_group_sizes == (64,) else 2
            waves = min(self.core_threads // simds, self.registers // up(registers, self.register_step))
            limits["registers"] = waves * simds // threads
        limit = min(limits, key=limits.get)
        return min(1.0, limits[limit] * threads / self.core_threads), limit


def nvidia(name, examples, warps, groups, shared_kb):
    return Target(name, "nvidia", name, examples, ("dpcpp-cuda", "acpp-cuda"), (32,), 1024, 48 * 1024,
                  shared_kb * 1024, warps, groups, registers=65536, register_step=256,
                  local_reserved=0 if name == "sm_75" else 1024, local_step=128)


def cdna(name, examples):
    return Target(name, "amd", name, examples, ("dpcpp-hip", "acpp-hip"), (64,), 1024, 64 * 1024, 64 * 1024,
                  32, 32, registers=512, register_step=8, max_registers=512, local_step=512)


def rdna(name, examples, registers, step):
    # In its WGP mode two compute units share 128 KB; counted here for one of them.
    return Target(name, "amd", name, examples, ("dpcpp-hip", "acpp-hip"), (32,), 1024, 64 * 1024, 64 * 1024,
                  32, 32, registers=registers, register_step=step, max_registers=256, local_step=512)


def intel(name, architecture, examples, sizes, work_group, local_kb, core_local_kb, threads, fp64):
    # 128 registers a thread, whatever a kernel uses (256 only for those that ask for the large register file).
    return Target(name, "intel", architecture, examples, ("dpcpp-intel-gpu",), sizes, work_group, local_kb * 1024,
                  core_local_kb * 1024, threads, 32, max_registers=128, local_step=1024, fp64=fp64)


TARGETS = [
    intel("tgllp", "xe-lp", "Iris Xe, UHD 7xx", (8, 16, 32), 512, 64, 64, 112, False),
    intel("dg2-g10", "xe-hpg", "Arc A770, Flex 170", (8, 16, 32), 1024, 64, 128, 128, False),
    intel("pvc", "xe-hpc", "Data Center GPU Max", (16, 32), 1024, 128, 128, 64, True),
    nvidia("sm_75", "T4, RTX 20", 32, 16, 64),
    nvidia("sm_80", "A100, A30", 64, 32, 164),
    nvidia("sm_86", "RTX 30, A10", 48, 16, 100),
    nvidia("sm_89", "RTX 40, L4", 48, 24, 100),
    nvidia("sm_90", "H100, H200", 64, 32, 228),
    cdna("gfx90a", "Instinct MI200"),
    cdna("gfx942", "Instinct MI300"),
    rdna("gfx1030", "RX 6800, 6900", 1024, 8),
    rdna("gfx1100", "RX 7900", 1536, 24),
]

# Those that the issue tracker asks for; the others of a family differ in figures but not in instructions that we use.
USUAL = ["tgllp", "dg2-g10", "pvc", "sm_80", "sm_90", "gfx90a", "gfx942", "gfx1100"]


def named(name):
    for target in TARGETS:
        if target.name == name:
            return target
    raise SystemExit(f"ci/device-code: unknown target '{name}'; there are " + ", ".join(t.name for t in TARGETS))
