"""sylvit's Vision Transformer beside PyTorch (timm's model, eager and compiled), onnxruntime and OpenVINO, in one run.

All are interleaved pass by pass, with as many threads each as there are cores, f32: a machine that changes its speed
changes it for all of them. In a round each runs once unmeasured (threads of the one before may still spin) and then
twice, of which the better counts. Times are medians over the rounds, and ratios are medians of the rounds' ratios with
their quartiles; above 1 sylvit is faster. Whether the results agree is perf/vit_models.py's business, but each peer's
logits are compared with timm's here, so that no one computes something else.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import save_file
from torch.nn import functional

import results_file
from provenance import CORES
from results_file import ratio
from vit_models import preset


class Sylvit:
    """A `sylvit bench vit` that runs one pass when asked, and tells its time in ms."""

    def __init__(self, program, model, score="softmax", passes="forward", batch=8, words=()):
        self.words = [program, "bench", "vit", "--model", model, "--pass", passes, "--score", score,
                      "--batch", str(batch), *words]
        self.process = subprocess.Popen([*self.words, "--turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def report(self, seconds):
        """What the benchmark says by itself."""
        command = [*self.words, "--json", "--seconds", str(seconds)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def timed(run):
    """`run` as a function that tells its time in ms."""
    def measured():
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e3
    return measured


def take_turns(contestants, seconds):
    """Each contestant's times, one a turn, for `seconds` and at least five turns."""
    times, end = {name: [] for name in contestants}, time.perf_counter() + seconds
    while len(next(iter(times.values()))) < 5 or time.perf_counter() < end:
        for name, run in contestants.items():
            run()
            times[name].append(min(run(), run()))
    return times


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
        options.intra_op_num_threads = CORES
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        core = openvino.Core()
        network = core.compile_model(core.read_model(path), "CPU", {
            "INFERENCE_NUM_CORES": CORES, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
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


def row_name(part, model, batch):
    return f"{part} {model}" + (f", batch {batch}" if batch != 8 else "")


def compare_forward(results, program, names, batch, seconds, compiled):
    for name in names:
        images = torch.randn(batch, 3, 224, 224)
        peers = forward_peers(preset(name).eval(), images, compiled)
        with Sylvit(program, name, batch=batch) as softmax, Sylvit(program, name, "relu", batch=batch) as relu:
            contestants = {"softmax": softmax, "relu/L": relu, **{peer: timed(run) for peer, run in peers.items()}}
            with torch.inference_mode():
                times = take_turns(contestants, seconds)
        fastest = min(peers, key=lambda peer: statistics.median(times[peer]))
        alone = softmax.report(seconds / 10)
        results.add(row_name("forward", name, batch), times,
                    {"softmax vs the fastest peer": ratio(times[fastest], times["softmax"]),
                     "relu/L vs softmax": ratio(times["softmax"], times["relu/L"])},
                    {"softmax, share of GEMM-1024": alone["gflops"] / alone["ceiling_gflops"]})


def compare_training(results, program, name, batch, seconds):
    step = training_step(preset(name), torch.randn(batch, 3, 224, 224))
    step()
    with Sylvit(program, name, passes="train", batch=batch) as softmax, \
            Sylvit(program, name, "relu", "train", batch) as relu:
        times = take_turns({"softmax": softmax, "PyTorch": timed(step), "relu/L": relu}, seconds)
    results.add(row_name("train", name, batch), times, {f"{ours} vs PyTorch": ratio(times["PyTorch"], times[ours])
                                                        for ours in ("softmax", "relu/L")})


def peak_memory(command):
    """The largest resident size of a process, in MB, and what it prints. A small process starts it, because a process
    begins with the peak of the one that started it."""
    start = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); " \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-S", "-c", start, *command], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024, done.stderr


def torch_memory(name, batch):
    """Run in a process of its own: the size before there is a model, and after two steps the process ends."""
    functional.layer_norm(torch.randn(8, 8) @ torch.randn(8, 8), (8,))
    before = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024
    step = training_step(preset(name), torch.randn(batch, 3, 224, 224))
    step()
    step()
    print(before)


def compare_memory(results, program, name, batch):
    measure_ours = [program, "bench", "vit", "--pass", "train", "--seconds", "0"]
    small = ["--model", name, *"--width 64 --heads 1 --mlp 64 --depth 1 --classes 2 --batch 1".split()]

    def peak(words):
        """The first time the process may hold the compiler, too."""
        return min(peak_memory(measure_ours + words)[0] for _ in range(2))

    idle = peak(small)
    ours, recomputed = (peak(["--model", name, "--batch", str(batch), *words]) - idle
                        for words in ([], ["--recompute"]))
    total, before = peak_memory([sys.executable, __file__, "--torch-memory", name, "--batch", str(batch)])
    theirs = total - float(before.splitlines()[-1])
    shares = {"of PyTorch's": ours / theirs, "of PyTorch's, with --recompute": recomputed / theirs}
    results.add(row_name("memory", name, batch),
                ratios={name: {"value": share, "quartiles": None} for name, share in shares.items()},
                values={"MB": ours, "MB with --recompute": recomputed, "PyTorch MB": theirs})


def compare_gate(results, program, seconds):
    with Sylvit(program, "S/8", "relu", batch=2) as plain, \
            Sylvit(program, "S/8", "relu", batch=2, words=["--gate"]) as gated:
        times = take_turns({"plain": plain, "gated": gated}, seconds)
    work = [result["gflops"] * result["ms_best"] for result in (plain.report(0), gated.report(0))]
    results.add("gate S/8, relu/L, forward, batch 2", times, {"gated of plain": ratio(times["gated"], times["plain"])},
                {"operations, gated of plain": work[1] / work[0]})


def start_time(results, program, name):
    """All of `run vit` for one image with warm caches: start, weights from disk, one forward pass, the result."""
    with tempfile.TemporaryDirectory() as folder:
        weights, images, out = (os.path.join(folder, f + ".safetensors") for f in ("w", "in", "out"))
        save_file(preset(name).state_dict(), weights)
        save_file({"images": torch.randn(1, 3, 224, 224)}, images)
        command = [program, "run", "vit", "--model", name, "--weights", weights, "--input", images, "--output", out]
        start = timed(lambda: subprocess.run(command, check=True))
        times = [start() for _ in range(5)]
    with Sylvit(program, name, batch=1) as model:
        results.add(f"start {name}, one image", {"run vit": times, "the pass itself": [model() for _ in range(10)]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--models", default="S/32,S/16,B/16", help="for the forward pass")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60, help="for each row")
    parser.add_argument("--parts", default="forward,train,memory,gate,start")
    parser.add_argument("--compiled", action="store_true", help="torch.compile too (takes minutes to compile)")
    parser.add_argument("--torch-memory", metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(CORES)
    torch.manual_seed(1)
    if options.torch_memory:
        torch_memory(options.torch_memory, options.batch)
        return
    results = results_file.Results("vit", options, ["torch", "timm", "onnxruntime", "openvino"])
    program, parts = options.sylvit, options.parts.split(",")
    if "forward" in parts:
        compare_forward(results, program, options.models.split(","), options.batch, options.seconds, options.compiled)
    if "train" in parts:
        compare_training(results, program, "S/16", options.batch, options.seconds)
    if "memory" in parts:
        compare_memory(results, program, "S/16", options.batch)
    if "gate" in parts:
        compare_gate(results, program, options.seconds)
    if "start" in parts:
        start_time(results, program, "S/16")


if __name__ == "__main__":
    main()
