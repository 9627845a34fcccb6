// The safetensors reader trusts nothing and the writer leaves nothing half done: round trips, one hostile file per
// rule, a deterministic mutation fuzz, and faults while writing.
#include <sylvit/error.hpp>

#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <deque>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "io/safetensors.hpp"
#include "support.hpp"

TEST_SUITE_BEGIN("io/safetensors");

namespace {

namespace fs = std::filesystem;
using sylvit::DType;
using sylvit::Shape;
using sylvit::io::OutputTensor;
using sylvit::io::SafetensorsFile;
using sylvit::io::write_safetensors;
using sylvit::test::check_contains;
using sylvit::test::read_file;

class Directory {
 public:
  fs::path operator/(const std::string& name) const { return directory_.path() / name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

 private:
  sylvit::test::TemporaryDirectory directory_;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::string length_prefix(std::uint64_t length) {
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &length, 8);
  return prefix;
}

/// A file of this header and so many bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  return length_prefix(header.size()) + header + std::string(data_bytes, '\x01');
}

/// Parses a copy that ends where its memory ends, so that ASan sees any read beyond.
template <class Use>
auto with_exact_copy(const std::string& file, Use use) {
  const auto copy = std::make_unique<std::byte[]>(file.size());
  std::memcpy(copy.get(), file.data(), file.size());
  return use(SafetensorsFile::parse({copy.get(), file.size()}, "test.safetensors"));
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const sylvit::Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const std::string& file) {
  return refusal([&] { with_exact_copy(file, [](const SafetensorsFile&) {}); });
}

std::string header_refusal(const std::string& header, std::size_t data_bytes) {
  return refusal(file_of(header, data_bytes));
}

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

const std::string good_header = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";

}  // namespace

TEST_CASE("safetensors: a file comes back as it was written") {
  const Directory directory;
  const std::vector<float> a{1.5F, -0.0F, std::numeric_limits<float>::infinity(), 3.25F, 1e-40F, -7.0F};
  const std::vector<std::uint8_t> b{1, 2, 3};
  const std::vector<std::int64_t> c{-5, std::numeric_limits<std::int64_t>::max()};
  const std::vector<float> none;
  const std::vector<OutputTensor> tensors{{"z first", DType::f32, {2, 3}, bytes_of(a)},
                                          {"empty", DType::f32, {0, 4}, bytes_of(none)},
                                          {"b \"ü\"\n\\", DType::u8, {3}, bytes_of(b)},
                                          {"", DType::i64, {2, 1}, bytes_of(c)},
                                          {"scalar", DType::boolean, {}, bytes_of(b).first(1)}};
  const sylvit::io::SafetensorsMetadata metadata{{"format", "pt"}, {"größe", "1\t2"}};
  const fs::path path = directory / "x.safetensors";
  write_safetensors(path, tensors, metadata);

  const SafetensorsFile file = SafetensorsFile::open(path);
  CHECK(file.metadata() == metadata);
  REQUIRE(file.tensors().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const sylvit::io::TensorInfo& info = file.tensors()[i];
    CAPTURE(info.name);
    CHECK(info.name == tensors[i].name);
    CHECK(info.dtype == tensors[i].dtype);
    CHECK(info.shape == tensors[i].shape);
    CHECK(file.find(info.name) == &info);
    const auto bytes = file.read_bytes(info);
    CHECK(std::equal(bytes.begin(), bytes.end(), tensors[i].bytes.begin(), tensors[i].bytes.end()));
  }
  CHECK(file.read_f32("z first", Shape{2, 3}) == a);
  CHECK(file.read_f32("empty").empty());
  CHECK(file.read_i64("") == c);  // unaligned, after 3 bytes of U8
  CHECK(file.find("none") == nullptr);
  CHECK(directory.entries() == 1);  // no temporary left

  const std::string text = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(text.substr(8, 16) == R"({"__metadata__":)");

  // The same again gives the same bytes, and copies of the file object outlive the file on disk.
  write_safetensors(path, tensors, metadata);
  CHECK(read_file(path) == text);
  const SafetensorsFile copy = file;  // NOLINT(performance-unnecessary-copy-initialization): the copy is the subject
  fs::remove(path);
  CHECK(copy.read_f32("z first") == a);
}

TEST_CASE("safetensors: no tensors, and the smallest file upstream writes") {
  const Directory directory;
  const fs::path path = directory / "none.safetensors";
  write_safetensors(path, {});
  CHECK(read_file(path) == length_prefix(8) + "{}      ");
  CHECK(SafetensorsFile::open(path).tensors().empty());
  with_exact_copy(file_of("{}", 0), [](const SafetensorsFile& file) { CHECK(file.tensors().empty()); });
}

