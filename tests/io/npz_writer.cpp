#include "io/npz_writer.hpp"

#include <stdexcept>
#include <zip.h>

namespace sylvit::test {

namespace {

void require(bool holds) {
  if (!holds) throw std::runtime_error("libzip does not write that");
}

[[noreturn]] void give_up(zip_t* archive, zip_source_t* target) {
  zip_discard(archive);
  zip_source_free(target);
  throw std::runtime_error("libzip does not write that");
}

}  // namespace

std::string npy_of(const std::string& dict, const std::string& bytes, int version) {
  std::string text = dict;
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  while ((8 + length_bytes + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string result = "\x93NUMPY";
  result += static_cast<char>(version);
  result += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) result += static_cast<char>(text.size() >> (8 * i));
  return result + text + bytes;
}

std::string npy_dict(const std::string& descr, const std::vector<std::int64_t>& shape) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  if (shape.size() == 1) extents += ',';
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + extents + "), }";
}

std::string npy_f32(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  return npy_of(npy_dict("<f4", shape), {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

std::string npz_of(const std::vector<std::pair<std::string, std::string>>& members, bool deflated) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  require(target != nullptr);
  zip_source_keep(target);
  zip_t* archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  require(archive != nullptr);
  for (const auto& [name, content] : members) {
    zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
    const zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      give_up(archive, target);
    }
    require(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                                     deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) == 0);
    zip_file_set_dostime(archive, static_cast<zip_uint64_t>(index), 0, 33, 0);  // the same bytes every time
  }
  if (zip_close(archive) != 0) give_up(archive, target);
  require(zip_source_open(target) == 0);
  std::string result;
  std::string piece(65536, '\0');
  for (zip_int64_t got = 0; (got = zip_source_read(target, piece.data(), piece.size())) > 0;)
    result.append(piece, 0, static_cast<std::size_t>(got));
  zip_source_close(target);
  zip_source_free(target);
  return result;
}

}  // namespace sylvit::test
