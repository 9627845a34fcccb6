"""Letters and digits of many fonts, rendered with FreeType (Pillow's) at 28 x 28."""
import collections
import hashlib
import multiprocessing
import re

from . import fetch, pictures

SIDE = 28
BASIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# What else a class may be made of: Latin, Greek and Cyrillic letters, punctuation, currencies, arrows, mathematics.
OTHERS = "".join(chr(code) for first, last in ((0x21, 0x7E), (0xA1, 0x17F), (0x384, 0x3CE), (0x400, 0x45F),
                                               (0x2010, 0x2044), (0x20A0, 0x20BF), (0x2190, 0x2195), (0x2202, 0x2265))
                 for code in range(first, last + 1) if chr(code) not in BASIC and chr(code).isprintable())


def packages():
    """Debian's fonts of at most 3 MB: the larger ones are Chinese, Japanese and Korean."""
    text = fetch.run(["apt-cache", "dumpavail"], "apt-cache cannot list packages")
    names = []
    for entry in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Size): (.*)$", entry, re.MULTILINE))
        if fields.get("Package", "").startswith("fonts-") and int(fields.get("Size", 0)) <= 3_000_000:
            names.append(fields["Package"])
    if not names:
        raise fetch.Failure("apt-cache knows no font packages; 'apt-get update' may help")
    return sorted(set(names))


def render(font, character):
    """The character on the baseline, in the middle; None if there is nothing, or too much."""
    left, top, right, bottom = font.getbbox(character, anchor="ls")
    width = right - left
    if width <= 0 or bottom <= top or width > SIDE or top < -21 or bottom > 7:
        return None
    image = pictures.Image.new("L", (SIDE, SIDE))
    pictures.ImageDraw.Draw(image).text(((SIDE - width) // 2 - left, 21), character, fill=255, font=font, anchor="ls")
    return image.tobytes()


def glyphs_of(path):
    """The bitmaps of a font by character, if it has all of BASIC, or None. Its capitals are 15 pixels high."""
    try:
        font = pictures.ImageFont.truetype(path, 100, layout_engine=pictures.ImageFont.Layout.BASIC)
        height = -font.getbbox("H", anchor="ls")[1]
        if height < 10:
            return None
        font = font.font_variant(size=max(6, min(60, round(100 * 15 / height))))
        # What a font draws for a character that it does not have.
        missing = {render(font, code) for code in ("\uFFFF", "\U0010FFFF", "\uE0FF")}
        found = {}
        for character in BASIC + OTHERS:
            bitmap = render(font, character)
            if bitmap is not None and bitmap not in missing and sum(bitmap) >= 255:
                found[character] = bitmap
            elif character in BASIC:
                return None
        return found if len({found[character] for character in BASIC}) >= 36 else None
    except (OSError, ValueError, RuntimeError):
        return None


def family_of(path):
    """Faces of a family are alike, so they are all for training or all for the test."""
    return re.split(r"[-_ ,.0-9]", path.stem.lower())[0][:8]


def is_for_test(path):
    return hashlib.sha256(family_of(path).encode()).digest()[0] % 8 == 0


def classes_of(fonts, wanted):
    """The characters of each class. Characters that look the same in most fonts that have both are one class."""
    have = collections.Counter(character for found in fonts for character in found)
    order = sorted(have, key=lambda character: (character not in BASIC, -have[character], character))
    same, both = collections.Counter(), collections.Counter()
    for found in fonts:
        by_bitmap = collections.defaultdict(list)
        for character, bitmap in found.items():
            by_bitmap[bitmap].append(character)
        for alike in by_bitmap.values():
            same.update((a, b) for a in alike for b in alike if a != b)
    for a, b in same:
        both[a, b] = sum(a in found and b in found for found in fonts)
    classes = []
    for character in order:
        home = next((one for one in classes if same[character, one[0]] * 2 > both[character, one[0]] > 0), None)
        if home:
            if character not in BASIC:
                home.append(character)
                continue
        if len(classes) < wanted:
            classes.append([character])
    return classes


def glyphs(folder, wanted):
    pictures.needs_pillow()
    names = packages()
    with fetch.debian(*names) as files:
        paths = sorted(path for path in (files / "usr/share/fonts").rglob("*")
                       if path.suffix.lower() in (".ttf", ".otf", ".pfb") and path.is_file() and not path.is_symlink())
        with multiprocessing.Pool() as pool:
            found = pool.map(glyphs_of, map(str, paths), chunksize=8)
        fonts = [(path, bitmaps) for path, bitmaps in zip(paths, found) if bitmaps]
        if wanted == len(BASIC):
            classes = [[character] for character in BASIC]
        else:
            classes = classes_of([bitmaps for _, bitmaps in fonts], wanted)
        parts = {"train": ([], []), "test": ([], [])}
        for path, bitmaps in fonts:
            images, labels = parts["test" if is_for_test(path) else "train"]
            for label, characters in enumerate(classes):
                for bitmap in {bitmaps[character] for character in characters if character in bitmaps}:
                    images.append(bitmap)
                    labels.append(label)
        # A bitmap counts once; not at all where it stands for several classes; and not for the test if it was trained with.
        ambiguous = collections.defaultdict(set)
        for images, labels in parts.values():
            for bitmap, label in zip(images, labels):
                ambiguous[bitmap].add(label)
        seen = set()
        for split in ("train", "test"):
            kept = [], []
            for bitmap, label in zip(*parts[split]):
                if bitmap in seen or len(ambiguous[bitmap]) > 1:
                    continue
                seen.add(bitmap)
                kept[0].append(bitmap)
                kept[1].append(label)
            fetch.write_idx(folder, split, *kept, SIDE)
        fetch.write_classes(folder, ["".join(characters) for characters in classes])
        used = sorted({str(path.relative_to(files)) for path, _ in fonts})
        lines = [f"Rendered from {len(used)} fonts of {len(names)} Debian packages. What their authors allow stands in the\n"
                 "packages' copyright files, whose lines of licences are:\n"]
        for name in names:
            try:
                text = fetch.copyright_of(files, name)
            except OSError:
                continue
            licences = sorted(set(re.findall(r"^License: *(.+)$", text, re.MULTILINE)))
            lines.append(f"{name}: {', '.join(licences) or 'see /usr/share/doc/' + name + '/copyright of the package'}")
        (folder / "LICENCE").write_text("\n".join(lines) + "\n")


def glyphs_62(folder, _):
    glyphs(folder, len(BASIC))


def glyphs_244(folder, _):
    glyphs(folder, 244)