TEST_CASE("safetensors: the header's order does not matter, the data's order is what counts") {
  const std::string header = R"({"b":{"data_offsets":[4,6],"dtype":"U8","shape":[2]}, "e":{"dtype":"U8","shape":[0],)"
                             R"("data_offsets":[4,4]}, "a":{"shape":[1],"dtype":"F32","data_offsets":[0,4]}}   )";
  with_exact_copy(file_of(header, 6), [](const SafetensorsFile& file) {
    REQUIRE(file.tensors().size() == 3);
    CHECK(file.tensors()[0].name == "a");
    CHECK(file.tensors()[1].name == "e");
    CHECK(file.tensors()[2].name == "b");
    CHECK(file.read_i64("b") == std::vector<std::int64_t>{1, 1});
  });
}

TEST_CASE("safetensors: conversions to f32 and i64") {
  const std::vector<double> f64{1.1, -1e300, std::nan("")};
  const std::vector<std::uint16_t> f16{0x3C00, 0x0001, 0xFC00};
  const std::vector<std::uint16_t> bf16{0x3F80, 0xC040, 0x0001};
  const std::vector<std::int32_t> i32{-7, 8};
  const std::vector<std::int16_t> i16{-32768, 5};
  const std::vector<std::int8_t> i8{-128, 127};
  const std::vector<std::uint8_t> u8{255, 0};
  const std::vector<OutputTensor> tensors{{"u8", DType::u8, {2}, bytes_of(u8)},
                                          {"i8", DType::i8, {2}, bytes_of(i8)},
                                          {"odd", DType::u8, {1}, bytes_of(u8).first(1)},
                                          {"f64", DType::f64, {3}, bytes_of(f64)},
                                          {"f16", DType::f16, {3}, bytes_of(f16)},
                                          {"bf16", DType::bf16, {3}, bytes_of(bf16)},
                                          {"i32", DType::i32, {2}, bytes_of(i32)},
                                          {"i16", DType::i16, {2}, bytes_of(i16)},
                                          {"bool", DType::boolean, {1}, bytes_of(u8).first(1)}};
  std::string text = sylvit::io::safetensors_header(tensors);
  for (const OutputTensor& tensor : tensors)
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());

  with_exact_copy(text, [](const SafetensorsFile& file) {
    const std::vector<float> doubles = file.read_f32("f64");
    CHECK(doubles[0] == 1.1F);
    CHECK(doubles[1] == -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(doubles[2]));
    CHECK(file.read_f32("f16") == std::vector<float>{1.0F, 0x1p-24F, -std::numeric_limits<float>::infinity()});
    CHECK(file.read_f32("bf16") == std::vector<float>{1.0F, -3.0F, 0x1p-133F});
    CHECK(file.read_i64("i32") == std::vector<std::int64_t>{-7, 8});
    CHECK(file.read_i64("i16") == std::vector<std::int64_t>{-32768, 5});
    CHECK(file.read_i64("i8") == std::vector<std::int64_t>{-128, 127});
    CHECK(file.read_i64("u8") == std::vector<std::int64_t>{255, 0});

    check_contains(refusal([&] { file.read_f32("i32"); }), {"test.safetensors", "\"i32\"", "I32", "BF16"});
    check_contains(refusal([&] { file.read_f32("bool"); }), {"\"bool\"", "BOOL", "F64"});
    check_contains(refusal([&] { file.read_i64("f16"); }), {"\"f16\"", "F16", "I64"});
    check_contains(refusal([&] { file.read_i64("bool"); }), {"\"bool\"", "BOOL", "I64"});
    check_contains(refusal([&] { file.read_f32("f64", Shape{3, 1}); }), {"\"f64\"", "[3]", "[3, 1]"});
    check_contains(refusal([&] { file.read_i64("q"); }), {"no tensor \"q\"", R"("u8", "i8")", "and 1 more"});
    check_contains(refusal([&] { file.read_bytes({"far", DType::u8, {9999}, 0, 9999}); }), {"\"far\"", "[0, 9999)"});
    check_contains(refusal([&] { file.read_bytes({"far", DType::u8, {9}, 9, 3}); }), {"\"far\"", "[9, 3)"});
  });
}

