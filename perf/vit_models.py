"""timm's Vision Transformers, with the attention replaced where sylvit's options ask for it, beside sylvit's results.

    python perf/vit_models.py [--sylvit build/sylvit] [--models S/32,S/16]    compare logits, loss and all gradients
    python perf/vit_models.py --golden tests/cli/vit_golden.safetensors       write the file that keeps the check in CI

The weights travel both ways: sylvit's initial weights load into timm's model (every name, nothing missing, nothing left
over), and timm's saved weights load into sylvit.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from timm.models.vision_transformer import VisionTransformer
from torch import nn
from torch.nn import functional

import results_file

SIZES = {"Ti": (192, 12, 3), "S": (384, 12, 6), "B": (768, 12, 12), "L": (1024, 24, 16)}
SCORES = {"relu": torch.relu, "gelu": functional.gelu, "sigmoid": torch.sigmoid, "identity": lambda s: s,
          "relu2": lambda s: torch.relu(s) ** 2, "softplus": functional.softplus, "silu": functional.silu,
          "relu6": functional.relu6}


class Attention(nn.Module):
    """timm's attention under its names, with another score, a gate, and factors and exponents per head."""

    def __init__(self, width, heads, score="softmax", alpha=1.0, qk_norm=False, gate=False, head_scale=False,
                 head_alpha=False):
        super().__init__()
        self.heads, self.score, self.exponent = heads, score, alpha
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        norm = (lambda: nn.LayerNorm(width // heads, eps=1e-6)) if qk_norm else nn.Identity
        self.q_norm, self.k_norm = norm(), norm()
        self.gate = nn.Linear(width, width) if gate else None
        self.head_scale = nn.Parameter(torch.ones(heads)) if head_scale else None
        self.alpha = nn.Parameter(torch.full((heads,), alpha)) if head_alpha else None

    def forward(self, x, **_):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        s = self.q_norm(q) @ self.k_norm(k).transpose(-1, -2) / (width // self.heads) ** 0.5
        if self.score == "softmax":
            weights = s.softmax(-1)
        else:
            exponent = self.exponent if self.alpha is None else self.alpha[:, None, None]
            weights = SCORES[self.score](s) * torch.tensor(float(tokens), dtype=s.dtype) ** -exponent
        if self.head_scale is not None:
            weights = weights * self.head_scale[:, None, None]
        o = (weights @ v).transpose(1, 2).reshape(batch, tokens, width)
        if self.gate is not None:
            o = o * self.gate(x)
        return self.proj(o)


def timm_model(width, depth, heads, patch, image, classes, pool="token", mlp_ratio=4.0, class_token=True, **attention):
    model = VisionTransformer(img_size=image, patch_size=patch, embed_dim=width, depth=depth, num_heads=heads,
                              mlp_ratio=mlp_ratio, num_classes=classes, class_token=class_token, global_pool=pool)
    if attention:
        for block in model.blocks:
            block.attn = Attention(width, heads, **attention)
    return model


def preset(model, **options):
    size, patch = model.split("/")
    width, depth, heads = SIZES[size]
    return timm_model(width, depth, heads, int(patch), 224, 1000, **options)


# What is compared: options of `sylvit run vit`, and of timm_model.
CASES = {
    "softmax": ("", {}),
    "relu": ("--score relu", {"score": "relu"}),
    "gelu": ("--score gelu", {"score": "gelu"}),
    "sigmoid": ("--score sigmoid", {"score": "sigmoid"}),
    "relu, qk-norm": ("--score relu --qk-norm", {"score": "relu", "qk_norm": True}),
    "relu, gate": ("--score relu --gate", {"score": "relu", "gate": True}),
    "relu, factors and exponents": ("--score relu --head-scale --head-alpha",
                                    {"score": "relu", "head_scale": True, "head_alpha": True}),
    "softmax, gap": ("--pool gap", {"pool": "avg"}),
    "relu, map": ("--score relu --pool map", {"pool": "map", "score": "relu"}),
}


def loss_and_gradients(model, images, labels):
    model.eval()
    logits = model(images)
    loss = functional.cross_entropy(logits, labels)
    loss.backward()
    return logits.detach(), loss.detach(), {name: p.grad for name, p in model.named_parameters()}


def compared_part(name, gradient, score):
    """Softmax ignores the keys' bias: the gradient there is rounding and nothing else."""
    if score == "softmax" and name.endswith("qkv.bias"):
        third = len(gradient) // 3
        return torch.cat([gradient[:third], gradient[2 * third:]])
    if name == "attn_pool.kv.bias":
        return gradient[len(gradient) // 2:]
    return gradient


def difference(got, expected):
    return ((got - expected).abs().max() / expected.abs().max()).item()


def run(program, *words):
    subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL)


def check(results, program, name, case, batch=2):
    words, options = CASES[case]
    peer = preset(name, **options)
    with tempfile.TemporaryDirectory() as folder:
        weights, source, result = (os.path.join(folder, f + ".safetensors") for f in ("w", "in", "out"))
        # Pooling by average or MAP has no class token in sylvit's own models, and one in timm's by default: the file
        # decides.
        if "pool" not in options:
            run(program, "init", "--model", name, *shlex.split(words), "--seed", "1", "--output", weights)
            peer.load_state_dict(load_file(weights))
        with torch.no_grad():  # initial weights have zeros and ones that would hide mistakes
            for parameter in peer.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
        save_file(peer.state_dict(), weights)
        images, labels = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
        save_file({"images": images, "labels": labels}, source)
        run(program, "run", "vit", "--model", name, *shlex.split(words), "--weights", weights, "--backward",
            "--input", source, "--output", result)
        ours = load_file(result)
    score = options.get("score", "softmax")

    def worst(got, expected):
        """The largest difference of a gradient relative to its largest value, and whose it is."""
        errors = {p: difference(compared_part(p, got[p], score), compared_part(p, g, score))
                  for p, g in expected.items()}
        name = max(errors, key=errors.get)
        return errors[name], name

    logits, loss, gradients = loss_and_gradients(peer, images, labels)
    our_gradients = {p: ours["grad." + p] for p in gradients}
    error, where = worst(our_gradients, gradients)
    logits_error = difference(ours["logits"], logits)
    loss_error = abs(ours["loss"].item() - loss.item()) / loss.item()
    # A score beside relu's kink may fall on either side in f32: fp64 says how far each of the two is from the truth.
    peer.zero_grad()
    exact = loss_and_gradients(peer.double(), images.double(), labels)[2]
    our_error, their_error = worst(our_gradients, exact)[0], worst(gradients, exact)[0]
    passed = max(logits_error, loss_error) < 1e-4 and (error < 1e-4 or our_error < max(1e-4, 2 * their_error))
    results.add(f"{name} {case}", values={"logits": logits_error, "loss": loss_error, "gradients": error,
                                          "gradients, ours of fp64": our_error,
                                          "gradients, PyTorch's of fp64": their_error, "agrees": passed})
    if not passed:
        print(f"The worst gradient is that of {where}.")
    return passed


def write_golden(path):
    """A tiny model in fp64: weights and inputs once; for each case logits, loss and every 7th value of each gradient."""
    torch.manual_seed(5)
    batch, tensors, metadata = 2, {}, {}
    images, labels = torch.randn(batch, 3, 12, 12), torch.tensor([3, 0])
    tensors["images"], tensors["labels"] = images, labels
    for case, (words, options) in CASES.items():
        model = timm_model(32, 2, 2, 4, 12, 5, mlp_ratio=2.0, **options).double()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                key = "weights." + name
                if key not in tensors:
                    norm = "norm" in name and name.endswith("weight")
                    middle = 1.0 if norm or "head_scale" in name or name.endswith("alpha") else 0.0
                    tensors[key] = (middle + torch.randn_like(parameter) * 0.25).to(torch.float16)
                parameter.copy_(tensors[key].double())
        logits, loss, gradients = loss_and_gradients(model, images.double(), labels)
        prefix = case + "/"
        metadata[case] = words
        tensors[prefix + "logits"], tensors[prefix + "loss"] = logits.float(), loss.float()
        for name, gradient in gradients.items():
            tensors[prefix + "grad." + name] = gradient.flatten()[::7].float().clone()
    save_file(tensors, path, metadata)
    print(f"{path}: {len(tensors)} tensors, {os.path.getsize(path)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--models", default="S/32,S/16")
    parser.add_argument("--golden", metavar="FILE", help="write the golden file instead")
    options = parser.parse_args()
    if options.golden:
        write_golden(options.golden)
        return
    torch.manual_seed(2)
    results = results_file.Results("vit-check", options, ["torch", "timm"], program="perf/vit --check")
    good = [check(results, options.sylvit, name, case) for name in options.models.split(",") for case in CASES]
    sys.exit(0 if all(good) else "a difference is above 1e-4, and not PyTorch's own")


if __name__ == "__main__":
    main()
