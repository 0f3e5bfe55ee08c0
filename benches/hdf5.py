"""Columns to HDF5 and back, with shuffle and gzip-4, timed.

`hdf5.py` prints the versions. `hdf5.py DIR SECONDS` takes the arrays that DIR/columns.txt tells of, writes
DIR/out.h5 and reads it, again and again for about SECONDS each, compares what came back with what was given,
and prints: seconds to encode, seconds to decode, bytes, processor seconds, peak memory in MiB.
"""

import os
import resource
import sys
import time

import h5py
import numpy

CHUNK_BYTES = 1 << 20


def given(folder):
    """The arrays: (name, array), texts as their lengths and their bytes, flags behind their values."""
    arrays = []
    with open(os.path.join(folder, "columns.txt")) as lines:
        for at, line in enumerate(lines):
            kind, rows, flags, axes = (line.rstrip("\n").split(" ") + [""])[:4]
            rows = int(rows)
            shape = [rows] + [int(axis) for axis in axes.split(",") if axis]
            raw = numpy.fromfile(os.path.join(folder, f"{at}.bin"), dtype=numpy.uint8)
            if flags == "flags":
                cut = len(raw) - (rows + 7) // 8
                raw, packed = raw[:cut], raw[cut:]
                bits = numpy.unpackbits(packed, count=rows, bitorder="little")
                arrays.append((f"{at}-present", bits.astype(bool)))
            if kind == "text":
                arrays.append((f"{at}-lengths", raw[: 4 * rows].view("<u4")))
                arrays.append((f"{at}-bytes", raw[4 * rows :]))
            else:
                arrays.append((str(at), raw.view("<f8" if kind == "f64" else "<i8").reshape(shape)))
    return arrays


def chunk_of(array):
    """Whole records, about a MiB of them."""
    record = array.itemsize * int(numpy.prod(array.shape[1:], dtype=numpy.int64))
    return (max(1, min(array.shape[0], CHUNK_BYTES // record)),) + array.shape[1:]


def encode(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays:
            file.create_dataset(
                name, data=array, chunks=chunk_of(array), shuffle=True, compression="gzip", compression_opts=4
            )


def decode(path):
    with h5py.File(path, "r") as file:
        return {name: file[name][...] for name in file}


def timed(seconds, work):
    began = time.perf_counter()
    times = 0
    while times == 0 or time.perf_counter() - began < seconds:
        result = work()
        times += 1
    return (time.perf_counter() - began) / times, result


def main():
    if len(sys.argv) == 1:
        print(f"Python {sys.version.split()[0]}, h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}, "
              f"numpy {numpy.__version__}")
        return
    folder, seconds = sys.argv[1], float(sys.argv[2])
    arrays = given(folder)
    path = os.path.join(folder, "out.h5")
    before = time.process_time()
    encoding, _ = timed(seconds, lambda: encode(path, arrays))
    decoding, found = timed(seconds, lambda: decode(path))
    spent = time.process_time() - before
    for name, array in arrays:
        if found[name].tobytes() != array.tobytes():
            sys.exit(f"dataset {name} came back otherwise")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(encoding, decoding, os.path.getsize(path), spent, peak)


main()
