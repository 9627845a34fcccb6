// Any bytes are either a header of an .npy array, whose elements fill the rest of them exactly, or are refused with a
// sentence.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cstring>

#include "fuzz/fuzz.hpp"
#include "io/npy.hpp"
#include "io/npz_writer.hpp"

using sylvit::fuzz::require;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t read = 0;
  const auto next = [&](std::span<char> into) {
    require(into.size() <= size - read);
    std::memcpy(into.data(), data + read, into.size());
    read += into.size();
  };
  try {
    const sylvit::io::NpyHeader header = sylvit::io::read_npy_header(size, next, "fuzz: ");
    require(header.data_begin == read);
    require(header.shape.elements() >= 0);
    require(static_cast<std::uint64_t>(header.shape.elements()) * sylvit::size_of(header.dtype) == size - read);
  } catch (const sylvit::Error& error) {
    sylvit::fuzz::require_sentence(error.what());
  }
  return 0;
}

namespace sylvit::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> result;
  for (const char* descr : {"<f4", "<f2", "<f8", "<V2", "|V2"})
    result.push_back(test::npy_of(test::npy_dict(descr, {1, 2}), std::string(2 * (descr[2] - '0'), '\0')));
  for (const int version : {1, 2, 3})
    result.push_back(test::npy_of(test::npy_dict("<f4", {}), std::string(4, '\0'), version));
  result.push_back(test::npy_of("{\"shape\":(0,),\"fortran_order\":False,\"descr\":\"<f4\"}", ""));
  return result;
}

std::vector<std::string_view> words() {
  return {"'descr'",
          "'fortran_order'",
          "'shape'",
          "'<f4'",
          "'|V2'",
          "True",
          "False",
          "(",
          ")",
          "{",
          "}",
          ":",
          ",",
          "'",
          "\"",
          " ",
          "0",
          "(1, 2)",
          "(3,)",
          "()",
          "4294967296",
          "9223372036854775807",
          "18446744073709551616",
          "\x93NUMPY\x01"};
}

}  // namespace sylvit::fuzz
