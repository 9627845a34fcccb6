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

enum class MemoryKind { device, host, shared };

/// One USM allocation, freed with the object. Every failure to allocate is an Error that names the size asked for and
/// what the device has. The memory is not initialised. Not thread-safe; move it, do not share it.
class SYLVIT_API Memory {
 public:
  Memory() = default;
  /// `purpose` completes "cannot allocate N bytes for …".
  Memory(const Device& device, std::size_t bytes, std::string_view purpose, MemoryKind kind = MemoryKind::device);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
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
/// is an Error. Not thread-safe.
class SYLVIT_API Arena {
 public:
  static constexpr std::size_t alignment = 256;

  Arena(const Device& device, std::size_t bytes, std::string_view purpose);

  /// The bytes that `take` uses up for a request, for planning.
  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  void* take(std::size_t bytes);
  TensorView take(DType dtype, const Shape& shape);

  /// Everything taken after `mark()` is given back by `release(mark)`.
  std::size_t mark() const noexcept { return used_; }
  void release(std::size_t mark);

  std::size_t capacity() const noexcept { return memory_.bytes(); }
  std::size_t used() const noexcept { return used_; }
  std::size_t peak() const noexcept { return peak_; }

 private:
  Memory memory_;
  std::string purpose_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace sylvit
