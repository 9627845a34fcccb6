// Device memory: owned allocations.
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

}  // namespace sylvit
