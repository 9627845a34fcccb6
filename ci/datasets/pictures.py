"""Colour images, as folders of PNG files: PATH/train/CLASS and PATH/test/CLASS."""
import collections
import re
import warnings

from . import fetch

try:
    from PIL import Image, ImageDraw, ImageFont, features
except ImportError:  # which needs_pillow() says when it matters
    Image = None


def needs_pillow():
    if Image is None:
        raise fetch.Failure("Pillow is missing: apt-get install python3-pil")


def on_white(image, side):
    """The image in the middle of a white square, as large as fits."""
    image = image.convert("RGBA")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    square = Image.new("RGBA", (side, side), "white")
    square.alpha_composite(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square.convert("RGB")


def write(folder, split, label, name, image):
    path = folder / split / label / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def openclipart(folder, _):
    """A class is a folder right below the top with at least 50 different images; "unsorted" and "special" are none."""
    needs_pillow()
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    with fetch.debian("openclipart-png") as files:
        top = files / "usr/share/openclipart/png"
        paths, labels, pixels, images = [], [], [], []
        for label in sorted(path.name for path in top.iterdir() if path.is_dir()):
            if label in ("unsorted", "special"):
                continue
            for path in sorted((top / label).rglob("*.png")):
                try:
                    image = on_white(Image.open(path), 96)
                except (OSError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning):
                    continue  # some are broken, or of 100 million pixels
                paths.append("_".join(path.relative_to(top / label).with_suffix("").parts))
                labels.append(label)
                pixels.append(image.tobytes())
                images.append(image)
        kept = set(zip(*fetch.without_repetition(pixels, labels)))
        count = collections.Counter(label for _, label in kept)
        seen, written = {}, set()
        for path, label, own, image in zip(paths, labels, pixels, images):
            if (own, label) not in kept or own in written or count[label] < 50:
                continue
            written.add(own)
            seen[label] = seen.get(label, 0) + 1
            write(folder, "test" if seen[label] % 5 == 0 else "train", label, path, image)
        (folder / "LICENCE").write_text(fetch.copyright_of(files, "openclipart-png"))


def emoji(folder, _):
    """Classes are Unicode's groups. One vendor's pictures are for training, another's for the test."""
    needs_pillow()
    if not features.check("raqm"):
        raise fetch.Failure("this Pillow cannot lay out sequences of characters: it lacks raqm, which Debian's has")
    packages = ("fonts-noto-color-emoji", "ruby-gemojione", "unicode-data")
    with fetch.debian(*packages) as files:
        [names] = files.rglob("emoji-test.txt")
        [font_file] = files.rglob("NotoColorEmoji.ttf")
        font = ImageFont.truetype(str(font_file), 109, layout_engine=ImageFont.Layout.RAQM)
        others = {path.stem.upper(): path for path in files.rglob("gemojione-*/assets/png/*.png")}
        group = ""
        for line in names.read_text().splitlines():
            if line.startswith("# group: "):
                group = re.sub("[^a-z]+", "-", line[9:].lower())
            found = re.match(r"([0-9A-F ]+?) *; fully-qualified", line)
            if not found:
                continue
            codes = found[1].split()
            name = "-".join(code for code in codes if code != "FE0F")
            text = "".join(chr(int(code, 16)) for code in codes)
            picture = Image.new("RGBA", (136, 128))
            # A sequence that the font does not know is drawn as several pictures.
            if font.getlength(text) <= picture.width:
                ImageDraw.Draw(picture).text((0, 0), text, font=font, embedded_color=True)
            if picture.getbbox():
                write(folder, "train", group, name, on_white(picture, 64))
            if name in others:
                write(folder, "test", group, name, on_white(Image.open(others[name]), 64))
        (folder / "LICENCE").write_text("\n".join(fetch.copyright_of(files, package) for package in packages))
