// What ran: the record that infer --json prints and run vit writes into its file.
#pragma once

#include <sylvit/vit.hpp>

#include <nlohmann/json.hpp>
#include <set>

#include "options/vit_model.hpp"

namespace sylvit::cli {

using namespace options;

/// Under which the record stands in a file's metadata.
inline constexpr const char* run_key = "sylvit.run";

/// Notes who computes the products of a model's passes.
class ProductObserver {
 public:
  /// From here on, until the observer goes; it must not outlive the model, nor the model's passes it.
  explicit ProductObserver(Vit& model) : model_(model) {
    model.observe([this](const VitStep& step) {
      if (step.provider) names_.emplace(name_of(*step.provider));
    });
  }
  ~ProductObserver() { model_.observe({}); }
  ProductObserver(const ProductObserver&) = delete;
  ProductObserver& operator=(const ProductObserver&) = delete;
  const std::set<std::string>& names() const { return names_; }

 private:
  Vit& model_;
  std::set<std::string> names_;
};

/// Model, weights, score, alpha, the whole configuration, type, device, and the providers of products. With `images`
/// also how they are prepared.
nlohmann::ordered_json what_ran(const VitModel& model, const VitConfig& config, DType dtype, const Device& device,
                                const std::set<std::string>& providers, const TransformOptions* images = nullptr);

nlohmann::ordered_json as_json(const std::array<float, 3>& values);
/// JSON as text. A path may have any bytes; invalid UTF-8 is replaced rather than fatal.
std::string as_text(const nlohmann::ordered_json& json, int indent);

}  // namespace sylvit::cli
