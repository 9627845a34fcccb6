"""Makes tests/images/data: small image files of every kind, and beside each the pixels that Pillow reads from it (.rgb:
height, width as little-endian 32-bit numbers, then red, green and blue bytes). Run it again after a change:

    python3 tests/images/make_images.py        needs Pillow and NumPy
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

DATA = pathlib.Path(__file__).parent / "data"
WIDTH, HEIGHT = 13, 9
rng = np.random.default_rng(1)


def write_pixels(name, pixels):
    (DATA / f"{name}.rgb").write_bytes(struct.pack("<II", *pixels.shape[:2]) + pixels.tobytes())


def write(name, content):
    (DATA / name).write_bytes(content)
    write_pixels(name, np.array(Image.open(io.BytesIO(content)).convert("RGB")))


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(depth, colour_type, interlaced=False, chunks=()):
    """Random bits under random row filters."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour_type]
    adam7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = b""
    for x, y, across, down in adam7 if interlaced else [(0, 0, 1, 1)]:
        columns = len(range(x, WIDTH, across))
        for _ in range(y, HEIGHT, down):
            rows += bytes([rng.integers(0, 5)]) + rng.bytes((columns * channels * depth + 7) // 8)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colour_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*one) for one in chunks)
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pngs():
    def palette(colours):
        return (b"PLTE", rng.bytes(3 * colours))

    gamma = (b"gAMA", struct.pack(">I", 20000))
    write("grey1.png", png(1, 0))
    write("grey2.png", png(2, 0, chunks=[(b"tRNS", b"\0\1")]))
    write("grey8.png", png(8, 0, chunks=[gamma]))
    content = io.BytesIO()
    Image.fromarray(np.arange(WIDTH * HEIGHT, dtype=np.uint16).reshape(HEIGHT, WIDTH) * 4).save(content, "PNG")
    write("grey16.png", content.getvalue())
    write("grey_alpha.png", png(8, 4))
    write("grey_alpha16.png", png(16, 4))
    write("palette4.png", png(4, 3, chunks=[palette(11)]))  # some pixels have no colour
    write("palette8.png", png(8, 3, chunks=[palette(256), (b"tRNS", rng.bytes(9))]))
    write("rgb8.png", png(8, 2, chunks=[(b"tRNS", bytes(6))]))
    write("rgb16.png", png(16, 2))
    write("rgba8.png", png(8, 6))
    write("rgba16_interlaced.png", png(16, 6, interlaced=True))
    write("palette2_interlaced.png", png(2, 3, interlaced=True, chunks=[palette(4)]))


def jpegs():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    colours = np.stack([x * 18, y * 27, 255 - x * 9 - y * 13], -1).astype(np.uint8)
    picture = Image.fromarray(colours)

    def jpeg(image, **options):
        content = io.BytesIO()
        image.save(content, "JPEG", **options)
        return content.getvalue()

    write("baseline.jpg", jpeg(picture, quality=90))
    write("progressive.jpg", jpeg(picture, quality=70, progressive=True))
    write("full_colour.jpg", jpeg(picture, quality=80, subsampling=0))
    write("rgb.jpg", jpeg(picture, quality=80, keep_rgb=True))
    write("grey.jpg", jpeg(picture.convert("L"), quality=85))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees: not applied
    write("turned.jpg", jpeg(picture, quality=85, exif=exif))
    inks = Image.fromarray(np.concatenate([colours, (x * y)[..., None].astype(np.uint8)], -1), "CMYK")
    cmyk = jpeg(inks, quality=85)
    write("cmyk.jpg", cmyk)
    marker = cmyk.index(b"Adobe")
    write("ycck.jpg", cmyk[:marker + 11] + b"\2" + cmyk[marker + 12:])


def resized():
    """test_images.cpp makes the same pixels."""
    for width, height, size, crop in [(53, 37, 16, 0.9), (5, 61, 32, 0.875), (1, 1, 8, 1.0), (31, 90, 24, 0.95),
                                      (16, 16, 16, 1.0)]:
        y, x, c = np.mgrid[0:height, 0:width, 0:3]
        image = Image.fromarray(((x * x * 31 + y * y * 17 + x * y * 7 + c * 85) // 3 % 256).astype(np.uint8))
        shorter = int(size / crop)
        new = [shorter if own <= other else int(shorter * own / other)
               for own, other in [(width, height), (height, width)]]
        left, top = [round((side - size) / 2) for side in new]
        image = image.resize(new, Image.Resampling.BICUBIC).crop((left, top, left + size, top + size))
        write_pixels(f"resized_{width}x{height}", np.array(image))


DATA.mkdir(exist_ok=True)
pngs()
jpegs()
resized()
