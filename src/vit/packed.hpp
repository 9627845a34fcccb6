// The forms of the weights that products work on, kept between passes (VitOptions::constant). Planned in a rehearsal,
// then allocated.
#pragma once

#include <sylvit/memory.hpp>

#include <cstdint>
#include <map>
#include <string>

#include "base/counts.hpp"

namespace sylvit::vit {

class VitPacked {
 public:
  /// For planning, on a rehearsal's device.
  explicit VitPacked(const Device& rehearsal) : memory_(rehearsal, std::size_t{1} << 42, "planning") {}

  /// Where a layer's weights are kept; null: nowhere. While planning, `bytes` is asked how much they take.
  template <class Bytes>
  void* place(const std::string& layer, const Bytes& bytes) {
    if (planning_) {
      const std::size_t wanted = bytes();
      if (wanted == 0) return nullptr;
      if (offsets_.emplace(layer, total_).second) total_ += base::padded(wanted);
    }
    const auto found = offsets_.find(layer);
    if (found == offsets_.end()) return nullptr;
    return memory_.as<std::byte>() + found->second;
  }
  std::size_t bytes() const { return total_; }
  void allocate(const Device& device) {
    memory_ = Memory(device, total_, "the model's packed weights");
    planning_ = false;
  }

  /// Are the weights of this version still to be packed?
  bool stale() const { return planning_ || version_ != wanted_; }
  void want(std::uint64_t version) { wanted_ = version; }
  void packed() { version_ = wanted_; }

 private:
  std::map<std::string, std::size_t> offsets_;
  std::size_t total_ = 0;
  Memory memory_;
  bool planning_ = true;
  std::uint64_t version_ = 0;  // of the parameters that are packed; 0: none
  std::uint64_t wanted_ = 0;
};

}  // namespace sylvit::vit
