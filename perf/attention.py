"""sylvit's attention beside PyTorch's, in one run.

For each shape and pass, sylvit and PyTorch take turns for `--rounds` rounds of `--seconds` each, two threads both, f32;
the best time of all rounds counts (the machine is shared: whatever disturbs a round only makes it slower). Ratios above 1
mean that sylvit is faster.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

import torch

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
        self.ceiling = 0.0

    def milliseconds(self, seconds):
        output = subprocess.run(self.command + ["--seconds", str(seconds)], check=True, capture_output=True, text=True)
        result = json.loads(output.stdout)
        self.ceiling = max(self.ceiling, result["ceiling_gflops"] or 0.0)
        return result["ms_best"]


def measure(contestants, rounds, seconds):
    best = {name: math.inf for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            best[name] = min(best[name], contestant.milliseconds(seconds))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sylvit", default="build/sylvit")
    parser.add_argument("--other", help="a second sylvit (an AdaptiveCpp build) to measure beside the first")
    parser.add_argument("--shapes", nargs="+", default=SHAPES.split(), metavar="B,H,L,d")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.7)
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split(","))) for shape in options.shapes]
    if not os.access(options.sylvit, os.X_OK):
        sys.exit(f"{options.sylvit} is not there: build it with ci/build, or name another with --sylvit")
    torch.set_num_threads(2)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, best of {options.rounds} rounds of "
          f"{options.seconds} s, times in ms\n")

    print("| shape B,H,L,d | pass | sylvit relu/L | sylvit softmax | SDPA | eager softmax | eager relu/L "
          "| relu/L vs faster of SDPA, eager relu/L | relu/L vs eager relu/L | relu/L vs SDPA | softmax vs SDPA "
          "| relu/L vs our softmax | relu/L share of GEMM-1024 |")
    print("|---|---|" + "---|" * 11)
    for shape in shapes:
        for passes in ("forward", "both"):
            backward = passes == "both"
            ours = Sylvit(options.sylvit, shape, "relu", passes)
            best = measure({"relu": ours,
                            "softmax": Sylvit(options.sylvit, shape, "softmax", passes),
                            "sdpa": Torch(torch_softmax, shape, backward),
                            "eager softmax": Torch(torch_eager_softmax, shape, backward),
                            "eager relu": Torch(torch_eager_relu, shape, backward)}, options.rounds, options.seconds)
            batch, heads, length, size = shape
            flops = 4 * batch * heads * length * length * size * (3.5 if backward else 1)
            share = flops / best["relu"] / 1e6 / ours.ceiling if ours.ceiling else math.nan
            print(f"| {','.join(map(str, shape))} | {'forward + backward' if backward else 'forward'} "
                  f"| {best['relu']:.2f} | {best['softmax']:.2f} | {best['sdpa']:.2f} | {best['eager softmax']:.2f} "
                  f"| {best['eager relu']:.2f} | {min(best['sdpa'], best['eager relu']) / best['relu']:.2f}x "
                  f"| {best['eager relu'] / best['relu']:.2f}x | {best['sdpa'] / best['relu']:.2f}x "
                  f"| {best['sdpa'] / best['softmax']:.2f}x | {best['softmax'] / best['relu']:.2f}x "
                  f"| {share:.0%} |", flush=True)

    print("\n| shape, relu/L forward | f32 ms | bf16 ms | f16 ms | bf16 vs f32 | f16 vs f32 |")
    print("|---|---|---|---|---|---|")
    for shape in shapes:
        best = measure({dtype: Sylvit(options.sylvit, shape, "relu", "forward", dtype)
                        for dtype in ("f32", "bf16", "f16")}, options.rounds, options.seconds)
        print(f"| {','.join(map(str, shape))} | {best['f32']:.2f} | {best['bf16']:.2f} | {best['f16']:.2f} "
              f"| {best['f32'] / best['bf16']:.2f}x | {best['f32'] / best['f16']:.2f}x |", flush=True)

    if options.other:
        print("\n| shape, relu/L | pass | first build ms | other build ms | other vs first |")
        print("|---|---|---|---|---|")
        for shape in shapes:
            for passes in ("forward", "both"):
                best = measure({name: Sylvit(program, shape, "relu", passes)
                                for name, program in (("first", options.sylvit), ("other", options.other))},
                               options.rounds, options.seconds)
                print(f"| {','.join(map(str, shape))} | {passes} | {best['first']:.2f} | {best['other']:.2f} "
                      f"| {best['first'] / best['other']:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