TEST_CASE("safetensors: a type that is not read does no harm until its tensor is asked for") {
  const auto header = [](const std::string& dtype, const std::string& shape, int bytes) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" + std::to_string(bytes) +
           R"(]},"b":{"dtype":"U8","shape":[2],"data_offsets":[)" + std::to_string(bytes) + "," +
           std::to_string(bytes + 2) + "]}}";
  };
  for (const auto& [dtype, bytes] :
       {std::pair{"U16", 8}, std::pair{"U32", 16}, std::pair{"U64", 32}, std::pair{"C64", 32}, std::pair{"F8_E4M3", 4},
        std::pair{"F8_E5M2", 4}, std::pair{"F8_E8M0", 4}, std::pair{"F6_E2M3", 3}, std::pair{"F4", 2}}) {
    CAPTURE(dtype);
    const auto size = static_cast<std::size_t>(bytes);
    with_exact_copy(file_of(header(dtype, "[2,2]", bytes), size + 2), [&](const SafetensorsFile& file) {
      CHECK(file.read_i64("b") == std::vector<std::int64_t>{1, 1});
      CHECK(file.at("a").dtype_text() == dtype);
      CHECK(file.read_bytes(file.at("a")).size() == size);
      check_contains(refusal([&] { file.read_f32("a"); }), {"\"a\"", dtype, "BF16"});
      check_contains(refusal([&] { file.read_i64("a"); }), {"\"a\"", dtype, "I64"});
    });
    check_contains(header_refusal(header(dtype, "[2,4]", bytes), size + 2), {"tensor \"a\"", dtype, "needs"});
  }
  check_contains(header_refusal(header("F4", "[3]", 1), 3), {"F4 [3]", "whole number of bytes"});
}

TEST_CASE("safetensors: lengths that do not agree with the file") {
  CHECK(refusal(file_of(good_header, 24)) == "accepted");
  check_contains(refusal(std::string()), {"test.safetensors is empty"});
  check_contains(refusal(std::string(7, '\1')), {"test.safetensors", "7 bytes", "too short"});
  check_contains(refusal(length_prefix(0)), {"does not start with \"{\""});
  check_contains(refusal(length_prefix(1)), {"header of 1 bytes", "0 bytes that follow"});
  check_contains(refusal(length_prefix(100) + good_header), {"header of 100 bytes", "57 bytes that follow"});
  check_contains(refusal(length_prefix(100'000'001) + good_header), {"100000001", "limit of 100000000"});
  check_contains(refusal(length_prefix(~std::uint64_t{0}) + good_header), {"18446744073709551615", "limit"});
  // 2^64 - 8 would wrap to a whole file if length and 8 were added without care.
  check_contains(refusal(length_prefix(~std::uint64_t{7}) + good_header), {"18446744073709551608", "limit"});
  for (std::size_t size = 0; size < file_of(good_header, 24).size(); ++size)
    CHECK(refusal(file_of(good_header, 24).substr(0, size)) != "accepted");
}

TEST_CASE("safetensors: headers that are not the JSON they should be") {
  for (const std::string header : {"{", "{}x", "{}{}", R"({"a")", R"({"a":})", "{,}", R"({"a":{"dtype":"F32",}})",
                                   "{\"\xff\":{}}", "{\"\xc3\":{}}", "{\"\xed\xa0\x80\":{}}", R"({"\ud800":{}})",
                                   "{\"a\nb\":{}}", "{/* */}", R"({"__metadata__":{"a":1e999}})"})
    check_contains(header_refusal(header, 0), {"test.safetensors", "not valid UTF-8 JSON near byte"});
  // A zero byte must not hide what follows it, be it space or not.
  check_contains(header_refusal(std::string("{}\0{}", 5), 0), {"not valid UTF-8 JSON near byte 3"});
  check_contains(header_refusal(std::string("{}\0", 3), 0), {"not valid UTF-8 JSON near byte 3"});

  check_contains(header_refusal(" {}", 0), {"does not start with \"{\""});
  check_contains(header_refusal("[]", 0), {"does not start with \"{\""});
  check_contains(header_refusal("\xef\xbb\xbf{}", 0), {"does not start with \"{\""});
  for (const std::string value : {"1", "-1", "1.5", "null", "true", R"("x")", "[]"}) {
    check_contains(header_refusal("{\"a\":" + value + "}", 0), {"entry \"a\" is", "instead of an object"});
    check_contains(header_refusal("{\"__metadata__\":" + value + "}", 0), {"__metadata__", "instead of an object"});
  }
}

