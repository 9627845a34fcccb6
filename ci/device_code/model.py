"""An estimate of how fast attention tiles are on GPUs that nobody has measured: which to try first.

    PYTHONPATH=ci python3 -m device_code.model sm_80 attention_forward 64

docs/tuning.md explains it. It ranks; it does not predict a speed. What it ranks first must still pass ci/device-code.
"""

import itertools
import sys

from . import targets as devices
from .targets import up

LENGTH = 197  # keys and queries of ViT at 224 x 224 with patches of 16
LOAD_LATENCY = 30  # cycles from a load of local memory to its use
BLOCK_OVERHEAD = 800  # cycles to bring in a block from global memory, with its barriers
# Multiply-adds and loads of local memory that a core does in a cycle, counted in lanes.
RATES = {"xe-lp": (128, 32), "xe-hpg": (128, 32), "xe-hpc": (128, 32), "sm_75": (64, 32), "sm_80": (64, 32),
         "sm_86": (128, 32), "sm_89": (128, 32), "sm_90": (128, 32), "gfx90a": (64, 32), "gfx942": (64, 32),
         "gfx1030": (64, 32), "gfx1100": (64, 32)}
GLOBAL_BYTES = 32  # of a core in a cycle, from the second-level cache


def product_rate(target, rows, columns, threads, width, conflicts):
    """Part of the core's multiply-adds that register tiles reach: by local loads, and by latency."""
    adds, loads = RATES[target.architecture]
    work = rows * columns
    by_loads = work / (rows + columns * conflicts) * loads / adds
    issue = (work + rows + columns) * width / (adds / 4)  # a thread issues to a quarter of the core
    by_latency = threads * work * width / (LOAD_LATENCY + issue) / adds
    return min(1.0, by_loads, by_latency)


def worth(target, steps, rows, columns, width):
    """Part of the time that a block's products take, which are so many steps of a register tile."""
    cycles = steps * (LOAD_LATENCY + (rows * columns + rows + columns) * width / (RATES[target.architecture][0] / 4))
    return cycles / (cycles + BLOCK_OVERHEAD)


def filled(count, block):
    return count / up(count, block)


def pitch(floats):
    return (((floats + 15) // 16) | 1) * 16


def resident_threads(target, work_items, floats, width):
    local = 4 * floats
    if local > target.local_bytes or work_items > target.max_work_group:
        return 0
    # Registers come from the compiler; tiles of the sizes tried here need fewer than 128.
    part, _ = target.occupancy(work_items, local, width, 128 if target.vendor != "intel" else 0)
    return part * target.core_threads


def forward(target, width, d):
    for lanes, columns, rows, key_block, groups in itertools.product(
            lanes_of(target), (1, 2, 4), (2, 4, 8), (4, 8, 16, 32, 48, 64), (1, 2, 4, 8)):
        if key_block % rows:
            continue
        tile = lanes * columns
        queries, channels = tile * groups, up(d, lanes)
        floats = key_block * (d + channels) + queries * (d + channels) + groups * key_block * tile + 3 * queries
        threads = resident_threads(target, lanes * groups, floats, width)
        if not threads:
            continue
        # Tiles that share a sub-group lie a multiple of 32 banks apart.
        rate = product_rate(target, rows, columns, threads, width, max(1, width // lanes))
        traffic = min(1.0, GLOBAL_BYTES * queries / 4 / RATES[target.architecture][0])
        idle = filled(lanes * groups, width)
        steps = d * key_block // rows + key_block * tile // rows * up(channels, tile) // tile
        idle *= worth(target, steps, rows, columns, width)
        useful = filled(LENGTH, queries) * filled(LENGTH, rows) * filled(d, min(tile, channels)) * idle
        yield min(rate, traffic) * useful, (lanes, columns, rows, key_block, 1, groups, 0)


def backward(target, width, d):
    for lanes, columns, rows, query_block, panels, groups in itertools.product(
            lanes_of(target), (1, 2, 4), (2, 4, 8), (2, 4, 8, 16, 32), (1, 2, 4), (1, 2, 4, 8, 16)):
        tile = lanes * columns
        key_block = tile * panels
        if query_block % rows or query_block // rows < groups and key_block // rows < groups:
            continue
        padded, padded_keys = up(d, tile), up(key_block, rows)
        floats = (2 * panels * d * (tile if groups == 1 else tile | 1) + key_block * pitch(padded) +
                  2 * query_block * (pitch(padded) + pitch(padded_keys)) + query_block * tile +
                  2 * padded_keys * padded)
        threads = resident_threads(target, lanes * groups, floats, width)
        if not threads:
            continue
        rate = product_rate(target, rows, columns, threads, width, 1)
        # Three of five products have a row tile for each `rows` queries, two for each `rows` keys.
        busy = 0.6 * filled(query_block // rows, groups) + 0.4 * filled(padded_keys // rows, groups)
        traffic = min(1.0, GLOBAL_BYTES * key_block / 2 / RATES[target.architecture][0])
        steps = 5 * d * query_block * key_block // (rows * tile * groups)
        busy *= worth(target, steps, rows, columns, width)
        useful = (filled(LENGTH, query_block) * filled(LENGTH, key_block) * filled(d, tile) * busy *
                  filled(lanes * groups, width))
        yield min(rate, traffic) * useful, (lanes, columns, rows, query_block, key_block, groups)


def lanes_of(target):
    if len(target.sub_group_sizes) > 1:
        return target.sub_group_sizes
    return tuple(lanes for lanes in (4, 8, 16, 32, 64) if lanes <= target.sub_group_sizes[0])


def ranked(target, kernel, d):
    candidates = {"attention_forward": forward, "attention_backward": backward}[kernel]
    found = []
    for width in target.sub_group_sizes:
        found += [(rate, numbers) for rate, numbers in candidates(target, width, d)
                  if len(target.sub_group_sizes) == 1 or numbers[0] == width]
    return sorted(found, reverse=True)


if __name__ == "__main__":
    for estimate, tile_numbers in ranked(devices.named(sys.argv[1]), sys.argv[2], int(sys.argv[3]))[:10]:
        print(f"{100 * estimate:5.1f} %  {tile_numbers}")
