"""Compiles every kernel of the GPU tables for GPUs that are not there, and checks what comes out.

Started by ci/device-code, which builds the program that lists kernels and writes their SPIR-V.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

from . import acpp, check, compile as compiling, report, targets as devices, tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {"intel": "Intel", "nvidia": "NVIDIA", "amd": "AMD"}
BATCH = 8  # kernels in a module: the front end's start costs as much as three of them


def arguments():
    parser = argparse.ArgumentParser(prog="ci/device-code", description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help="every kernel at every record (the default)")
    what.add_argument("--subset", action="store_true", help="some of each kind on one target a vendor: for ci/test")
    what.add_argument("--self-test", action="store_true", help="bad kernels, each of which must fail")
    parser.add_argument("--target", action="append", metavar="NAME",
                        help="only these targets (repeatable); every: also those beyond the usual eight")
    parser.add_argument("--kernel", action="append", metavar="NAME", help="only these kernels of the tables")
    parser.add_argument("--backend", action="append", metavar="NAME", help="only the tables of these backends")
    parser.add_argument("--output", metavar="FILE", help="write the report there (- for standard output)")
    parser.add_argument("--json", metavar="FILE", help="write one row for each compiled kernel there")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    return parser.parse_args()


def chain_of(backend, architecture):
    """The table files of a device, the most specific first: those of its architecture, then the backend's default."""
    files = []
    for path in sorted((ROOT / "backends").glob("*/*.json")):
        family = json.loads(path.read_text()).get("family", {})
        serves = backend in family.get("backends", [path.parent.name])
        if path.stem != "default" and serves and architecture in family.get("architectures", [path.stem]):
            files.append(path)
    return files + [ROOT / "backends" / backend / "default.json"]


def table_name(files):
    return " + ".join(f"{path.parent.name}/{path.stem}" for path in files)


