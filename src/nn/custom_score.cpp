#include <sylvit/custom_score.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <cctype>

#include "base/names.hpp"
#include "runtime/kernel.hpp"
#include "runtime/kernel_cache.hpp"

namespace sylvit {

namespace {

bool is_identifier(const std::string& name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, fits);
}

}  // namespace

CustomScore::CustomScore(const std::string& name, std::string source) {
  if (!is_identifier(name))
    throw Error("a custom score cannot be called \"" + base::shown(name) + "\"", "give it the name of its struct");
  if (std::ranges::all_of(source, [](unsigned char c) { return std::isspace(c) != 0; }))
    throw Error("the custom score " + name + " has no source");
  // In a namespace of its own, named after the text: two scores of one name are two types.
  const std::string space = "custom_" + runtime::fingerprint(source);
  code_ = std::make_shared<const runtime::CustomCode>(
      runtime::CustomCode{.name = name,
                          .functor = space + "::" + name,
                          .text = std::make_shared<const runtime::KernelText>(
                              runtime::KernelText{.folder = space, .file = name, .text = std::move(source)})});
}

CustomScore::CustomScore(std::shared_ptr<const runtime::CustomCode> code) : code_(std::move(code)) {}

const std::string& CustomScore::name() const noexcept {
  static const std::string none;
  return code_ ? code_->name : none;
}

bool CustomScore::operator==(const CustomScore& other) const noexcept {
  if (code_ == other.code_) return true;
  if (!code_ || !other.code_) return false;
  const auto text_of = [](const runtime::CustomCode& code) { return code.text ? code.text->text : std::string(); };
  return code_->name == other.code_->name && text_of(*code_) == text_of(*other.code_) &&
         code_->variants == other.code_->variants;
}

}  // namespace sylvit
