"""What the programs of perf/ share: options, ratios, the printed table and the results file (perf/results_schema.py).

A new run takes the place of the rows of the same name. No third-party modules.
"""

import datetime
import json
import os
import pathlib
import statistics
import sys

from provenance import ROOT, command, commit, machine, versions
from results_schema import MACHINE, SCHEMA, all_mistakes, load, mistakes


def digits(value):
    return float(f"{value:.4g}")


def quartiles(samples):
    if len(samples) < 2:
        return None
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return [digits(first), digits(third)]


def summary(samples):
    """What a row says of the times of one contestant."""
    return {"best": digits(min(samples)), "median": digits(statistics.median(samples)), "quartiles": quartiles(samples),
            "samples": [digits(sample) for sample in samples]}


def ratio(theirs, ours):
    """How many times as fast ours are: the median of the rounds' ratios, and their quartiles."""
    ratios = [their / our for their, our in zip(theirs, ours)]
    return {"value": digits(statistics.median(ratios)), "quartiles": quartiles(ratios)}


def layout(value, indent=0):
    """JSON whose objects stand in one line where they fit."""
    line = json.dumps(value, ensure_ascii=False)
    numbers = isinstance(value, list) and all(isinstance(item, (int, float)) for item in value)
    if len(line) + indent <= 110 or not isinstance(value, (dict, list)) or numbers:
        return line
    space = " " * (indent + 2)
    if isinstance(value, dict):
        items = [f"{json.dumps(key, ensure_ascii=False)}: {layout(item, indent + 2)}" for key, item in value.items()]
    else:
        items = [layout(item, indent + 2) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{space}" + f",\n{space}".join(items) + f"\n{' ' * indent}{closing}"


def add_options(parser):
    parser.add_argument("--sylvit", default="build/sylvit", help="the program")
    parser.add_argument("--machine", metavar="NAME", help="the machine's name (default: made of its CPU and cores)")
    parser.add_argument("--results", default=ROOT / "perf/results", type=pathlib.Path, metavar="FOLDER",
                        help="where <machine>/<what>.json is written (default perf/results; elsewhere for a trial)")


class Results:
    """The rows of a run: each is printed and written as soon as it is there."""

    def __init__(self, what, options, modules=(), shown="median", program=None):
        if not os.access(options.sylvit, os.X_OK):
            sys.exit(f"{options.sylvit} is not there: build it with ci/build, or name another with --sylvit")
        self.shown, self.columns = shown, None
        program = program or f"perf/{what}"
        self.run = {"source": program, "date": datetime.date.today().isoformat(), "commit": commit(),
                    "command": command(program), "machine": machine(options.machine), "note": None,
                    "versions": versions(options.sylvit, modules), "rows": []}
        if mistakes(self.run["machine"], MACHINE, {}, "a machine"):
            sys.exit(f"--machine takes small letters, digits and hyphens, not {options.machine}")
        self.path = options.results / self.run["machine"]["name"] / f"{what}.json"
        self.before = load(self.path) if self.path.exists() else []

    def add(self, row, times=None, ratios=None, values=None):
        """`times` are samples in ms by contestant, ratios what ratio() makes, values numbers."""
        kinds = {"times": {name: summary(samples) for name, samples in (times or {}).items()}, "ratios": ratios or {},
                 "values": {name: digits(value) for name, value in (values or {}).items()}}
        found = {"row": row, **{kind: figures for kind, figures in kinds.items() if figures}}
        self.run["rows"].append(found)
        self.print(found)
        self.write()

    def print(self, row):
        columns = [name for kind in ("times", "ratios", "values") for name in row.get(kind, {})]
        if columns != self.columns:
            titles = [f"{name}, ms" if name in row.get("times", {}) else name for name in columns]
            print("\n| " + " | ".join(["", *titles]) + " |\n" + "|---" * (len(columns) + 1) + "|")
            self.columns = columns
        cells = [f"{time[self.shown]:.4g}" for time in row.get("times", {}).values()]
        for figure in row.get("ratios", {}).values():
            spread = "({:.2f}-{:.2f})".format(*figure["quartiles"]) if figure["quartiles"] else ""
            cells.append(f"{figure['value']:.2f}x {spread}".strip())
        cells += [f"{value:.4g}" for value in row.get("values", {}).values()]
        print("| " + " | ".join([row["row"], *cells]) + " |", flush=True)

    def write(self):
        new = {row["row"] for row in self.run["rows"]}
        runs = [run | {"rows": [row for row in run["rows"] if row["row"] not in new]} for run in self.before]
        document = {"schema": SCHEMA, "runs": [run for run in runs if run["rows"]] + [self.run]}
        found = all_mistakes(document, self.path.parent.name)
        if found:
            sys.exit("\n".join(found))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(layout(document) + "\n", "utf-8")
