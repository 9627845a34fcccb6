#include "io/tensor_list.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include "io/messages.hpp"

namespace sylvit::io {

TensorList::TensorList(std::vector<TensorInfo> tensors, std::string file)
    : file_(std::move(file)), tensors_(std::move(tensors)), by_name_(tensors_.size()) {
  // A sorted list rather than a hash table: names chosen to collide cost nothing.
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
    return tensors_[a].name == tensors_[b].name;
  });
  if (twice != by_name_.end()) throw Error(file_ + ": it has tensor " + in_quotes(tensors_[*twice].name) + " twice");
}

const TensorInfo* TensorList::find(std::string_view tensor) const noexcept {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), tensor,
                       [&](std::size_t position, std::string_view wanted) { return tensors_[position].name < wanted; });
  return found != by_name_.end() && tensors_[*found].name == tensor ? &tensors_[*found] : nullptr;
}

const TensorInfo& TensorList::at(std::string_view tensor, const std::optional<Shape>& expected) const {
  const TensorInfo* info = find(tensor);
  if (info == nullptr) {
    constexpr std::size_t listed = 8;
    std::string holds;
    for (std::size_t i = 0; i < std::min(tensors_.size(), listed); ++i) add_to_list(holds, in_quotes(tensors_[i].name));
    if (tensors_.size() > listed) holds += " and " + std::to_string(tensors_.size() - listed) + " more";
    throw Error(file_ + ": there is no tensor " + in_quotes(tensor), "it holds " + (holds.empty() ? "none" : holds));
  }
  if (expected && info->shape != *expected)
    throw Error(file_ + ": tensor " + in_quotes(tensor) + " has shape " + info->shape.text() + " instead of " +
                expected->text());
  return *info;
}

}  // namespace sylvit::io