class Wanted:
    """A kernel with the targets it must work on and, for each, the table that says so."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.tables = {}


def collect(program, chosen, backends, kernels):
    wanted = {}
    lists = {}
    for target in chosen:
        for backend in target.backends:
            if backends and backend not in backends:
                continue
            files = chain_of(backend, target.architecture)
            key = tuple(files)
            if key not in lists:
                lists[key] = json.loads(subprocess.run(
                    [program, "list", table_name(files), *map(str, files)], stdout=subprocess.PIPE, text=True,
                    check=True).stdout)
            for kernel in lists[key]:
                if kernels and kernel["record_kernel"] not in kernels:
                    continue
                one = wanted.setdefault(kernel["entry"], Wanted(kernel))
                one.tables.setdefault(target.name, table_name(files))
    return list(wanted.values())


def some_of_each(wanted):
    """A representative subset: of each functor the largest and the smallest f32 kernel, and one of 16 bits."""
    kinds = {}
    for one in wanted:
        kinds.setdefault((one.kernel["functor"], tuple(sorted(one.tables))), []).append(one)
    result = []
    for _, same in sorted(kinds.items()):
        heavy = {"AttentionForward": "Softmax", "AttentionBackwardQueries": "Softmax", "AttentionBackwardKeys": "Relu"}
        score = heavy.get(same[0].kernel["functor"])
        scored = [one for one in same if score is None or f"<{score}," in one.kernel["type"]]
        size = lambda one: (one.kernel["local_bytes"], one.kernel["work_items"], one.kernel["type"])
        floats = sorted((one for one in scored if "float" in one.kernel["type"]), key=size)
        halves = sorted((one for one in scored if "bf16" in one.kernel["type"]), key=size)
        result += {id(one): one for one in floats[:1] + floats[-1:] + halves[-1:]}.values()
    return result


def batches_of(wanted, size):
    """Kernels of one functor for the same targets go in one module."""
    groups = {}
    for one in wanted:
        key = (one.kernel["functor"], one.kernel["sub_group_size"], tuple(sorted(one.tables)))
        groups.setdefault(key, []).append(one)
    batches = []
    for _, same in sorted(groups.items()):
        same.sort(key=lambda one: one.kernel["type"])
        batches += [same[start:start + size] for start in range(0, len(same), size)]
    return batches


class Progress:
    def __init__(self, total):
        self.total, self.done, self.last, self.start = total, 0, 0.0, time.monotonic()

    def step(self, what):
        self.done += 1
        now = time.monotonic()
        if sys.stderr.isatty() and (now - self.last > 0.5 or self.done == self.total):
            self.last = now
            end = "\n" if self.done == self.total else ""
            print(f"\r  {self.done}/{self.total} {what[:60]:60} {now - self.start:4.0f} s", end=end, file=sys.stderr,
                  flush=True)


class Examination:
    """Rows of compiled kernels, and failures."""

    def __init__(self, program, chosen, jobs):
        self.program, self.jobs = program, jobs
        self.targets = {target.name: target for target in chosen}
        self.fingerprints = {vendor: compiling.fingerprint(vendor) for vendor in {target.vendor for target in chosen}}
        self.rows, self.failures = [], []

    def fail(self, one, target, reason):
        self.failures.append({"target": target, "table": one.tables[target], "functor": one.kernel["functor"],
                              "type": one.kernel["type"], "reason": reason})

    def examine(self, wanted):
        """What a device cannot launch is not compiled for it."""
        possible = []
        for one in wanted:
            rest = Wanted(one.kernel)
            for name, table in one.tables.items():
                reasons = list(check.before_compiling(one.kernel, self.targets[name]))
                for reason in reasons:
                    self.fail(one, name, reason)
                if not reasons:
                    rest.tables[name] = table
            if rest.tables:
                possible.append(rest)
        self.compile(possible, BATCH)
        return self.rows, self.failures

    def compile(self, wanted, batch):
        """A module that a tool refuses is taken apart, so that one bad kernel does not hide the others."""
        apart = {}

        def refuse(one, target, reason):
            if batch == 1:
                self.fail(one, target, reason)
            else:
                alone = apart.setdefault(one.kernel["entry"], Wanted(one.kernel))
                alone.tables[target] = one.tables[target]

        work = []
        batches = dict(enumerate(batches_of(wanted, batch)))
        answers = compiling.spirv_modules(self.program, [
            {"name": name, "kernels": [one.kernel for one in same]} for name, same in batches.items()], self.jobs)
        for name, same in batches.items():
            if "error" in answers[name]:
                for one in same:
                    for target in one.tables:
                        refuse(one, target, "does not compile to SPIR-V: " + tools.shortened(answers[name]["error"]))
                continue
            modules = [compiling.Module(path, self.fingerprints) for path in answers[name]["files"]]
            work += [(modules, self.targets[target], same) for target in same[0].tables]
        progress = Progress(len(work))

        def compile_one(item):
            modules, target, same = item
            resources, capabilities, trouble = {}, set(), ""
            try:
                for module in modules:
                    capabilities |= module.capabilities()
                    resources |= module.resources(target)
            except tools.ToolError as error:
                trouble = str(error)
            progress.step(f"{target.name} {same[0].kernel['functor']}")
            return target, same, resources, capabilities, trouble

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for target, same, resources, capabilities, trouble in pool.map(compile_one, work):
                for one in same:
                    if trouble:
                        refuse(one, target.name, trouble)
                    elif one.kernel["entry"] not in resources:
                        self.fail(one, target.name, "is missing from the compiled module")
                    else:
                        self.check(one, target, resources[one.kernel["entry"]], capabilities)
        if apart:
            self.compile(list(apart.values()), 1)

    def check_acpp(self, one, target, found):
        """AdaptiveCpp's kernel asks for no sub-group size; its row does not replace the other's."""
        for reason in check.after_compiling({**one.kernel, "sub_group_size": 0}, target, found):
            self.fail(one, target.name, "AdaptiveCpp: " + reason)

    def check(self, one, target, found, capabilities):
        kernel = one.kernel
        for reason in [*check.missing_instructions(capabilities, target), *check.after_compiling(kernel, target, found)]:
            self.fail(one, target.name, reason)
        local = kernel["local_bytes"] + found.static_local_bytes
        occupancy, limit = target.occupancy(kernel["work_items"], local, found.width, found.registers)
        self.rows.append({"target": target.name, "table": one.tables[target.name], "functor": kernel["functor"],
                          "type": kernel["type"], "record_kernel": kernel["record_kernel"],
                          "work_items": kernel["work_items"], **found.to_json(), "local_bytes": local,
                          "occupancy": occupancy, "limit": limit})


def show_failures(failures):
    kinds = report.by(failures, "target", "table", "functor", "reason")
    for (target, table, _, reason), same in kinds.items():
        more = f" (and {len(same) - 1} more like it)" if len(same) > 1 else ""
        print(f"FAILED  {target}  {table}\n    {same[0]['type']}{more}\n    {reason}")


def main():
    options = arguments()
    program = os.environ["SYLVIT_DEVICE_VARIANTS"]
    missing = {vendor: why for vendor in compiling.VENDORS if (why := compiling.why_not(vendor))}
    if not options.target:  # what was asked for by name is not skipped
        for vendor, why in missing.items():
            print(f"== Skipped, device code for {NAMES[vendor]}: {why}", flush=True)
        if len(missing) == len(compiling.VENDORS):
            return 0
    if options.self_test:
        from . import self_test
        return self_test.run(program, options.jobs, compiling.VENDORS.keys() - missing.keys())
    names = options.target or (["dg2-g10", "sm_80", "gfx90a"] if options.subset else devices.USUAL)
    chosen = devices.TARGETS if "every" in names else [devices.named(name) for name in names]
    for target in chosen if options.target else ():
        if target.vendor in missing:
            raise SystemExit(f"ci/device-code: {target.name} cannot be compiled for: {missing[target.vendor]}")
    chosen = [target for target in chosen if target.vendor not in missing]
    if options.backend:
        chosen = [target for target in chosen if set(target.backends) & set(options.backend)]
    wanted = collect(program, chosen, options.backend, options.kernel)
    if options.subset:
        wanted = some_of_each(wanted)
    if not wanted:
        raise SystemExit("ci/device-code: nothing matches these options")
    start = time.monotonic()
    print(f"== {len(wanted)} kernels for " + ", ".join(target.name for target in chosen), flush=True)
    examination = Examination(program, chosen, options.jobs)
    rows, failures = examination.examine(wanted)
    print("  " + acpp.facts()[0], flush=True)
    acpp.examine(wanted, chosen, examination.check_acpp, examination.fail)
    seconds = time.monotonic() - start
    vendors = sorted({target.vendor for target in chosen})
    facts = [f"{datetime.date.today()}; " + "; ".join(dict.fromkeys(
        line for vendor in vendors for line in compiling.VENDORS[vendor].versions()))]
    facts += acpp.facts()
    if options.output:
        text = report.markdown(rows, failures, chosen, facts, "ci/device-code" + (" --subset" * options.subset))
        if options.output == "-":
            print(text)
        else:
            pathlib.Path(options.output).write_text(text)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows, "failures": failures}, indent=1))
    show_failures(failures)
    print(f"== {len(rows)} kernels compiled in {seconds:.0f} s, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
