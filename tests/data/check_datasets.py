"""Checks what ci/data does after a download: what it writes is a SOURCE, no image is in two parts, and a pickle can do
nothing.

    check_datasets.py <sylvit> <folder of ci>
"""
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile


class Hostile:
    def __reduce__(self):
        return print, ("a pickle printed this",)


def main(program, ci):
    sys.dont_write_bytecode = True
    sys.path.insert(0, ci)
    from datasets import fetch, small

    images = [bytes([i % 40] * 64) for i in range(100)]  # of which most are repeated, with the same label
    labels = [i % 40 % 4 for i in range(100)]
    images += [bytes([200] * 64)] * 2  # of two classes
    labels += [0, 1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        fetch.write_split(folder, images, labels, 8)
        fetch.write_classes(folder, ["a", "b", "c", "d"])

        def show(split, *more):
            words = [program, "data", "show", "--json", f"{folder}:{split}", *more]
            return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)

        train = show("train", "--against", f"{folder}:test")
        assert train["against"]["same"] == 0, train
        assert [one["name"] for one in train["classes"]] == ["a", "b", "c", "d"], train
        assert (train["images"], show("test")["images"]) == (32, 8), train

    try:
        small.Arrays(io.BytesIO(pickle.dumps(Hostile()))).load()
        raise AssertionError("the pickle was loaded")
    except fetch.Failure as failure:
        assert "which is no array" in str(failure), failure
    assert subprocess.run([f"{ci}/data", "unknown"], capture_output=True).returncode == 2


main(*sys.argv[1:])
