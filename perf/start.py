"""How long starting takes, with an empty kernel cache and with a full one.

devices     `sylvit devices`: all of the process, cold; and warm, beyond what `sylvit --version` takes
self-check  all basic kernels in one batch, cold and warm, as `sylvit self-check` says
train       all kernels of a train step of S/16, cold, with the process (half a minute a round)

What takes minutes is timed by hand and handed over, in minutes: --ci-test 10.5 --ci-test-again 1.3 --ci-demo 1.9
--device-code 19. `SYLVIT_CACHE_DIR=$(mktemp -d) ci/test` in a fresh clone is the first.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time

import results_file

BY_HAND = {"ci_test": "ci/test, from nothing", "ci_test_again": "ci/test, again",
           "ci_demo": "ci/demo, all kernels anew", "device_code": "ci/device-code, from nothing"}


def run(command, cache):
    """The process's time in ms, and what it printed."""
    environment = dict(os.environ, SYLVIT_CACHE_DIR=str(cache))
    start = time.perf_counter()
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return (time.perf_counter() - start) * 1e3, output


def kernels_ready(output):
    return max(float(seconds) * 1e3 for seconds in re.findall(r"kernels ready in ([\d.]+) s", output))


def devices(results, program, rounds):
    times = {"cold": [], "warm": [], "--version": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            times["cold"].append(run([program, "devices"], cache)[0])
            times["warm"].append(run([program, "devices"], cache)[0])
            times["--version"].append(run([program, "--version"], cache)[0])
    beyond = [warm - bare for warm, bare in zip(times["warm"], times["--version"])]
    results.add("devices", times | {"warm, beyond --version": beyond})


def self_check(results, program, rounds):
    times = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for which in times:
                times[which].append(kernels_ready(run([program, "self-check"], cache)[1]))
    results.add("self-check's kernels", times)


def train(results, program, rounds):
    command, times = [program, "bench", "vit", "--model", "S/16", "--pass", "train", "--seconds", "0"], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            times.append(run(command, cache)[0])
    results.add("kernels of a train step of S/16", {"cold": times})


PARTS = {"devices": devices, "self-check": self_check, "train": train}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--parts", default="devices,self-check,train")
    parser.add_argument("--rounds", type=int, default=3)
    for name in BY_HAND:
        parser.add_argument("--" + name.replace("_", "-"), type=float, metavar="MINUTES", help=BY_HAND[name])
    options = parser.parse_args()
    parts = list(filter(None, options.parts.split(",")))
    if set(parts) - set(PARTS):
        parser.error(f"--parts has {', '.join(sorted(set(parts) - set(PARTS)))}; choose from {', '.join(PARTS)}")
    results = results_file.Results("start", options)
    for part in parts:
        PARTS[part](results, options.sylvit, options.rounds)
    for name, row in BY_HAND.items():
        if getattr(options, name):
            results.add(row, {"all": [getattr(options, name) * 60e3]})


if __name__ == "__main__":
    main()
