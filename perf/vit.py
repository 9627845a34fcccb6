"""sylvit's Vision Transformer beside PyTorch (timm's model, eager and compiled), onnxruntime and OpenVINO, in one run.

All take turns for `--rounds` rounds, two threads each, f32, and the best times count; ratios above 1 mean that sylvit is
faster. Whether the results agree is perf/vit_models.py's business, but each peer's logits are compared with timm's here, so
that no one computes something else.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import save_file
from torch.nn import functional

from vit_models import preset

THREADS = 2


def measure(run, seconds):
    """The best time of one call, in ms."""
    best, end, count = math.inf, time.perf_counter() + seconds, 0
    while count < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        count += 1
    return best * 1e3


def bench(program, seconds, model, passes="forward", score="softmax", batch=8, words=()):
    command = [program, "bench", "vit", "--json", "--model", model, "--pass", passes, "--score", score, "--batch", str(batch),
               "--seconds", str(seconds), *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def same(name, got, expected):
    error = (torch.as_tensor(got) - expected).abs().max() / expected.abs().max()
    if not error < 1e-3:
        sys.exit(f"{name} does not compute what timm does: the logits differ by {error:.1e}")


def forward_peers(model, images, compiled):
    """Names and functions that run one forward pass each; all are warm."""
    import onnxruntime
    import openvino
    with torch.inference_mode():
        expected = model(images)
    peers = {"PyTorch": lambda: model(images)}
    if compiled:
        fast = torch.compile(model)
        peers["PyTorch compiled"] = lambda: fast(images)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(model, (images,), path, input_names=["images"], dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        core = openvino.Core()
        network = core.compile_model(core.read_model(path), "CPU", {
            "INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY"})
    request, pixels = network.create_infer_request(), images.numpy()
    peers["onnxruntime"] = lambda: session.run(None, {"images": pixels})[0]
    peers["OpenVINO"] = lambda: request.infer([pixels])[0]
    with torch.inference_mode():
        for name, run in peers.items():
            same(name, run(), expected)
    return peers


def training_step(model, images):
    labels = torch.zeros(len(images), dtype=torch.int64)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    model.train()

    def step():
        optimiser.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return step


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells):
    print()
    row(*cells)
    row(*("---" for _ in cells))


def compare_forward(program, names, batch, rounds, seconds, compiled):
    titles = ["sylvit softmax", "sylvit relu/L", "PyTorch", *(["PyTorch compiled"] if compiled else []), "onnxruntime", "OpenVINO"]
    head("forward, ms", *titles, "softmax vs the fastest peer", "relu/L vs softmax", "softmax's share of GEMM-1024")
    for name in names:
        images = torch.randn(batch, 3, 224, 224)
        peers = forward_peers(preset(name).eval(), images, compiled)
        best, share = dict.fromkeys(titles, math.inf), 0.0
        for _ in range(rounds):
            result = bench(program, seconds, name, batch=batch)
            best["sylvit softmax"] = min(best["sylvit softmax"], result["ms_best"])
            share = max(share, result["gflops"] / result["ceiling_gflops"])
            with torch.inference_mode():
                for peer, run in peers.items():
                    best[peer] = min(best[peer], measure(run, seconds))
            best["sylvit relu/L"] = min(best["sylvit relu/L"], bench(program, seconds, name, score="relu", batch=batch)["ms_best"])
        ours = best["sylvit softmax"]
        row(name, *(f"{best[title]:.0f}" for title in titles), f"{min(best[peer] for peer in peers) / ours:.2f}x",
            f"{ours / best['sylvit relu/L']:.2f}x", f"{share:.0%}")


def compare_training(program, name, batch, rounds, seconds):
    head("train step, ms", "sylvit softmax", "sylvit relu/L", "PyTorch", "softmax vs PyTorch", "relu/L vs PyTorch")
    step = training_step(preset(name), torch.randn(batch, 3, 224, 224))
    step()
    ours, relu, theirs = math.inf, math.inf, math.inf
    for _ in range(rounds):
        ours = min(ours, bench(program, seconds, name, "train", batch=batch)["ms_best"])
        theirs = min(theirs, measure(step, seconds))
        relu = min(relu, bench(program, seconds, name, "train", "relu", batch=batch)["ms_best"])
    row(name, f"{ours:.0f}", f"{relu:.0f}", f"{theirs:.0f}", f"{theirs / ours:.2f}x", f"{theirs / relu:.2f}x")


def peak_memory(command):
    """The largest resident size of a process, in MB, and what it prints. A small process starts it, because a process begins
    with the peak of the one that started it."""
    start = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); " \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-S", "-c", start, *command], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024, done.stderr


def torch_memory(name, batch):
    """Run in a process of its own: the size before there is a model, and behind two steps the process ends."""
    functional.layer_norm(torch.randn(8, 8) @ torch.randn(8, 8), (8,))
    before = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024
    step = training_step(preset(name), torch.randn(batch, 3, 224, 224))
    step()
    step()
    print(before)


def compare_memory(program, name, batch):
    head("train step, MB", "sylvit", "sylvit --recompute", "PyTorch", "sylvit / PyTorch", "with --recompute")
    measure_ours = [program, "bench", "vit", "--pass", "train", "--seconds", "0"]
    small = ["--model", name, "--width", "64", "--heads", "1", "--mlp", "64", "--depth", "1", "--classes", "2", "--batch", "1"]
    idle = peak_memory(measure_ours + small)[0]
    ours, recomputed = (peak_memory(measure_ours + ["--model", name, "--batch", str(batch), *words])[0] - idle
                        for words in ([], ["--recompute"]))
    total, before = peak_memory([sys.executable, __file__, "--torch-memory", name, "--batch", str(batch)])
    theirs = total - float(before.splitlines()[-1])
    row(name, f"{ours:.0f}", f"{recomputed:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}x", f"{recomputed / theirs:.2f}x")


def compare_gate(program, rounds, seconds):
    head("S/8, relu/L, forward, batch 2", "without gate, ms", "with gate, ms", "cost", "of its operations")
    plain, gated, work = math.inf, math.inf, []
    for _ in range(rounds):
        without, with_gate = (bench(program, seconds, "S/8", score="relu", batch=2, words=words) for words in ([], ["--gate"]))
        plain, gated = min(plain, without["ms_best"]), min(gated, with_gate["ms_best"])
        work = [result["gflops"] * result["ms_best"] for result in (without, with_gate)]
    row("", f"{plain:.0f}", f"{gated:.0f}", f"{gated / plain - 1:+.1%}", f"{work[1] / work[0] - 1:+.1%}")


def start_time(program, name):
    """All of `run vit` for one image with warm caches: start, weights from disk, one forward pass, the result."""
    with tempfile.TemporaryDirectory() as folder:
        weights, images, out = (os.path.join(folder, file) for file in ("w.safetensors", "in.safetensors", "out.safetensors"))
        save_file(preset(name).state_dict(), weights)
        save_file({"images": torch.randn(1, 3, 224, 224)}, images)
        command = [program, "run", "vit", "--model", name, "--weights", weights, "--input", images, "--output", out]
        times = [measure(lambda: subprocess.run(command, check=True), 0) for _ in range(3)]
    forward = bench(program, 1, name, batch=1)["ms_best"]
    head("`run vit`, one image, s", "all", "of which the pass itself")
    row(name, f"{min(times) / 1e3:.2f}", f"{forward / 1e3:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sylvit", default="build/sylvit")
    parser.add_argument("--models", default="S/32,S/16,B/16", help="for the forward pass")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--parts", default="forward,train,memory,gate,start")
    parser.add_argument("--compiled", action="store_true", help="torch.compile too (takes minutes to compile)")
    parser.add_argument("--torch-memory", metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    if options.torch_memory:
        torch_memory(options.torch_memory, options.batch)
        return
    if not os.access(options.sylvit, os.X_OK):
        sys.exit(f"{options.sylvit} is not there: build it with ci/build, or name another with --sylvit")
    program, parts = options.sylvit, options.parts.split(",")
    if "forward" in parts:
        compare_forward(program, options.models.split(","), options.batch, options.rounds, options.seconds, options.compiled)
    if "train" in parts:
        compare_training(program, "S/16", options.batch, options.rounds, options.seconds)
    if "memory" in parts:
        compare_memory(program, "S/16", options.batch)
    if "gate" in parts:
        compare_gate(program, options.rounds, options.seconds)
    if "start" in parts:
        start_time(program, "S/16")


if __name__ == "__main__":
    main()
