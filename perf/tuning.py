"""What the tuning tables of the CPU are worth.

search   cases that the shipped table was not tuned on: the record it gives, against the fastest of many candidates. `sylvit tune` is the
         search: it builds, verifies and measures the --candidates most promising ones by turns, and its second pass compares the winner
         with the record in use alone. Cases where the record in use stays count as 1.
tables   attention and ViT-S/16 with the shipped table, with the backend's catch-all records only, and with the table of the other
         toolchain, by turns.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent

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


def search(options):
    print("| case | tried | the table's record, GFLOP/s | the fastest, GFLOP/s | gain |")
    print("|---|---|---|---|---|")
    gains = []
    for kernel, dtype, score, shape in NOT_TUNED_ON:
        with tempfile.TemporaryDirectory() as directory:
            shapes = pathlib.Path(directory, "shapes")
            shapes.write_text(f"attention {shape}\n")
            run([options.sylvit, "tune", "--kernel", kernel, "--dtype", dtype, "--score", score, "--shapes", shapes,
                 "--candidates", options.candidates, "--budget", options.budget, "--output", directory])
            (table,) = pathlib.Path(directory).glob("*/*.json")
            (record,) = json.loads(table.read_text())["records"]
        speed, before, tried = re.search(r"at ([\d.]+) GFLOP/s, (?:([\d.]+) before|[^,]*), of (\d+) candidates", record["origin"]).groups()
        gain = float(speed) / float(before or speed)
        gains.append(gain)
        print(f"| {kernel} {dtype} {score} {shape} | {tried} | {before or speed} | {speed} | {gain:.3f}x |", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, gains)))
    print(f"\nGeometric mean of the gain: {mean:.3f}x (target: at most 1.03x).\n")
    return mean <= 1.03


def catch_all(directory):
    """An overlay with each kernel's last record of the backend's default table, for every case."""
    last = {record["kernel"]: record for record in json.loads((ROOT / "backends/dpcpp-cpu/default.json").read_text())["records"]}
    records = [{key: record[key] for key in ("kernel", "numbers", "origin")} for record in last.values() if "numbers" in record]
    path = pathlib.Path(directory, "dpcpp-cpu", "catch-all.json")
    path.parent.mkdir()
    path.write_text(json.dumps({"schema": 1, "description": "catch-all records only", "records": records}))
    return directory


def tables(options):
    with tempfile.TemporaryDirectory() as directory:
        contestants = {"shipped": {}, "catch-all records": {"overlay": catch_all(directory)}}
        if not options.without_other:
            contestants["acpp-cpu's table"] = {"table": "acpp-cpu/default"}
        print("| best ms | " + " | ".join(contestants) + " |")
        print("|---" * (len(contestants) + 1) + "|")
        work = {f"attention {shape} {score}, both passes": ["attention", "--shape", shape, "--score", score, "--pass", "both"]
                for shape, score in ATTENTION}
        work["S/16 forward, batch 8"] = ["vit", "--model", "S/16"]
        work["S/16 train step, batch 8"] = ["vit", "--model", "S/16", "--pass", "train"]
        for name, arguments in work.items():
            if options.rows not in name:
                continue
            best = dict.fromkeys(contestants, math.inf)
            for _ in range(3):
                for contestant, how in contestants.items():
                    output = run([options.sylvit, "bench", *arguments, "--json", "--seconds", options.seconds / 9], **how)
                    best[contestant] = min(best[contestant], json.loads(output)["ms_best"])
            print(f"| {name} | " + " | ".join(f"{ms:.2f} ({ms / best['shipped']:.2f}x)" for ms in best.values()) + " |", flush=True)
    print()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sylvit", default="build/sylvit", help="the program")
    parser.add_argument("--parts", default="search,tables", help="search, tables, or both")
    parser.add_argument("--candidates", type=int, default=120, help="of each case of the search")
    parser.add_argument("--budget", type=float, default=60, help="seconds for each case of the search")
    parser.add_argument("--seconds", type=float, default=20, help="for each row of tables, in all")
    parser.add_argument("--rows", default="", help="only the rows of tables whose name contains this")
    parser.add_argument("--without-other", action="store_true", help="leave out the other toolchain's table, whose kernels take minutes each to build")
    options = parser.parse_args()
    parts = {"search": search, "tables": tables}
    unknown = set(options.parts.split(",")) - set(parts)
    if unknown:
        parser.error(f"--parts has {', '.join(sorted(unknown))}; choose from search and tables")
    sys.exit(0 if all([parts[part](options) for part in options.parts.split(",")]) else 1)


if __name__ == "__main__":
    main()
