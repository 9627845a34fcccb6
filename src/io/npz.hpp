// Reading NumPy's .npz files: a zip file of .npy arrays, stored or deflated. As with safetensors, the reader trusts
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/files.hpp"
#include "io/npy.hpp"

namespace sylvit::io {

/// One array of a file, as its header says, already checked against the member's size.
struct NpzArray {
  std::size_t member = 0;  ///< its position in NpzFile::names()
  NpyHeader header;
};

/// An open file; copies share it, and only one thread at a time may use it. Its directory is read at once, an array
/// when it is asked for; so what nobody asks for need not be understood. No more comes out of a file than deflate can
/// make of its bytes, and members cannot share them.
class NpzFile {
 public:
  /// Throws Error with one sentence that names the file, the member and the numbers, as the other functions do.
  static NpzFile parse(ByteSource source);
  /// The same over bytes in memory, which must outlive the result. `name` stands for the file in errors.
  static NpzFile parse(std::span<const std::byte> file, std::string name);

  const std::string& name() const noexcept { return name_; }
  /// The arrays' names (those of the members without ".npy"), sorted.
  const std::vector<std::string>& names() const noexcept { return names_; }
  bool contains(std::string_view array) const noexcept;
  /// Reads and checks the array's header.
  NpzArray array(std::string_view array) const;
  /// So many elements in C order, starting with the given one, as they lie in the file. Of a deflated array, parts are
  /// best read in order: a part behind the last one goes on where that ended, and one before it begins again. The zip
  /// file's checksum is checked when all elements are read, at once or in parts.
  std::vector<std::byte> read(const NpzArray& array, std::int64_t first, std::int64_t count) const;
  /// The same of an array of a floating type.
  std::vector<float> read_f32(const NpzArray& array, std::int64_t first, std::int64_t count) const;

 private:
  struct Archive;
  struct Member {
    std::uint64_t index = 0;  // in the zip file
    std::uint64_t bytes = 0;  // as it comes out
    bool stored = false;
  };

  NpzFile() = default;
  /// How errors about a member begin.
  std::string where(std::size_t position) const;
  Member member(std::size_t position) const;

  std::string name_;
  std::uint64_t file_bytes_ = 0;
  std::shared_ptr<Archive> archive_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> indices_;  // of names_, in the zip file
};

}  // namespace sylvit::io
