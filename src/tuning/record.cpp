#include "tuning/record.hpp"

#include <sylvit/error.hpp>

#include <algorithm>

namespace sylvit::tuning {

bool Record::fits_some_length(const Case& wanted) const {
  return kernel == wanted.kernel && (dtypes.empty() || std::ranges::find(dtypes, wanted.dtype) != dtypes.end()) &&
         (score_class == ScoreClass::any || score_class == wanted.score_class) && head_size.holds(wanted.head_size);
}

bool Record::fits(const Case& wanted) const {
  return fits_some_length(wanted) && length.holds(wanted.length) && m.holds(wanted.m) && n.holds(wanted.n) &&
         k.holds(wanted.k);
}

std::string Record::mismatch(const Case& wanted) const {
  if (kernel != wanted.kernel) return "it is for " + kernel;
  if (!dtypes.empty() && std::ranges::find(dtypes, wanted.dtype) == dtypes.end()) {
    std::string names;
    for (const DType dtype : dtypes) names += (names.empty() ? "" : " and ") + std::string(name_of(dtype));
    return "it is for " + names;
  }
  if (score_class != ScoreClass::any && score_class != wanted.score_class)
    return "it is for " + std::string(name_of(score_class)) + " scores";
  const auto outside = [](const char* what, const Range& range, std::int64_t value) -> std::string {
    if (range.holds(value)) return {};
    const bool below = value < range.least;
    return std::string(what) + " " + std::to_string(value) + (below ? " is below " : " is above ") +
           std::to_string(below ? range.least : range.most);
  };
  for (const std::string& reason :
       {outside("head size", head_size, wanted.head_size), outside("length", length, wanted.length),
        outside("M", m, wanted.m), outside("N", n, wanted.n), outside("K", k, wanted.k)})
    if (!reason.empty()) return reason;
  return {};
}

int Record::number(std::string_view name) const {
  const auto found = numbers.find(name);
  if (found == numbers.end())
    throw Error("the tuning record for " + kernel + " lacks the number '" + std::string(name) + "'");
  return found->second;
}

std::string Record::place() const { return file + " record " + std::to_string(position); }

}  // namespace sylvit::tuning
