"""The UCI handwritten digits, 1797 images of 8 x 8 pixels, split once and for all."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

TEST_SIZE = 360
_FILE = Path(__file__).with_name("digits.npz")
_BRIGHTEST = 16
_SPLIT_SEED = 1998


def load_digits() -> tuple[Images, Labels, Images, Labels]:
    """The digits as `(x_train, y_train, x_test, y_test)`, in the same split and order every time.

    Images are float32[N, 64] in [0, 1], row by row; labels are int64[N] in 0..9. N is 1437 for training and
    360 for testing. Source and licence: LICENSE-digits.md beside this file.
    """
    with np.load(_FILE, allow_pickle=False) as stored:
        pixels, labels = stored["pixels"], stored["labels"]
    order = _split_order(len(labels))
    images = pixels[order].astype(np.float32) / np.float32(_BRIGHTEST)
    classes = labels[order].astype(np.int64)
    return images[:-TEST_SIZE], classes[:-TEST_SIZE], images[-TEST_SIZE:], classes[-TEST_SIZE:]


def minibatches(rng: np.random.Generator, batch: int, batches: int) -> tuple[tuple[Images, Labels], ...]:
    """Disjoint minibatches of the training digits. Raises ValueError when these do not suffice."""
    x, y, _, _ = load_digits()
    if batch * batches > len(x):
        raise ValueError(f"{batches} batches of {batch} need {batch * batches} digits, there are {len(x)}")
    order = rng.permutation(len(x))[: batch * batches].reshape(batches, batch)
    return tuple((x[rows], y[rows]) for rows in order)


def _split_order(count: int) -> npt.NDArray[np.intp]:
    # NumPy keeps the raw stream of a bit generator for ever; that of Generator.permutation may change.
    return np.argsort(np.random.PCG64(_SPLIT_SEED).random_raw(count), kind="stable")
