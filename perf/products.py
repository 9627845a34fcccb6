"""Matrix products of S/16, B/16 and S/32 at batch 8: the builtin product beside oneMKL's, interleaved by `bench gemm`.

Ratios are medians of the rounds' ratios with their quartiles; above 1 the builtin product is faster.
"""

import argparse
import json
import subprocess

import results_file

PRODUCTS = {
    "qkv": "1576,1152,384 --transpose-b",
    "fc1, with bias and GELU": "1576,1536,384 --transpose-b --epilogue bias_gelu",
    "fc2": "1576,384,1536 --transpose-b",
    "gradient of fc2's weights": "384,1536,1576 --transpose-a",
    "gradient of fc1's weights": "1536,384,1576 --transpose-a",
    "gradient of qkv's input": "1576,384,1152",
    "B/16's qkv": "1576,2304,768 --transpose-b",
    "B/16's fc2": "1576,768,3072 --transpose-b",
    "gradient of B/16's fc2 weights": "768,3072,1576 --transpose-a",
    "S/32's fc1": "400,1536,384 --transpose-b",
    "qkv in bf16": "1576,1152,384 --transpose-b --dtype bf16",
    "qkv in f16": "1576,1152,384 --transpose-b --dtype f16",
}


def measure(options, words):
    """Best and median times of builtin and oneMKL, one of each a round."""
    rounds = []
    for _ in range(options.rounds):
        command = [options.sylvit, "bench", "gemm", "--json", "--seconds", str(options.seconds), "--shape"]
        output = subprocess.run(command + words.split(), check=True, capture_output=True, text=True).stdout
        rounds.append({provider["provider"]: provider for provider in json.loads(output)})
    return {(provider, time): [one[provider][time] for one in rounds]
            for provider in ("builtin", "onemkl") for time in ("ms_best", "ms_median")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--rows", default="", help="only the products whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="for each round of each product")
    options = parser.parse_args()
    results = results_file.Results("products", options, shown="best")
    for name, words in PRODUCTS.items():
        if options.rows in name:
            times = measure(options, words)
            best = {"builtin": times["builtin", "ms_best"], "oneMKL": times["onemkl", "ms_best"]}
            results.add(f"{name}: {words}", best, {
                f"builtin vs oneMKL, {time}": results_file.ratio(times["onemkl", key], times["builtin", key])
                for time, key in (("best", "ms_best"), ("medians", "ms_median"))})


if __name__ == "__main__":
    main()
