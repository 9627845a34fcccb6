// The header of NumPy's .npy arrays: magic and version, a length, and a Python dict in text such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (16, 16, 3, 192), }
// padded with spaces. The elements follow, back to back.
#pragma once

#include <sylvit/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sylvit::io {

/// What the header says, and where the elements begin.
struct NpyHeader {
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t data_begin = 0;
};

/// Reads the header of an array that has so many bytes altogether. `next` fills its argument with the bytes that follow
/// and is asked for no byte beyond those. Elements are f32, f16, f64, bfloat16 as JAX writes it (void of 2 bytes), u8
/// or signed integers, in C order, little-endian. `where` begins the sentence of every Error that is thrown; that the
/// elements fill what is left of the array exactly is checked too.
NpyHeader read_npy_header(std::uint64_t bytes, const std::function<void(std::span<char>)>& next,
                          const std::string& where);

}  // namespace sylvit::io
