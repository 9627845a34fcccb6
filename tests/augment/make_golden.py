"""Makes tests/augment/golden: what other libraries make of the same pixels and the same random numbers. Each file needs the
libraries it is named after, in any virtual environment; run it again after a change:

    python3 tests/data/make_golden.py pillow        Pillow 13, timm and torchvision (which want torch)
    python3 tests/data/make_golden.py tensorflow    tensorflow-cpu 2.14, tensorflow-addons 0.23, and big_vision's
                                                    autoaugment.py in the folder BIG_VISION

Random numbers are replaced by recorded ones, in [0, 1): what src/augment/boxes.hpp is to draw. Of TensorFlow they are
the 32 bits of its generator.
"""
import json
import math
import os
import pathlib
import random
import struct
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).parent / "golden"
tensors = {}


def save(name, array):
    assert name not in tensors, name
    tensors[name] = np.ascontiguousarray(array)


def write(path):
    names = {"uint8": "U8", "int64": "I64", "float64": "F64", "float32": "F32"}
    header, data = {}, b""
    for name, array in tensors.items():
        blob = array.tobytes()
        header[name] = {"dtype": names[array.dtype.name], "shape": array.shape, "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def synthetic(width, height):
    """test_augment.cpp makes the same pixels."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    return ((x * x * 31 + y * y * 17 + x * y * 7 + c * 85) // 3 % 256).astype(np.uint8)


PICTURE = synthetic(14, 11)
DULL = (PICTURE // 3 + 40).astype(np.uint8)


class Recorder:
    """Uniform numbers that are written down."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = []

    def next(self):
        self.numbers.append(self.random.random())
        return self.numbers[-1]

    def uniform(self, a, b):
        return a + (b - a) * self.next()

    def randint(self, a, b):
        return a + math.floor(self.next() * (b - a + 1))


def save_boxes(name, cases):
    """Rows of given numbers; of draws, padded; and of boxes."""
    given, draws, boxes = zip(*cases)
    longest = max(len(row) for row in draws)
    save(f"{name}.given", np.array(given, np.float64))
    save(f"{name}.draws", np.array([row + [0.0] * (longest - len(row)) for row in draws], np.float64))
    save(f"{name}.boxes", np.array(boxes, np.int64))


# ---- Pillow, timm, torchvision

def make_pillow():
    from unittest import mock

    import timm.data.auto_augment as timm_augment
    import timm.data.mixup as timm_mixup
    import timm.data.random_erasing as timm_erasing
    import timm.data.transforms as timm_transforms
    import torch
    import torchvision.transforms as vision
    import torchvision.transforms.functional as functional
    from PIL import Image

    picture, dull = Image.fromarray(PICTURE), Image.fromarray(DULL)
    grey = picture.convert("L")
    save("grey", np.array(grey))

    # Pixels of every operation, with the argument behind its name.
    save("autocontrast", np.array(timm_augment.auto_contrast(dull)))
    save("equalize", np.array(timm_augment.equalize(dull)))
    big = Image.fromarray(synthetic(40, 30) // 2)
    save("equalize_40x30", np.array(timm_augment.equalize(big)))
    save("invert", np.array(timm_augment.invert(picture)))
    for bits in (1, 4):
        save(f"posterize {bits}", np.array(timm_augment.posterize(picture, bits)))
    for threshold in (26, 256):
        save(f"solarize {threshold}", np.array(timm_augment.solarize(picture, threshold)))
    save("solarize_add 99", np.array(timm_augment.solarize_add(picture, 99)))
    for name in ("color", "contrast", "brightness", "sharpness"):
        for factor in (0.1, 0.73, 1.81):
            save(f"{name} {factor}", np.array(getattr(timm_augment, name)(picture, factor)))
            if name in ("contrast", "sharpness") and factor != 0.73:
                save(f"grey {name} {factor}", np.array(getattr(timm_augment, name)(grey, factor)))
    fill = (124, 116, 104)
    for method, filter in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
        options = dict(resample=filter, fillcolor=fill)
        save(f"{method} rotate 27", np.array(timm_augment.rotate(picture, 27.0, **dict(options))))
        save(f"{method} rotate -8.1", np.array(timm_augment.rotate(picture, -8.1, **dict(options))))
        save(f"{method} shear_x 0.27", np.array(timm_augment.shear_x(picture, 0.27, **dict(options))))
        save(f"{method} shear_y -0.2", np.array(timm_augment.shear_y(picture, -0.2, **dict(options))))
        save(f"{method} translate_x 0.405", np.array(timm_augment.translate_x_rel(picture, 0.405, **dict(options))))
        save(f"{method} translate_y -0.18", np.array(timm_augment.translate_y_rel(picture, -0.18, **dict(options))))
        # Part (x, y, width, height), then the size.
        for x, y, w, h, size in ((2, 1, 11, 9, 6), (0, 0, 14, 11, 16), (3, 4, 5, 3, 8), (0, 0, 14, 11, 3)):
            part = functional.resized_crop(picture, y, x, h, w, [size, size],
                                           vision.InterpolationMode.BILINEAR if method == "bilinear" else
                                           vision.InterpolationMode.BICUBIC)
            save(f"{method} resized {x} {y} {w} {h} {size}", np.array(part))
        tall = functional.resized_crop(Image.fromarray(synthetic(9, 60)), 2, 1, 55, 7, [8, 8],
                                       vision.InterpolationMode.BILINEAR if method == "bilinear" else
                                       vision.InterpolationMode.BICUBIC)
        save(f"{method} tall", np.array(tall))
    save("flip", np.array(functional.hflip(picture)))
    for mode in ("constant", "reflect"):
        padded = functional.pad(picture, 3, padding_mode=mode)
        save(f"padded {mode}", np.array(functional.crop(padded, 1, 5, 12, 12)))

    # What a level means: for 0, 3.7, 9, 10; both signs; both forms.
    names = ["Rotate", "Posterize", "Solarize", "SolarizeAdd", "Color", "Contrast", "Brightness", "Sharpness", "ShearX",
             "ShearY", "TranslateXRel", "TranslateYRel"]
    rows = []
    for increasing in (0, 1):
        for name in names:
            known = name + "Increasing" if increasing and name + "Increasing" in timm_augment.LEVEL_TO_ARG else name
            for level in (0.0, 3.7, 9.0, 10.0):
                for negative in (0, 1):
                    with mock.patch.object(timm_augment.random, "random", lambda: float(negative)):
                        rows.append(float(timm_augment.LEVEL_TO_ARG[known](level, {})[0]))
    save("levels", np.array(rows))

    # Boxes.
    sizes = [(500, 375), (375, 500), (28, 28), (640, 100), (90, 1000), (1, 1), (3, 200), (224, 224)]
    cases, differing = [], 0
    for number in range(48):
        width, height = sizes[number % len(sizes)]
        scale = (0.08, 1.0) if number % 3 else (0.6, 1.0)
        recorder = Recorder(number)
        image = Image.new("RGB", (width, height))
        with mock.patch.object(timm_transforms, "random", recorder):
            i, j, h, w = timm_transforms.RandomResizedCropAndInterpolation.get_params(image, scale, (3 / 4, 4 / 3))
        cases.append(((width, height, *scale), recorder.numbers, (j, i, w, h)))

        class Uniform:  # torchvision's own, from the same numbers; its logarithms are of 32 bits
            def __init__(self, numbers):
                self.numbers = iter(numbers)

            def empty(self, _):
                return self

            def uniform_(self, a, b):
                return torch.tensor(float(a) + (float(b) - float(a)) * next(self.numbers), dtype=torch.float64)

            def randint(self, a, b, size):
                return torch.tensor([a + math.floor(next(self.numbers) * (b - a))])

        numbers = Uniform(recorder.numbers)
        with mock.patch.object(torch, "empty", numbers.empty), mock.patch.object(torch, "randint", numbers.randint):
            other = vision.RandomResizedCrop.get_params(image, list(scale), [3 / 4, 4 / 3])
        differing += tuple(other) != (i, j, h, w)
    print(f"torchvision's boxes differ from timm's in {differing} of {len(cases)} cases")
    save_boxes("resized_crop", cases)

    cases = []
    for number in range(16):
        size = (28, 224)[number % 2]
        recorder = Recorder(1000 + number)
        erasing = timm_erasing.RandomErasing(probability=1.0, mode="const", device="cpu")
        image = torch.ones(1, size, size)
        with mock.patch.object(timm_erasing, "random", recorder), \
                mock.patch.object(recorder, "random", lambda: 0.0):  # whether to erase at all
            source = random.Random(1000 + number)
            recorder.next = lambda: (recorder.numbers.append(source.random()), recorder.numbers[-1])[1]
            erasing(image)
        rows, columns = np.where(image[0].numpy() == 0)
        box = (columns.min(), rows.min(), columns.max() - columns.min() + 1, rows.max() - rows.min() + 1)
        cases.append(((size, size), recorder.numbers, box))
    save_boxes("erased", cases)

    cases = []
    for number in range(16):
        size = (28, 224)[number % 2]
        share = (0.03, 0.4, 0.77, 0.99)[number % 4]
        recorder = Recorder(2000 + number)

        def randint(a, b, size=None, recorder=recorder):
            return a + math.floor(recorder.next() * (b - a))

        with mock.patch.object(timm_mixup.np.random, "randint", randint):
            (yl, yh, xl, xh), lam = timm_mixup.cutmix_bbox_and_lam((1, 3, size, size), share)
        cases.append(((size, size, share, lam), recorder.numbers, (xl, yl, xh - xl, yh - yl)))
    save_boxes("cutmix", cases)

    # A batch of two through timm's mixup and cutmix: every image is its neighbour's neighbour, as in a Loader.
    pixels = (torch.from_numpy(np.stack([PICTURE[:8, :8], PICTURE[3:11, 6:]])).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    mixup = timm_mixup.Mixup(mixup_alpha=0.8, cutmix_alpha=0.0, label_smoothing=0.1, num_classes=3)
    with mock.patch.object(timm_mixup.np.random, "beta", lambda a, b: 0.3):
        mixed, targets = mixup(pixels.clone(), torch.tensor([2, 0]))
    save("mixup.pixels", mixed.numpy())
    save("mixup.targets", targets.numpy())


# ---- TensorFlow, as big_vision calls it

class Philox:
    """TensorFlow's PhiloxRandom and SimplePhilox."""

    def __init__(self, seed, seed2):
        self.key = [seed & 0xFFFFFFFF, seed >> 32]
        self.counter = seed2 << 64
        self.unused = []

    def next(self):
        if not self.unused:
            counter = [self.counter >> 32 * i & 0xFFFFFFFF for i in range(4)]
            key = list(self.key)
            for _ in range(10):
                a, b = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
                counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
                key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
            self.counter += 1
            self.unused = counter
        return self.unused.pop(0)


def make_tensorflow():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    sys.path.insert(0, os.environ["BIG_VISION"])
    import autoaugment
    import tensorflow as tf

    image = tf.constant(PICTURE)
    replace = [128, 128, 128]

    def apply(name, sign, level, source=image):
        """As distort_image_with_randaugment does in a tf.data pipeline: in a graph."""
        autoaugment._randomly_negate_tensor = lambda value: sign * value
        hparams = autoaugment.HParams(cutout_const=4, translate_const=5)
        function, _, arguments = autoaugment._parse_policy_info(name, 1.0, float(level), replace, hparams)

        @tf.function(autograph=False)
        def run(pixels):
            return function(pixels, *arguments)
        return run(source).numpy()

    for level in (0, 10, 15):
        for name in ("Posterize", "Solarize", "SolarizeAdd", "Color", "Contrast", "Brightness", "Sharpness"):
            save(f"{name} {level}", apply(name, 1, level))
    save("AutoContrast 10", apply("AutoContrast", 1, 10, tf.constant(DULL)))
    save("Equalize 10", apply("Equalize", 1, 10, tf.constant(DULL)))
    save("Invert 10", apply("Invert", 1, 10))
    for name in ("Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"):
        for level, sign in ((10, 1), (15, -1)):
            save(f"{name} {sign * level}", apply(name, sign, level))
    # The middle of what is cut out is drawn inside: row, then column.
    drawn = iter([3, 12])
    autoaugment.tf.random_uniform = lambda **_: tf.constant(next(drawn))
    save("Cutout 10", apply("Cutout", 1, 10))

    # As big_vision's get_resize.
    for x, y, w, h, size in ((2, 1, 11, 9, 6), (0, 0, 14, 11, 16), (3, 4, 5, 3, 8), (0, 0, 14, 11, 3), (0, 0, 11, 11, 11)):
        part = tf.image.resize(image[y:y + h, x:x + w], (size, size), method="bilinear", antialias=False)
        part = tf.cast(tf.clip_by_value(part, tf.uint8.min, tf.uint8.max), tf.uint8)
        save(f"resized {x} {y} {w} {h} {size}", part.numpy())

    # Where no try succeeds it is the whole image, after more numbers than are kept here; so none is too long.
    sizes = [(500, 375), (375, 500), (28, 28), (300, 180), (200, 330), (1, 1), (5, 7), (224, 224)]
    cases = []
    for number in range(48):
        width, height = sizes[number % len(sizes)]
        area = (0.05, 1.0) if number % 3 else (0.7, 1.0)
        begin, size, _ = tf.raw_ops.SampleDistortedBoundingBoxV2(
            image_size=[height, width, 3], bounding_boxes=tf.zeros([0, 0, 4]), min_object_covered=0.0, seed=number + 1,
            seed2=77, aspect_ratio_range=[0.75, 4 / 3], area_range=area, max_attempts=100,
            use_image_if_no_bounding_boxes=True)
        (y, x, _), (h, w, _) = begin.numpy(), size.numpy()
        # Raw numbers: which kind is wanted next depends on what came of those before. Four make a try.
        philox = Philox(number + 1, 77)
        raw = [float(philox.next()) for _ in range(24)]
        cases.append(((width, height, *area), raw, (x, y, w, h)))
    save_boxes("inception", cases)


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) == 2 else ""
    if kind not in ("pillow", "tensorflow"):
        sys.exit(__doc__)
    make_pillow() if kind == "pillow" else make_tensorflow()
    write(GOLDEN / f"{kind}.safetensors")