TEST_CASE("safetensors: metadata is a map from text to text") {
  const std::string good = R"({"__metadata__":{"a":"1","":""}})";
  with_exact_copy(file_of(good, 0), [](const SafetensorsFile& file) {
    CHECK(file.metadata() == sylvit::io::SafetensorsMetadata{{"a", "1"}, {"", ""}});
  });
  for (const std::string value : {"1", "-1", "1.5", "null", "false", "[]", "{}"})
    check_contains(header_refusal(R"({"__metadata__":{"k":)" + value + "}}", 0), {"\"k\" is", "instead of a string"});
  check_contains(header_refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), {"key \"k\" twice"});
  check_contains(header_refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), {"__metadata__ twice"});
}

TEST_CASE("safetensors: an entry has dtype, shape and data_offsets, once each, and nothing else") {
  const auto entry = [](const std::string& fields, std::size_t data = 24) {
    return header_refusal("{\"a\":{" + fields + "}}", data);
  };
  const std::string dtype = R"("dtype":"F32")";
  const std::string shape = R"("shape":[2,3])";
  const std::string offsets = R"("data_offsets":[0,24])";
  CHECK(entry(dtype + "," + shape + "," + offsets) == "accepted");
  check_contains(entry(shape + "," + offsets), {"tensor \"a\"", "lacks dtype"});
  check_contains(entry(dtype + "," + offsets), {"tensor \"a\"", "lacks shape"});
  check_contains(entry(dtype + "," + shape), {"tensor \"a\"", "lacks data_offsets"});
  check_contains(entry(""), {"tensor \"a\"", "lacks"});
  const std::string whole = dtype + "," + shape + "," + offsets;
  check_contains(entry(whole + R"(,"extra":1)"), {"tensor \"a\"", "unknown key \"extra\""});
  check_contains(entry(whole + "," + dtype), {"tensor \"a\"", "dtype twice"});
  check_contains(entry(whole + "," + shape), {"tensor \"a\"", "shape twice"});
  check_contains(entry(whole + "," + offsets), {"tensor \"a\"", "data_offsets twice"});

  const auto with_dtype = [&](const std::string& value) { return entry("\"dtype\":" + value + "," + shape); };
  for (const std::string name : {R"("F8")", R"("U33")", R"("f32")", R"("")", R"("F32 ")"})
    check_contains(with_dtype(name), {"test.safetensors", "tensor \"a\"", name.c_str(), "F64, F32, F16, BF16, I64"});
  for (const std::string value : {"1", "-1", "1.5", "null", "true", "[]", "{}"})
    check_contains(with_dtype(value), {"tensor \"a\"", "its dtype is", "instead of a string"});
  for (const std::string key : {"shape", "data_offsets"}) {
    const auto with_value = [&](const std::string& value) {
      return entry(std::string("\"").append(key).append("\":").append(value));
    };
    for (const std::string value : {"1", "-1", "1.5", "null", "true", "\"x\"", "{}"})
      check_contains(with_value(value), {"tensor \"a\"", key.c_str(), "instead of an array"});
    // 1.0 and 1e1 are whole numbers but not integers; 2^64 does not fit; -0 is no index either.
    for (const std::string value :
         {"[-1]", "[-0]", "[1.0]", "[1e1]", "[18446744073709551616]", "[null]", "[\"1\"]", "[[]]", "[{}]"})
      check_contains(with_value(value), {"tensor \"a\"", key.c_str(), "instead of a non-negative integer"});
  }
}

TEST_CASE("safetensors: shapes") {
  const auto shape = [](const std::string& extents, const std::string& offsets, std::size_t data) {
    return header_refusal(R"({"a":{"dtype":"F32","shape":[)" + extents + R"(],"data_offsets":[)" + offsets + "]}}",
                          data);
  };
  CHECK(shape("", "0,4", 4) == "accepted");
  CHECK(shape("1,1,1,1,1,1,1,1", "0,4", 4) == "accepted");
  CHECK(shape("0", "0,0", 0) == "accepted");
  check_contains(shape("9223372036854775807,0", "0,0", 0), {"F32 [9223372036854775807, 0]", "do not fit"});
  check_contains(shape("1,1,1,1,1,1,1,1,1", "0,4", 4), {"tensor \"a\"", "more than 8 extents"});
  check_contains(shape("9223372036854775808", "0,4", 4),
                 {"tensor \"a\"", "extent 9223372036854775808 does not fit in 63 bits"});
  check_contains(shape("2,3", "0,20", 20), {"tensor \"a\"", "F32 [2, 3] needs 24 bytes", "[0, 20) hold 20"});
  check_contains(shape("0,3", "0,20", 20), {"tensor \"a\"", "needs 0 bytes", "hold 20"});
  // Products that wrap round to 4 bytes, to 0 bytes, or past the sign.
  check_contains(shape("4611686018427387905", "0,4", 4), {"F32 [4611686018427387905]", "do not fit"});
  check_contains(shape("4294967296,4294967296", "0,0", 0), {"F32 [4294967296, 4294967296]", "do not fit"});
  check_contains(shape("2305843009213693952", "0,0", 0), {"F32 [2305843009213693952]", "do not fit"});
  check_contains(shape("0,4294967296,4294967296", "0,0", 0), {"do not fit"});
}

