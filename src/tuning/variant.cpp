#include "tuning/variant.hpp"

namespace sylvit::tuning {

std::string config_text(std::string_view name, std::initializer_list<int> numbers) {
  std::string text = std::string(name) + "{";
  for (const int number : numbers) text += (text.back() == '{' ? "" : ", ") + std::to_string(number);
  return text + "}";
}

std::string type_text(DType dtype) { return dtype == DType::f32 ? "float" : std::string(name_of(dtype)); }

}  // namespace sylvit::tuning
