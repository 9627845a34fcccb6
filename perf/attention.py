"""sylvit's attention beside PyTorch's, in one run.

For each shape and pass, sylvit and PyTorch are interleaved for `--rounds` rounds of `--seconds` each, f32, with as many
threads each as there are cores. A round's time is its best one (the machine is shared: whatever disturbs a pass only
makes it slower). Ratios are medians of the rounds' ratios with their quartiles; above 1 sylvit is faster.
"""

import argparse
import json
import math
import subprocess
import time

import torch

import results_file
from provenance import CORES

SHAPES = "8,6,197,64 8,12,197,64 2,6,785,64 1,6,4096,64"


def torch_softmax(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def torch_eager_softmax(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v


def torch_eager_relu(q, k, v):
    return (torch.relu(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])) / k.shape[-2]) @ v


class Torch:
    """One PyTorch function with its inputs; `run` does one pass."""

    def __init__(self, function, shape, backward):
        torch.manual_seed(1)
        self.function = function
        self.inputs = [torch.randn(shape, requires_grad=backward) for _ in range(3)]
        self.gradient = torch.randn(shape) if backward else None

    def run(self):
        if self.gradient is None:
            with torch.no_grad():
                self.function(*self.inputs)
            return
        for tensor in self.inputs:
            tensor.grad = None
        self.function(*self.inputs).backward(self.gradient)

    def milliseconds(self, seconds):
        self.run()
        best = math.inf
        end = time.perf_counter() + seconds
        count = 0
        while count < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            best = min(best, time.perf_counter() - start)
            count += 1
        return best * 1e3


class Sylvit:
    def __init__(self, program, shape, score, passes, dtype="f32"):
        self.command = [program, "bench", "attention", "--json", "--score", score, "--pass", passes, "--dtype", dtype,
                        "--shape", ",".join(map(str, shape))]
        self.ceiling, self.toolchain = 0.0, None

    def milliseconds(self, seconds):
        output = subprocess.run(self.command + ["--seconds", str(seconds)], check=True, capture_output=True, text=True)
        result = json.loads(output.stdout)
        self.ceiling, self.toolchain = max(self.ceiling, result["ceiling_gflops"] or 0.0), result["toolchain"]
        return result["ms_best"]


def measure(contestants, options):
    """Each contestant's best times, one a round."""
    times = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, contestant in contestants.items():
            times[name].append(contestant.milliseconds(options.seconds))
    return times


def compare_peers(results, options, shape, passes):
    backward = passes == "both"
    ours = Sylvit(options.sylvit, shape, "relu", passes)
    times = measure({"relu/L": ours,
                     "softmax": Sylvit(options.sylvit, shape, "softmax", passes),
                     "SDPA": Torch(torch_softmax, shape, backward),
                     "eager softmax": Torch(torch_eager_softmax, shape, backward),
                     "eager relu/L": Torch(torch_eager_relu, shape, backward)}, options)
    batch, heads, length, size = shape
    flops = 4 * batch * heads * length * length * size * (3.5 if backward else 1)
    faster = min("SDPA", "eager relu/L", key=lambda name: min(times[name]))
    pairs = {"relu/L vs the faster peer": ("relu/L", faster), "relu/L vs eager relu/L": ("relu/L", "eager relu/L"),
             "relu/L vs SDPA": ("relu/L", "SDPA"), "softmax vs SDPA": ("softmax", "SDPA"),
             "relu/L vs softmax": ("relu/L", "softmax")}
    gflops = flops / min(times["relu/L"]) / 1e6
    results.add(f"{passes} {','.join(map(str, shape))}", times,
                {name: results_file.ratio(times[their], times[our]) for name, (our, their) in pairs.items()},
                {"relu/L, share of GEMM-1024": gflops / ours.ceiling} if ours.ceiling else {})


def compare_types(results, options, shape):
    dtypes = ("f32", "bf16", "f16")
    times = measure({dtype: Sylvit(options.sylvit, shape, "relu", "forward", dtype) for dtype in dtypes}, options)
    results.add(f"types, forward {','.join(map(str, shape))}", times,
                {f"{dtype} vs f32": results_file.ratio(times["f32"], times[dtype]) for dtype in ("bf16", "f16")})


def compare_builds(results, options, shape, passes):
    programs = {"first build": options.sylvit, "other build": options.other}
    contestants = {name: Sylvit(program, shape, "relu", passes) for name, program in programs.items()}
    times = measure(contestants, options)
    results.run["versions"] |= {name: contestant.toolchain for name, contestant in contestants.items()}
    results.add(f"builds, {passes} {','.join(map(str, shape))}", times,
                {"other vs first": results_file.ratio(times["first build"], times["other build"])})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--other", help="a second sylvit (an AdaptiveCpp build) to measure beside the first")
    parser.add_argument("--shapes", nargs="+", default=SHAPES.split(), metavar="B,H,L,d")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.7)
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split(","))) for shape in options.shapes]
    results = results_file.Results("attention", options, ["torch"], shown="best")
    torch.set_num_threads(CORES)
    for shape in shapes:
        for passes in ("forward", "both"):
            compare_peers(results, options, shape, passes)
    for shape in shapes:
        compare_types(results, options, shape)
    for shape in shapes if options.other else []:
        for passes in ("forward", "both"):
            compare_builds(results, options, shape, passes)


if __name__ == "__main__":
    main()
