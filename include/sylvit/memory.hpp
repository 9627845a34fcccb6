// Device memory: owned allocations, and an arena that hands out parts of one allocation so that a model step allocates
// nothing.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/export.hpp>
#include <sylvit/tensor.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sylvit {

/// "1.5 GB", for messages.
SYLVIT_API std::string readable_bytes(std::size_t bytes);

/// Where USM lies.
enum class MemoryKind {
  device,  ///< the device's own memory
  host,    ///< the host's memory, which the device can reach
  shared   ///< moved by the runtime to where it is used
};

/// One USM allocation, freed with the object. Every failure to allocate is an Error that names the size asked for and
/// what the device has. The memory is not initialised.
///
/// Threads: an object belongs to one thread at a time; the memory itself may be used by any number of them.
class SYLVIT_API Memory {
 public:
  /// No memory.
  Memory() = default;
  /// `purpose` completes "cannot allocate N bytes for …".
  Memory(const Device& device, std::size_t bytes, std::string_view purpose, MemoryKind kind = MemoryKind::device);
  ~Memory();
  /// Takes the memory over.
  Memory(Memory&& other) noexcept;
  /// Exchanges the two.
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Its first byte; null when there is none.
  void* data() const noexcept { return data_; }
  /// Its size, as it was asked for.
  std::size_t bytes() const noexcept { return bytes_; }
  /// Its first byte as an element.
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::optional<sycl::context> context_;  // a default context would start a device
};

/// Hands out aligned parts of one allocation, last in first out. `take` never allocates; asking for more than is left
/// is an Error.
///
/// Threads: an arena belongs to one thread at a time.
class SYLVIT_API Arena {
 public:
  /// What every part starts at a multiple of, in bytes.
  static constexpr std::size_t alignment = 256;

  /// Allocates; `purpose` completes "cannot allocate N bytes for …".
  Arena(const Device& device, std::size_t bytes, std::string_view purpose);

  /// The bytes that `take` uses up for a request, for planning.
  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  /// The next part.
  void* take(std::size_t bytes);
  /// The next part as a dense tensor.
  TensorView take(DType dtype, const Shape& shape);

  /// Where the next part begins, for release().
  std::size_t mark() const noexcept { return used_; }
  /// Gives back everything taken since mark() gave this number.
  void release(std::size_t mark);

  /// All bytes.
  std::size_t capacity() const noexcept { return memory_.bytes(); }
  /// Bytes that are given out.
  std::size_t used() const noexcept { return used_; }
  /// The most bytes that were ever given out.
  std::size_t peak() const noexcept { return peak_; }

 private:
  Memory memory_;
  std::string purpose_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace sylvit
