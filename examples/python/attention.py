"""Attention through the C interface from Python, with nothing but ctypes.

    attention.py <libsylvit.so>
"""
import ctypes
import math
import sys


class Attention(ctypes.Structure):
    """sylvit_attention, member by member."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("batch", ctypes.c_int64), ("heads", ctypes.c_int64),
                ("kv_heads", ctypes.c_int64), ("queries", ctypes.c_int64), ("keys", ctypes.c_int64),
                ("head_size", ctypes.c_int64), ("score", ctypes.c_char_p), ("alpha", ctypes.c_float),
                ("divisor", ctypes.c_float), ("scale", ctypes.c_float), ("causal", ctypes.c_int),
                ("lengths", ctypes.POINTER(ctypes.c_int32))]


sylvit = ctypes.CDLL(sys.argv[1])
sylvit.sylvit_last_error.restype = ctypes.c_char_p
sylvit.sylvit_device_close.argtypes = [ctypes.c_void_p]
floats = ctypes.POINTER(ctypes.c_float)
sylvit.sylvit_attention_forward.argtypes = [ctypes.c_void_p, ctypes.POINTER(Attention)] + 5 * [floats]


def done(status):
    """Raises the library's own sentence."""
    if status != 0:
        raise RuntimeError(sylvit.sylvit_last_error().decode())


device = ctypes.c_void_p()
done(sylvit.sylvit_device_open(b"", ctypes.byref(device)))
relu = Attention(struct_size=ctypes.sizeof(Attention), batch=1, heads=1, queries=3, head_size=16, score=b"relu", alpha=1)
q = (ctypes.c_float * 48)(*[math.sin(i) for i in range(48)])
o = (ctypes.c_float * 48)()
done(sylvit.sylvit_attention_forward(device, relu, q, q, q, o, None))

row = lambda i: q[16 * i:16 * i + 16]
weight = lambda i, j: max(0.0, sum(a * b for a, b in zip(row(i), row(j))) / 4) / 3
error = max(abs(o[16 * i + c] - sum(weight(i, j) * row(j)[c] for j in range(3))) for i in range(3) for c in range(16))
print(f"attention from Python: error {error:.1e}")

relu.head_size = 20
try:
    done(sylvit.sylvit_attention_forward(device, relu, q, q, q, o, None))
    sys.exit("a head size of 20 was not refused")
except RuntimeError as refused:
    print(refused)
sylvit.sylvit_device_close(device)
sys.exit(error > 1e-5)
