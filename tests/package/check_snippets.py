"""Checks that the code on a page is code that runs: every cpp, c, cmake and python block is a piece of a file of examples/,
line by line, but for spaces. ci/embedding builds and runs those.

    check_snippets.py <directory of the examples> <page>...
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```(cpp|c|cmake|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_of(text):
    """The lines without what a formatter may change: indentation, and spaces before a comment."""
    return [" ".join(line.split()) for line in text.splitlines()]


def contains(lines, piece):
    return any(lines[i:i + len(piece)] == piece for i in range(len(lines) - len(piece) + 1))


def main(examples, pages):
    files = [lines_of(path.read_text(encoding="utf-8")) for path in sorted(pathlib.Path(examples).glob("*/*"))
             if path.is_file()]
    failures = 0
    for page in pages:
        text = pathlib.Path(page).read_text(encoding="utf-8")
        blocks = list(BLOCK.finditer(text))
        if not blocks or len(files) < 5:
            print(f"check_snippets: {page} has {len(blocks)} blocks, and there are {len(files)} files of examples",
                  file=sys.stderr)
            failures += 1
        for block in blocks:
            piece = lines_of(block[2])
            if not any(contains(lines, piece) for lines in files):
                number = text.count("\n", 0, block.start()) + 1
                print(f"check_snippets: {page}:{number}: no example has this block: {piece[0]}", file=sys.stderr)
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