TEST_CASE("safetensors: offsets lie in the file, without holes and overlaps") {
  const auto offsets = [](const std::string& numbers, std::size_t data = 4) {
    return header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[)" + numbers + "]}}", data);
  };
  CHECK(offsets("0,4") == "accepted");
  check_contains(offsets(""), {"tensor \"a\"", "0 numbers instead of 2"});
  check_contains(offsets("0"), {"tensor \"a\"", "1 numbers instead of 2"});
  check_contains(offsets("0,4,4"), {"tensor \"a\"", "more than 2"});
  check_contains(offsets("4,0"), {"tensor \"a\"", "[4, 0) end before they begin"});
  check_contains(offsets("4,8"), {"tensor \"a\"", "[4, 8)", "outside the 4 bytes"});
  check_contains(offsets("18446744073709551612,18446744073709551615"), {"outside the 4 bytes"});
  // end - begin would be 4 if it wrapped.
  check_contains(offsets("18446744073709551612,0"), {"end before they begin"});

  const auto two = [](const std::string& first, const std::string& second, std::size_t data) {
    return header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[)" + first +
                              R"(]},"b":{"dtype":"F32","shape":[1],"data_offsets":[)" + second + "]}}",
                          data);
  };
  CHECK(two("0,4", "4,8", 8) == "accepted");
  CHECK(two("4,8", "0,4", 8) == "accepted");
  check_contains(two("0,4", "0,4", 4), {R"(tensor "b" at [0, 4) overlaps tensor "a" at [0, 4))"});
  check_contains(two("3,7", "0,4", 7), {R"(tensor "a" at [3, 7) overlaps tensor "b" at [0, 4))"});
  check_contains(two("0,4", "5,9", 9), {"1 bytes before tensor \"b\" at [5, 9) belong to no tensor"});
  check_contains(two("1,5", "5,9", 9), {"1 bytes before tensor \"a\" at [1, 5) belong to no tensor"});
  check_contains(two("0,4", "4,8", 11), {"hold 8 bytes", "has 11"});
  check_contains(header_refusal("{}", 1), {"hold 0 bytes", "has 1"});
  // A tensor without elements inside another one is an overlap too.
  check_contains(header_refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                R"("e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                                4),
                 {"\"e\" at [2, 2) overlaps"});
}

