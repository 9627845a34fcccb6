"""sylvit's Vision Transformer beside PyTorch's, in one run.

The PyTorch model is timm's, written out (scaled_dot_product_attention, layer norm with epsilon 1e-6, exact GELU). First both
compute the same weights and images, and the largest differences of logits, loss and gradients are printed; then they take turns
for `--rounds` rounds, two threads both, f32, and the best times count. Ratios above 1 mean that sylvit is faster.
"""

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch.nn import functional

SIZES = {"Ti": (192, 12, 3), "S": (384, 12, 6), "B": (768, 12, 12), "L": (1024, 24, 16)}


def read_safetensors(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        values = numpy.frombuffer(data[8 + length + begin:8 + length + end], numpy.float32)
        tensors[name] = torch.from_numpy(values.copy()).reshape(info["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, blobs, offset = {}, [], 0
    for name, tensor in tensors.items():
        blob = tensor.numpy().tobytes()
        header[name] = {"dtype": "I64" if tensor.dtype == torch.int64 else "F32", "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Vit:
    """timm's forward pass over a dictionary of its parameters."""

    def __init__(self, parameters, patch, depth, heads, score):
        self.p, self.patch, self.depth, self.heads, self.score = parameters, patch, depth, heads, score

    def linear(self, name, x):
        return functional.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def norm(self, name, x):
        return functional.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)

    def attention(self, name, x):
        batch, tokens, width = x.shape
        q, k, v = self.linear(name + ".qkv", x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.score == "softmax":
            o = functional.scaled_dot_product_attention(q, k, v)
        else:
            s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            h = {"relu": torch.relu, "gelu": functional.gelu, "sigmoid": torch.sigmoid}[self.score]
            o = (h(s) / tokens) @ v
        return self.linear(name + ".proj", o.transpose(1, 2).reshape(batch, tokens, width))

    def __call__(self, images):
        x = functional.conv2d(images, self.p["patch_embed.proj.weight"], self.p["patch_embed.proj.bias"],
                              stride=self.patch).flatten(2).transpose(1, 2)
        x = torch.cat([self.p["cls_token"].expand(len(x), -1, -1), x], 1) + self.p["pos_embed"]
        for i in range(self.depth):
            name = f"blocks.{i}"
            x = x + self.attention(name + ".attn", self.norm(name + ".norm1", x))
            hidden = functional.gelu(self.linear(name + ".mlp.fc1", self.norm(name + ".norm2", x)))
            x = x + self.linear(name + ".mlp.fc2", hidden)
        return self.linear("head", self.norm("norm", x)[:, 0])


def best_time(run, seconds):
    run()
    best, end, count = math.inf, time.perf_counter() + seconds, 0
    while count < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        count += 1
    return best * 1e3


def sylvit_time(program, model, passes, score, batch, seconds):
    output = subprocess.run([program, "bench", "vit", "--json", "--model", model, "--pass", passes, "--score", score,
                             "--batch", str(batch), "--seconds", str(seconds)],
                            check=True, capture_output=True, text=True)
    return json.loads(output.stdout)


def torch_model(program, model, score, folder):
    width, depth, heads = SIZES[model.split("/")[0]]
    weights = os.path.join(folder, "w.safetensors")
    subprocess.run([program, "init", "--model", model, "--seed", "1", "--output", weights], check=True,
                   capture_output=True)
    parameters = {name: value.requires_grad_() for name, value in read_safetensors(weights).items()}
    return Vit(parameters, int(model.split("/")[1]), depth, heads, score), weights


def check(program, model, score, batch):
    """The largest differences between both, relative to the largest value of each tensor."""
    with tempfile.TemporaryDirectory() as folder:
        peer, weights = torch_model(program, model, score, folder)
        torch.manual_seed(2)
        images, labels = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
        write_safetensors(os.path.join(folder, "in.safetensors"), {"images": images, "labels": labels})
        subprocess.run([program, "run", "vit", "--model", model, "--score", score, "--weights", weights, "--backward",
                        "--input", os.path.join(folder, "in.safetensors"),
                        "--output", os.path.join(folder, "out.safetensors")], check=True)
        ours = read_safetensors(os.path.join(folder, "out.safetensors"))
        logits = peer(images)
        loss = functional.cross_entropy(logits, labels)
        loss.backward()

    def difference(got, expected):
        return ((got - expected).abs().max() / expected.abs().max()).item()

    worst, where = 0.0, ""
    for name, parameter in peer.p.items():
        gradient, got = parameter.grad, ours["grad." + name]
        if name.endswith("qkv.bias"):  # softmax ignores the keys' bias: its gradient is rounding and nothing else
            third = len(gradient) // 3
            keep = torch.cat([torch.arange(third), torch.arange(2 * third, 3 * third)])
            gradient, got = gradient[keep], got[keep]
        error = difference(got, gradient)
        if error > worst:
            worst, where = error, name
    logits_error = difference(ours["logits"], logits.detach())
    loss_error = abs(ours["loss"].item() - loss.item()) / loss.item()
    print(f"| {model} | {score} | {logits_error:.1e} | {loss_error:.1e} | {worst:.1e} ({where}) |", flush=True)
    return max(logits_error, loss_error, worst) < 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sylvit", default="build/sylvit")
    parser.add_argument("--models", default="S/32,S/16,B/16")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--check-only", action="store_true", help="compare results, not times")
    options = parser.parse_args()
    if not os.access(options.sylvit, os.X_OK):
        sys.exit(f"{options.sylvit} is not there: build it with ci/build, or name another with --sylvit")
    torch.set_num_threads(2)
    program, models = options.sylvit, options.models.split(",")

    print("| model | score | logits | loss | gradients, the worst |\n|---|---|---|---|---|")
    good = all([check(program, model, score, 2)
                for model in models if model.startswith(("S", "Ti")) for score in ("softmax", "relu", "gelu", "sigmoid")])
    if options.check_only:
        sys.exit(0 if good else "a difference is above 1e-4")

    print("\n| model | pass | sylvit softmax ms | sylvit relu/L ms | PyTorch ms | softmax vs PyTorch | relu/L vs softmax "
          "| share of GEMM-1024 |\n|---|---|---|---|---|---|---|---|")
    for model in models:
        for passes in ("forward", "train") if model == "S/16" else ("forward",):
            with tempfile.TemporaryDirectory() as folder:
                peer, _ = torch_model(program, model, "softmax", folder)
            images, labels = torch.randn(options.batch, 3, 224, 224), torch.zeros(options.batch, dtype=torch.int64)
            optimiser = torch.optim.AdamW(peer.p.values(), lr=1e-5, fused=True)

            def step():
                if passes == "forward":
                    with torch.no_grad():
                        peer(images)
                    return
                optimiser.zero_grad()
                functional.cross_entropy(peer(images), labels).backward()
                torch.nn.utils.clip_grad_norm_(peer.p.values(), 1.0)
                optimiser.step()

            ours, relu, theirs, ceiling = math.inf, math.inf, math.inf, 0.0
            for _ in range(options.rounds):
                result = sylvit_time(program, model, passes, "softmax", options.batch, options.seconds)
                ours, ceiling = min(ours, result["ms_best"]), max(ceiling, result["ceiling_gflops"])
                flops = result["gflops"] * result["ms_best"]
                theirs = min(theirs, best_time(step, options.seconds))
                relu = min(relu, sylvit_time(program, model, passes, "relu", options.batch, options.seconds)["ms_best"])
            print(f"| {model} | {passes} | {ours:.0f} | {relu:.0f} | {theirs:.0f} | {theirs / ours:.2f}x "
                  f"| {ours / relu:.2f}x | {flops / ours / ceiling:.0%} |", flush=True)


if __name__ == "__main__":
    main()
