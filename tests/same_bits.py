#!/usr/bin/env python3
"""Do two builds of sylvit compute the same bits? For a change that must not change any result.

    tests/same_bits.py BEFORE/sylvit AFTER/sylvit [--quick]

Attention forward and backward for every score and storage type, with masks, grouped heads, qk-layernorm and learned
factors, and a ViT's logits, loss and gradients for every score and storage type. Inputs come from a fixed seed; the
outputs' bytes are compared. Exits with 1 and names each case that differs.
"""

import argparse
import array
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

SCORES = "softmax relu relu2 gelu gelu_tanh softplus identity relu6 sigmoid silu".split()
DTYPES = "f32 bf16 f16".split()


def write_safetensors(path, tensors):
    """tensors: name -> (dtype as safetensors calls it, shape, values)"""
    header, blobs, offset = {}, [], 0
    for name, (dtype, shape, values) in tensors.items():
        blob = array.array("f" if dtype == "F32" else "q", values).tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def normal(generator, *shape):
    count = 1
    for extent in shape:
        count *= extent
    return "F32", list(shape), [generator.gauss(0, 1) for _ in range(count)]


def inputs(directory):
    generator = random.Random(1)
    plain, special, images = (directory / f"{name}.safetensors" for name in ("plain", "special", "images"))
    q, kv = (2, 3, 70, 32), (2, 3, 70, 32)
    write_safetensors(plain, {"q": normal(generator, *q), "k": normal(generator, *kv), "v": normal(generator, *kv),
                              "grad_o": normal(generator, *q)})
    q, kv = (2, 4, 37, 40), (2, 2, 53, 40)
    vector = lambda: normal(generator, 40)
    write_safetensors(special, {
        "q": normal(generator, *q), "k": normal(generator, *kv), "v": normal(generator, *kv),
        "grad_o": normal(generator, *q), "lengths": ("I64", [2], [53, 21]), "head_scale": normal(generator, 4),
        "head_alpha": normal(generator, 4), "q_norm.weight": vector(), "q_norm.bias": vector(),
        "k_norm.weight": vector(), "k_norm.bias": vector()})
    write_safetensors(images, {"images": normal(generator, 3, 3, 32, 32), "labels": ("I64", [3], [1, 0, 4])})
    return plain, special, images


def cases(plain, special, images, quick):
    for dtype in DTYPES[:1] if quick else DTYPES:
        for score in SCORES:
            attention = ["run", "attention", "--score", score, "--dtype", dtype, "--backward"]
            yield f"attention {score} {dtype}", [*attention, "--input", plain]
            # Softmax has no α.
            if score != "softmax":
                yield f"attention, everything, {score} {dtype}", [*attention, "--input", special, "--qk-norm", "--causal"]
            yield f"ViT {score} {dtype}", [
                "run", "vit", "--width", "64", "--heads", "2", "--depth", "2", "--mlp", "128", "--patch", "8", "--classes",
                "5", "--image-size", "32", "--seed", "3", "--score", score, "--dtype", dtype, "--backward", "--input", images]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--quick", action="store_true", help="f32 only")
    options = parser.parse_args()
    differ = count = 0
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        for name, words in cases(*inputs(directory), options.quick):
            outputs = []
            for program in (options.before, options.after):
                output = directory / "output.safetensors"
                output.unlink(missing_ok=True)
                done = subprocess.run([program, *words, "--output", output], capture_output=True, text=True)
                outputs.append(output.read_bytes() if done.returncode == 0 else done.stderr.encode())
                if done.returncode != 0:
                    print(f"{name}: {program}: {done.stderr.strip()}", flush=True)
            count += 1
            if outputs[0] != outputs[1]:
                differ += 1
                print(f"{name}: the results differ", flush=True)
    print(f"{count - differ} of {count} cases have the same bits")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
