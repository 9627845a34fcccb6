"""What the tuning tables of the CPU are worth.

search   cases that the shipped table was not tuned on: the record it gives, against the fastest of many candidates.
         `sylvit tune` is the search: it builds, verifies and measures the --candidates most promising ones interleaved,
         and its second pass compares the winner with the record in use alone. Where that stays, the gain is 1.
tables   attention and ViT-S/16 with the shipped table, with the backend's catch-all records only, and with the table of
         the other toolchain, interleaved. Ratios say how many times as fast the shipped table is.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import results_file
from provenance import ROOT
from results_file import ratio

# Between the head sizes and lengths of backends/dpcpp-cpu/avx2.json: B,H,L,d
NOT_TUNED_ON = [
    ("attention_forward", "f32", "relu", "8,6,257,64"),
    ("attention_forward", "f32", "softmax", "4,6,401,48"),
    ("attention_forward", "bf16", "relu", "4,4,145,96"),
    ("attention_forward", "f16", "softmax", "2,4,1370,80"),
    ("attention_backward", "f32", "relu", "8,6,101,32"),
    ("attention_backward", "f32", "softmax", "4,6,257,64"),
    ("attention_backward", "bf16", "softmax", "4,4,325,72"),
    ("attention_backward", "f16", "relu", "2,4,577,112"),
]

ATTENTION = [("8,6,197,64", "relu"), ("8,6,197,64", "softmax"), ("2,6,785,80", "relu")]


def run(command, overlay="", table=None):
    environment = dict(os.environ, SYLVIT_TUNING_DIR=str(overlay))
    if table:
        environment["SYLVIT_TUNING_TABLE"] = table
    return subprocess.run(list(map(str, command)), env=environment, check=True, capture_output=True, text=True).stdout


def search(options, results):
    gains = []
    for kernel, dtype, score, shape in NOT_TUNED_ON:
        with tempfile.TemporaryDirectory() as directory:
            shapes = pathlib.Path(directory, "shapes")
            shapes.write_text(f"attention {shape}\n")
            run([options.sylvit, "tune", "--kernel", kernel, "--dtype", dtype, "--score", score, "--shapes", shapes,
                 "--candidates", options.candidates, "--budget", options.budget, "--output", directory])
            (table,) = pathlib.Path(directory).glob("*/*.json")
            (record,) = json.loads(table.read_text())["records"]
        origin = r"at ([\d.]+) GFLOP/s, (?:([\d.]+) before|[^,]*), of (\d+) candidates"
        speed, before, tried = re.search(origin, record["origin"]).groups()
        gains.append(float(speed) / float(before or speed))
        results.add(f"search {kernel} {dtype} {score} {shape}", values={
            "tried": int(tried), "the table's record, GFLOP/s": float(before or speed),
            "the fastest, GFLOP/s": float(speed), "gain": gains[-1]})
    mean = math.exp(statistics.fmean(map(math.log, gains)))
    results.add("search, geometric mean", values={"gain": mean})
    return mean <= 1.03


def catch_all(directory):
    """An overlay with each kernel's last record of the backend's default table, for every case."""
    default = json.loads((ROOT / "backends/dpcpp-cpu/default.json").read_text())
    last = {record["kernel"]: record for record in default["records"]}
    records = [{key: record[key] for key in ("kernel", "numbers", "origin")}
               for record in last.values() if "numbers" in record]
    path = pathlib.Path(directory, "dpcpp-cpu", "catch-all.json")
    path.parent.mkdir()
    path.write_text(json.dumps({"schema": 1, "description": "catch-all records only", "records": records}))
    return directory


def tables(options, results):
    with tempfile.TemporaryDirectory() as directory:
        contestants = {"shipped": {}, "catch-all": {"overlay": catch_all(directory)}}
        if not options.without_other:
            contestants["acpp-cpu's"] = {"table": "acpp-cpu/default"}
        work = {f"attention {shape} {score}, both": ["attention", "--shape", shape, "--score", score, "--pass", "both"]
                for shape, score in ATTENTION}
        work["S/16 forward"] = ["vit", "--model", "S/16"]
        work["S/16 train"] = ["vit", "--model", "S/16", "--pass", "train"]
        for name, arguments in work.items():
            if options.rows not in name:
                continue
            times = {contestant: [] for contestant in contestants}
            for _ in range(3):
                for contestant, how in contestants.items():
                    command = [options.sylvit, "bench", *arguments, "--json", "--seconds", options.seconds / 9]
                    output = run(command, **how)
                    times[contestant].append(json.loads(output)["ms_best"])
            results.add(f"tables {name}", times, {f"shipped vs {contestant}": ratio(times[contestant], times["shipped"])
                                                  for contestant in contestants if contestant != "shipped"})
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--parts", default="search,tables", help="search, tables, or both")
    parser.add_argument("--candidates", type=int, default=120, help="of each case of the search")
    parser.add_argument("--budget", type=float, default=60, help="seconds for each case of the search")
    parser.add_argument("--seconds", type=float, default=20, help="for each row of tables, in all")
    parser.add_argument("--rows", default="", help="only the rows of tables whose name contains this")
    parser.add_argument("--without-other", action="store_true",
                        help="leave out the other toolchain's table, whose kernels take minutes each to build")
    options = parser.parse_args()
    parts = {"search": search, "tables": tables}
    unknown = set(options.parts.split(",")) - set(parts)
    if unknown:
        parser.error(f"--parts has {', '.join(sorted(unknown))}; choose from search and tables")
    results = results_file.Results("tuning", options, shown="best")
    good = [parts[part](options, results) for part in options.parts.split(",")]
    sys.exit(0 if all(good) else "The search found more than 1.03x.")


if __name__ == "__main__":
    main()
