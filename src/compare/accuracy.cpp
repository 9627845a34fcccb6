#include "compare/accuracy.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "bench/device_tensors.hpp"
#include "report/errors.hpp"

namespace sylvit::compare {

namespace {

/// Images that a pass takes at once.
constexpr std::int64_t most_images = 8;

std::vector<double> exact_images(const Model& model, std::int64_t first, std::int64_t count) {
  const auto begin = model.images.begin() + first * model.image_values();
  return {begin, begin + count * model.image_values()};
}

}  // namespace

reference::VitTensors exact_parameters(const Model& model) {
  reference::VitTensors parameters;
  const std::vector<VitParameter> wanted = vit_parameters(model.config);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    parameters[wanted[i].name] = {model.values[i].begin(), model.values[i].end()};
  return parameters;
}

VitParameters parameters_on(const Device& device, const Model& model, DType dtype) {
  VitParameters parameters(device, model.config, dtype);
  const std::span<const VitParameter> wanted = parameters.values().parameters();
  for (std::size_t i = 0; i < wanted.size(); ++i) parameters.write(wanted[i].name, model.values[i]);
  parameters.update_copy();
  return parameters;
}

Reference reference_of(const Model& model) {
  const reference::VitTensors parameters = exact_parameters(model);
  // The reference is plain fp64 on one core; images do not depend on each other.
  std::vector<Steps<double>> images(static_cast<std::size_t>(model.judged));
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < model.judged; i = next++)
      reference::vit_forward(model.config, parameters, exact_images(model, i, 1),
                             [&](const std::string& step, const std::vector<double>& output) {
                               images[static_cast<std::size_t>(i)].emplace_back(step, output);
                             });
  };
  std::vector<std::future<void>> others;
  const auto workers = std::min<std::int64_t>(model.judged, std::max(1U, std::thread::hardware_concurrency()));
  for (std::int64_t i = 1; i < workers; ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();

  Reference expected;
  for (std::size_t s = 0; s < images.front().size(); ++s) {
    std::vector<double> all;
    for (Steps<double>& image : images) {
      all.insert(all.end(), image[s].second.begin(), image[s].second.end());
      image[s].second = {};
    }
    expected.steps.emplace_back(images.front()[s].first, std::move(all));
  }
  expected.logits = expected.steps.back().second;
  reference::VitLoss loss;
  loss.labels.assign(model.labels.begin(), model.labels.begin() + model.judged);
  expected.loss = reference::vit_loss(loss, expected.logits, model.config.classes).loss;
  return expected;
}

std::int64_t images_at_once(const Model& model) {
  return std::max(model.judged, std::min(model.image_count(), most_images));
}

Outputs outputs_of(const Device& device, const Model& model, DType dtype) {
  const VitConfig& config = model.config;
  const VitParameters parameters = parameters_on(device, model, dtype);
  const std::int64_t room = images_at_once(model);
  Vit vit(device, config, {.dtype = dtype, .batch = room, .constant = true});
  DeviceTensors tensors(device, "the images and their logits");
  const TensorView images =
      tensors.upload(std::as_bytes(std::span(model.images)), DType::f32,
                     {model.image_count(), config.channels, config.image_height, config.image_width});
  const TensorView logits = tensors.empty(DType::f32, {model.image_count(), config.classes});

  Outputs outputs;
  vit.observe([&](const VitStep& step) {
    if (step.output && step.output.is_dense()) outputs.steps.emplace_back(step.name, tensors.download(step.output));
  });
  vit.forward(parameters, images.slice(0, 0, model.judged), logits.slice(0, 0, model.judged));
  outputs.checked_logits = tensors.download(logits.slice(0, 0, model.judged));
  vit.observe({});
  for (std::int64_t first = 0; first < model.image_count(); first += room) {
    const std::int64_t some = std::min(room, model.image_count() - first);
    vit.forward(parameters, images.slice(0, first, some), logits.slice(0, first, some));
  }
  outputs.logits = tensors.download(logits);
  return outputs;
}

template <class Number>
std::vector<NamedErrors> step_errors(const Steps<float>& got, const Steps<Number>& expected) {
  std::vector<NamedErrors> errors;
  for (const auto& [step, values] : expected) {
    const auto found = std::ranges::find(got, step, &Steps<float>::value_type::first);
    if (found != got.end() && found->second.size() == values.size())
      errors.push_back({step, errors_of(std::span<const float>(found->second), std::span<const Number>(values))});
  }
  return errors;
}
template std::vector<NamedErrors> step_errors(const Steps<float>& got, const Steps<float>& expected);
template std::vector<NamedErrors> step_errors(const Steps<float>& got, const Steps<double>& expected);

Accuracy accuracy_of(const Model& model, const Outputs& outputs, const Reference& expected, double tolerance) {
  const std::span<const float> logits(outputs.checked_logits);
  Accuracy accuracy;
  accuracy.judged = model.judged;
  accuracy.logits = errors_of(logits, std::span<const double>(expected.logits));
  accuracy.top1_agreement = agreement(top_classes_of(logits, model.config.classes),
                                      top_classes_of(std::span<const double>(expected.logits), model.config.classes));
  reference::VitLoss loss;
  loss.labels.assign(model.labels.begin(), model.labels.begin() + model.judged);
  accuracy.loss = reference::vit_loss(loss, {logits.begin(), logits.end()}, model.config.classes).loss;
  accuracy.reference_loss = expected.loss;
  accuracy.layers = step_errors(outputs.steps, expected.steps);
  const auto outside =
      std::ranges::find_if(accuracy.layers, [&](const NamedErrors& layer) { return !(layer.errors.l2 <= tolerance); });
  if (outside != accuracy.layers.end()) {
    accuracy.first_outside = outside->name;
    accuracy.first_outside_error = outside->errors.l2;
  }
  return accuracy;
}

}  // namespace sylvit::compare
