"""The report: Markdown, a table of kernels for each target, and what fails."""

import textwrap
from collections import defaultdict


def span(values):
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low}-{high}"


def kilobytes(values):
    low, high = min(values) / 1024, max(values) / 1024

    def text(value):
        return f"{value:.1f}".removesuffix(".0")

    return text(low) if text(low) == text(high) else f"{text(low)}-{text(high)}"


def percents(values):
    return span([round(100 * value) for value in values])


def worst_of(rows):
    """The row with the lowest occupancy, and of those the one with the most registers."""
    return min(rows, key=lambda row: (row["occupancy"], -row["registers"], row["type"]))


def by(rows, *keys):
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def wrapped(text):
    """As ci/prose wants it; a list item goes on behind its mark."""
    return textwrap.wrap(text, 120, subsequent_indent="  " if text.startswith("- ") else "", break_long_words=False,
                         break_on_hyphens=False)


def markdown(rows, failures, targets, facts, command):
    lines = ["# Device code of every kernel, without the hardware", "",
             f"Written by `{command}`; do not edit. Every kernel at every record of the GPU tables was compiled to",
             "machine code by ocloc (Intel), LLVM and ptxas (NVIDIA) or LLVM (AMD), from the SPIR-V that the library",
             "hands to a driver. Nothing here was run or measured. DPC++ and AdaptiveCpp bring their own LLVM, so their",
             "register counts differ a little.", ""]
    for fact in facts:
        lines += wrapped(f"- {fact}")
    lines += ["", "**It fails** on a spill or a private array in memory, an undefined symbol, SPIR-V that is not valid,",
              "an instruction or sub-group size that the device lacks, a work-group or local memory beyond its limits.",
              f"Here: **{len(failures) or 'no'} failure{'' if len(failures) == 1 else 's'}** in {len(rows)} kernels.", ""]
    if failures:
        lines += ["| target | table | kernel | reason |", "|---|---|---|---|"]
        shown = by(failures, "target", "table", "functor", "reason")
        for (target, table, _, reason), same in list(shown.items())[:60]:
            more = f" and {len(same) - 1} more like it" if len(same) > 1 else ""
            lines.append(f"| {target} | {table} | `{same[0]['type']}`{more} | {reason} |")
        if len(shown) > 60:
            lines.append(f"| | | | … and {len(shown) - 60} more kinds |")
        lines.append("")
    lines += ["## Targets", "",
              "| target | devices | sub-groups | work-group | local memory of a work-group / core | threads of a core | "
              "kernels | mean occupancy | most registers |", "|---|---|---|---|---|---|---|---|---|"]
    for target in targets:
        own = [row for row in rows if row["target"] == target.name]
        if own:
            mean = sum(row["occupancy"] for row in own) / len(own)
            lines.append(f"| {target.name} | {target.examples} | {', '.join(map(str, target.sub_group_sizes))} | "
                         f"{target.max_work_group} | {target.local_bytes // 1024} / {target.core_local_bytes // 1024} KB"
                         f" | {target.core_threads} | {len(own)} | {100 * mean:.0f} % | "
                         f"{max(row['registers'] for row in own)} |")
    lines += ["", *wrapped(
        "Occupancy is the part of a core's threads (warps, waves, EU threads) that fit at once, given registers, local "
        "memory and the size of the work-groups: `ci/device_code/targets.py` has the arithmetic. Intel's compiler gives "
        "each thread 128 registers whatever it uses, so only spills tell there. Ranges go over element types, scores and "
        "head sizes; `limit` is what limits the kernel with the lowest occupancy, which is named. A scalar spill (AMD) "
        "goes to lanes of a vector register, not to memory."), ""]
    for target in targets:
        own = [row for row in rows if row["target"] == target.name]
        if not own:
            continue
        columns = {
            "kernel": lambda same: same[0]["functor"], "variants": len,
            "lanes": lambda same: span([row["width"] for row in same]),
            "work-group": lambda same: span([row["work_items"] for row in same]),
            "registers": lambda same: span([row["registers"] for row in same]),
            "spills": lambda same: span([row["spill_bytes"] for row in same]),
            "scalar spills": lambda same: span([row["scalar_spills"] for row in same]),
            "local KB": lambda same: kilobytes([row["local_bytes"] for row in same]),
            "occupancy %": lambda same: percents([row["occupancy"] for row in same]),
            "limit": lambda same: worst_of(same)["limit"], "lowest": lambda same: f"`{worst_of(same)['type']}`"}
        if target.vendor != "amd":
            del columns["scalar spills"]
        lines += [f"## {target.name}: {target.examples}", "", "| " + " | ".join(columns) + " |",
                  "|---" * len(columns) + "|"]
        for _, same in sorted(by(own, "functor").items()):
            lines.append("| " + " | ".join(str(cell(same)) for cell in columns.values()) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