TEST_CASE("safetensors: names come once, and a hostile name makes no hostile message") {
  const std::string entry = R"(:{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  check_contains(header_refusal("{\"a\"" + entry + ",\"b\"" + entry + ",\"a\"" + entry + "}", 0), {"\"a\" twice"});
  check_contains(header_refusal("{\"a\"" + entry + R"(,"\u0061")" + entry + "}", 0), {"\"a\" twice"});
  check_contains(header_refusal(R"({"\u001b[2J\n\u0000":{}})", 0), {R"(tensor "\x1b[2J\x0a\x00")"});
  check_contains(header_refusal(R"({"\u009b2J\u00a9":{}})", 0), {R"(tensor "\xc2\x9b2J©")"});
  std::string umlauts;
  for (int i = 0; i < 1'000'000; ++i) umlauts += "ü";
  for (const std::string& name : {umlauts, "x" + umlauts}) {
    const std::string text = header_refusal("{\"" + name + "\":{}}", 0);
    check_contains(text, {"tensor \"", "ü…\"", "lacks dtype"});
    CHECK(text.size() < 300);
  }
  CHECK(header_refusal(std::string("{\"a\":{\"shape\":[").append(1'000'000, '9').append("]}}"), 0).size() < 300);
}

TEST_CASE("safetensors: nesting cannot exhaust the stack") {
  constexpr std::size_t depth = 5'000'000;
  std::string objects;
  for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
  check_contains(header_refusal(objects, 0), {"tensor \"a\"", "unknown key"});
  check_contains(header_refusal(std::string("{\"a\":").append(depth, '['), 0), {"entry \"a\" is an array"});
  check_contains(header_refusal(std::string(R"({"a":{"shape":)").append(depth, '['), 0), {"shape holds an array"});
  check_contains(header_refusal(R"({"__metadata__":{"a":)" + objects, 0), {"\"a\" is an object"});
}

TEST_CASE("safetensors: many tensors are read in reasonable time") {
  std::string header = "{";
  constexpr int tensors = 100'000;
  for (int i = 0; i < tensors; ++i)
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  with_exact_copy(file_of(header + "}", tensors), [&](const SafetensorsFile& file) {
    CHECK(file.tensors().size() == tensors);
    CHECK(file.read_i64("99999") == std::vector<std::int64_t>{1});
  });
}

TEST_CASE("safetensors: a file that another program cuts while it is open is an Error when it is read") {
  const Directory directory;
  const fs::path path = directory / "x.safetensors";
  const std::vector<float> numbers(100'000, 1.0F);
  const std::vector<std::int64_t> whole(1000, 7);
  write_safetensors(path, std::vector<OutputTensor>{{"a", DType::f32, {100'000}, bytes_of(numbers)},
                                                    {"b", DType::i64, {1000}, bytes_of(whole)}});
  const SafetensorsFile file = SafetensorsFile::open(path);
  fs::resize_file(path, 300'000);
  check_contains(refusal([&] { file.read_f32("a"); }), {"x.safetensors ends after 300000 bytes", "was longer"});
  check_contains(refusal([&] { file.read_bytes(file.at("a")); }), {"ends after 300000 bytes"});
  check_contains(refusal([&] { file.read_i64("b"); }), {"ends after", "bytes"});
}

TEST_CASE("safetensors: paths that are no files") {
  const Directory directory;
  const auto opening = [](const fs::path& path) { return refusal([&] { SafetensorsFile::open(path); }); };
  check_contains(opening(directory / "missing"), {"missing does not exist"});
  check_contains(opening(directory / "."), {"is a directory, not a safetensors file"});
  check_contains(opening(""), {"does not exist"});
  put(directory / "empty", "");
  check_contains(opening(directory / "empty"), {"empty is empty, not a safetensors file"});
  check_contains(opening(directory / "empty" / "below"), {"cannot open", "Not a directory"});
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  check_contains(opening(directory / "pipe"), {"pipe is not a regular file"});
  check_contains(opening("/dev/null"), {"/dev/null is not a regular file"});
  put(directory / "text", "a text that is no such file at all");
  check_contains(opening(directory / "text"), {"text: its header length", "is it a safetensors file at all?"});
}

namespace {

/// One random change of the kind that files suffer or attackers make. All random numbers are drawn up front: the order
/// in which a compiler evaluates arguments must not change the files.
void mutate(std::string& file, std::mt19937_64& random) {
  static constexpr std::array tokens{"{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\"",
                                     " ",
                                     "\"a\":",
                                     "U8",
                                     "BOOL",
                                     "F32",
                                     "F64",
                                     "{}",
                                     "null",
                                     "0",
                                     "-1",
                                     "1.0",
                                     "e9",
                                     "4294967296",
                                     "9223372036854775807",
                                     "18446744073709551615",
                                     "\\u0000",
                                     "\xff"};
  if (file.empty()) file.push_back('\1');
  const std::uint64_t kind = random() % 10;
  const std::size_t at = random() % file.size();
  const std::size_t from = random() % file.size();
  const std::size_t in_header = random() % std::min<std::size_t>(file.size(), 200);
  const std::size_t in_length = random() % std::min<std::size_t>(file.size(), 8);
  const std::size_t amount = random() % 60;
  const std::uint64_t number = random();
  const char any = static_cast<char>(number);
  const char* const token = tokens[number % tokens.size()];

  if (kind == 0) {
    file[at] = any;
  } else if (kind == 1) {
    file[at] = static_cast<char>(file[at] ^ (1 << number % 8));
  } else if (kind == 2) {
    file.resize(at);
  } else if (kind == 3) {
    file.append(amount / 3, any);
  } else if (kind == 4) {
    file.erase(at, amount / 5);
  } else if (kind == 5) {
    file.insert(at, file.substr(from, amount));
  } else if (kind == 6) {
    file[in_length] = any;
  } else if (kind == 7) {
    file.insert(in_header, token);
  } else if (kind == 8) {  // one digit of the header, so that numbers disagree while the JSON stays valid
    const std::size_t digit = file.find_first_of("0123456789", in_header);
    if (digit != std::string::npos) file[digit] = static_cast<char>('0' + number % 10);
  } else if (file.size() >= 8) {  // a longer header that the length knows of: reaches past the first check
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    length += std::strlen(token);
    std::memcpy(file.data(), &length, 8);
    file.insert(std::min<std::size_t>(file.size(), 8 + in_header), token);
  }
}

/// What must hold for any file that was accepted: its tensors tile the data, all of it readable, and writing it again
/// gives a file that says the same.
void check_accepted(const SafetensorsFile& file) {
  std::vector<OutputTensor> again;
  std::deque<std::vector<std::byte>> kept;
  std::string data;
  for (const sylvit::io::TensorInfo& info : file.tensors()) {
    if (!info.foreign.empty()) return;  // it cannot be written
    REQUIRE(info.begin == data.size());
    const auto& bytes = kept.emplace_back(file.read_bytes(info));
    REQUIRE(bytes.size() == sylvit::size_of(info.dtype) * static_cast<std::size_t>(info.shape.elements()));
    REQUIRE(file.find(info.name) == &info);
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    again.push_back({info.name, info.dtype, info.shape, bytes});
  }
  const std::string written = sylvit::io::safetensors_header(again, file.metadata()) + data;
  with_exact_copy(written, [&](const SafetensorsFile& second) {
    REQUIRE(second.metadata() == file.metadata());
    REQUIRE(second.tensors().size() == file.tensors().size());
    for (std::size_t i = 0; i < again.size(); ++i) {
      REQUIRE(second.tensors()[i].name == again[i].name);
      REQUIRE(second.tensors()[i].dtype == again[i].dtype);
      REQUIRE(second.tensors()[i].shape == again[i].shape);
    }
  });
}

}  // namespace

TEST_CASE("safetensors: 40000 mutations of valid files are refused cleanly or are valid") {
  const std::vector<float> numbers(64, 1.0F);
  const auto bytes = bytes_of(numbers);
  const std::vector<std::vector<OutputTensor>> sets{
      {{"q", DType::f32, {1, 2, 2}, bytes.first(16)}, {"len", DType::i64, {1}, bytes.first(8)}},
      {{"a", DType::u8, {3}, bytes.first(3)}, {"b", DType::f64, {2, 2}, bytes.first(32)}, {"c", DType::f16, {0}, {}}},
      {{"s", DType::boolean, {}, bytes.first(1)}}};
  std::vector<std::string> seeds{file_of("{}", 0), file_of(good_header, 24)};
  for (const auto& set : sets) {
    seeds.push_back(sylvit::io::safetensors_header(set, {{"format", "pt"}}));
    for (const OutputTensor& tensor : set)
      seeds.back().append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }

  std::mt19937_64 random(20240229);
  int accepted = 0;
  for (int round = 0; round < 40'000; ++round) {
    std::string file = seeds[random() % seeds.size()];
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) mutate(file, random);
    try {
      with_exact_copy(file, check_accepted);
      ++accepted;
    } catch (const sylvit::Error& error) {
      const std::string text = error.what();
      REQUIRE(text.starts_with("test.safetensors"));
      REQUIRE(text.size() < 500);
      REQUIRE(text.find('\n') == std::string::npos);
    }
  }
  // Neither side of the judgement may be an accident of the mutations.
  CHECK(accepted > 1000);
  CHECK(accepted < 39'000);
}

TEST_CASE("safetensors: the writer refuses what it could not read back") {
  const Directory directory;
  const fs::path path = directory / "x.safetensors";
  const std::vector<float> numbers(6);
  const auto bytes = bytes_of(numbers);
  const auto writing = [&](const std::vector<OutputTensor>& tensors,
                           const sylvit::io::SafetensorsMetadata& metadata = {}) {
    return refusal([&] { write_safetensors(path, tensors, metadata); });
  };
  check_contains(writing({{"a", DType::f32, {6}, bytes}, {"a", DType::f32, {6}, bytes}}), {"\"a\"", "twice"});
  check_contains(writing({{"a", DType::f32, {5}, bytes}}), {"\"a\"", "F32 [5]", "24 bytes"});
  check_contains(writing({{"a", DType::f32, {6}, bytes.first(23)}}), {"\"a\"", "F32 [6]", "23 bytes"});
  check_contains(writing({{"a", DType::f32, {5}, bytes.first(23)}}), {"\"a\"", "F32 [5]", "23 bytes"});
  // 2^62 elements of 8 bytes would wrap to 0 bytes.
  check_contains(writing({{"a", DType::f64, {std::int64_t{1} << 61, 2}, {}}}), {"\"a\"", "0 bytes"});
  check_contains(writing({{"__metadata__", DType::f32, {6}, bytes}}), {"__metadata__", "reserved"});
  check_contains(writing({{"\xff", DType::f32, {6}, bytes}}), {"tensor name", "UTF-8"});
  check_contains(writing({}, {{"\xff", "x"}}), {"metadata key", "UTF-8"});
  check_contains(writing({}, {{"x", "\xff"}}), {"metadata value", "UTF-8"});
  std::string long_text;
  long_text.resize(sylvit::io::safetensors_header_limit, 'x');
  check_contains(writing({}, {{"x", long_text}}), {"above the limit of 100000000"});
  CHECK(directory.entries() == 0);
}

TEST_CASE("safetensors: the writer says where it cannot write, and leaves no trace") {
  const Directory directory;
  const auto writing = [](const fs::path& path) { return refusal([&] { write_safetensors(path, {}); }); };
  fs::create_directory(directory / "folder");
  put(directory / "file", "kept");
  check_contains(writing(directory / "folder"), {"cannot write", "it is a directory"});
  check_contains(writing(directory / "missing" / "x"), {"cannot write", "its directory does not exist"});
  check_contains(writing(directory / "file" / "x"), {"cannot write", "Not a directory"});
  check_contains(writing(""), {"names no file"});
  check_contains(writing("/dev/null"), {"not a regular file"});  // a rename would replace the device
  CHECK(fs::is_character_file("/dev/null"));
  check_contains(writing(directory / std::string(300, 'x')), {"cannot write", "File name too long"});
  if (::geteuid() != 0) {  // nothing is unwritable for root
    fs::permissions(directory / "folder", fs::perms::owner_read | fs::perms::owner_exec);
    check_contains(writing(directory / "folder" / "x"), {"cannot write", "Permission denied"});
    fs::permissions(directory / "folder", fs::perms::owner_all);
  }
  CHECK(writing("/proc/sylvit.safetensors") != "accepted");  // not even for root
  CHECK(fs::is_empty(directory / "folder"));
  CHECK(read_file(directory / "file") == "kept");
  CHECK(directory.entries() == 2);
}

TEST_CASE("safetensors: a disk that fills up leaves the old file as it was") {
  const Directory directory;
  const fs::path path = directory / "x.safetensors";
  put(path, "old");
  const std::vector<float> numbers(100'000);
  const std::vector<OutputTensor> tensors{{"a", DType::f32, {100'000}, bytes_of(numbers)}};

  // A limit on the file size stands in for the full disk: the write falls short, then fails.
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 100'000, before.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string text = refusal([&] { write_safetensors(path, tensors); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  check_contains(text, {"cannot write", "x.safetensors", "File too large"});
  CHECK(read_file(path) == "old");
  CHECK(directory.entries() == 1);
}

TEST_CASE("safetensors: replacing a file keeps links and permissions, and open readers keep the old one") {
  const Directory directory;
  const fs::path path = directory / "x.safetensors";
  const std::vector<float> ones(5000, 1.0F);
  const std::vector<float> twos(5000, 2.0F);
  write_safetensors(path, std::vector<OutputTensor>{{"a", DType::f32, {5000}, bytes_of(ones)}});
  CHECK((fs::status(path).permissions() & fs::perms::owner_write) != fs::perms::none);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("x.safetensors", directory / "link");

  const SafetensorsFile old = SafetensorsFile::open(path);
  write_safetensors(directory / "link", std::vector<OutputTensor>{{"a", DType::f32, {5000}, bytes_of(twos)}});
  CHECK(fs::is_symlink(directory / "link"));
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(old.read_f32("a") == ones);
  CHECK(SafetensorsFile::open(path).read_f32("a") == twos);
  // A link to what is not there yet.
  fs::create_symlink("new.safetensors", directory / "early");
  write_safetensors(directory / "early", std::vector<OutputTensor>{{"a", DType::f32, {5000}, bytes_of(twos)}});
  CHECK(fs::is_symlink(directory / "early"));
  CHECK(SafetensorsFile::open(directory / "new.safetensors").read_f32("a") == twos);
  CHECK(directory.entries() == 4);
}

TEST_SUITE_END();
