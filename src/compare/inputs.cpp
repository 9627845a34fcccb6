#include "compare/inputs.hpp"

#include <sylvit/error.hpp>
#include <sylvit/training.hpp>

#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "images/batch.hpp"
#include "io/safetensors.hpp"
#include "runtime/kernel_cache.hpp"

namespace sylvit::compare {

namespace {

/// SplitMix64's step.
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

std::uint64_t hash_of(std::span<const float> values, std::uint64_t seed) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return runtime::fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, seed);
}

constexpr std::uint64_t hash_start = 0xcbf29ce484222325U;

struct Images {
  std::string source;
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
};

Images from_safetensors(const std::string& path, const VitConfig& config, std::int64_t most) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  const Shape& shape = file.at("images").shape;
  const Shape expected{shape.rank() > 0 ? shape[0] : 0, config.channels, config.image_height, config.image_width};
  if (!(shape == expected) || shape[0] < 1)
    throw Error(fmt::format("images in {} is {}, and the model takes [B, {}, {}, {}]", path, shape.text(),
                            config.channels, config.image_height, config.image_width));
  const std::int64_t count = std::min(shape[0], most);
  Images images{fmt::format("{} of {}", count, path), file.read_f32("images"), {}};
  images.pixels.resize(static_cast<std::size_t>(expected.elements() / shape[0] * count));
  images.labels =
      file.find("labels") != nullptr ? file.read_i64("labels", Shape{shape[0]}) : synthetic_labels(config, shape[0]);
  images.labels.resize(static_cast<std::size_t>(count));
  check_labels(images.labels, config.classes);
  return images;
}

Images from_image_files(const std::vector<std::string>& paths, const VitModel& source, const VitConfig& config,
                        std::int64_t most) {
  if (config.channels != 3 || config.image_height != config.image_width)
    throw Error(
        fmt::format("the model takes images of [{}, {}, {}], and image files are read as square ones with 3 "
                    "channels",
                    config.channels, config.image_height, config.image_width));
  std::vector<images::ImageSource> sources = images::image_sources(paths);
  if (static_cast<std::int64_t>(sources.size()) > most) sources.resize(static_cast<std::size_t>(most));
  images::ImageBatch batch = images::read_batch(sources, source.transform());
  for (const std::optional<std::string>& error : batch.errors)
    if (error) throw Error(*error);
  const auto count = static_cast<std::int64_t>(sources.size());
  return {fmt::format("{} image files", count), std::move(batch.pixels), synthetic_labels(config, count)};
}

bool are_image_files(const InputOptions& options) {
  return options.images.size() > 1 || (options.images.size() == 1 && !options.images.front().ends_with(".safetensors"));
}

Images images_for(const InputOptions& options, const VitModel& source, const VitConfig& config) {
  if (options.images.empty())
    return {fmt::format("{} synthetic", options.image_count), synthetic_images(config, options.image_count),
            synthetic_labels(config, options.image_count)};
  if (are_image_files(options)) return from_image_files(options.images, source, config, options.image_count);
  return from_safetensors(options.images.front(), config, options.image_count);
}

std::string label_of(const std::string& name, const VitConfig& config) {
  const std::string score(name_of(config.score));
  if (config.score == Score::softmax) return name + " softmax";
  if (config.alpha == 1.0F) return fmt::format("{} {}/L", name, score);
  return config.alpha == 0.0F ? fmt::format("{} {}", name, score)
                              : fmt::format("{} {}/L^{:g}", name, score, config.alpha);
}

std::string description_of(const VitConfig& config) {
  std::vector<std::string> parts{
      fmt::format("width {}, depth {}, {} heads, MLP {}, patch {}, images of {} x {} x {}, {} tokens, {} classes",
                  config.width, config.depth, config.heads, config.mlp, config.patch, config.channels,
                  config.image_height, config.image_width, config.tokens(), config.classes)};
  parts.push_back(config.pooling == Pooling::token     ? "class-token pooling"
                  : config.pooling == Pooling::average ? "average pooling"
                                                       : "attention pooling");
  if (config.score != Score::softmax) parts.push_back(fmt::format("alpha {:g}", config.alpha));
  if (config.divisor != 0) parts.push_back(fmt::format("divisor {:g}", config.divisor));
  if (config.qk_norm) parts.emplace_back("qk-layernorm");
  if (config.gate) parts.emplace_back("gated");
  if (config.head_scale) parts.emplace_back("learned factors");
  if (config.head_alpha) parts.emplace_back("learned alphas");
  if (config.positions == Positions::sincos) parts.emplace_back("sin-cos positions");
  if (config.gelu_tanh) parts.emplace_back("tanh GELU");
  if (config.norm_epsilon != 1e-6F) parts.push_back(fmt::format("epsilon {:g}", config.norm_epsilon));
  return fmt::format("{}", fmt::join(parts, "; "));
}

Model make_model(const InputOptions& options, const VitModel& source) {
  Model model;
  model.config = source.config();
  source.check([&] { model.config.check(); });
  model.values = source.values(model.config);
  Images images = images_for(options, source, model.config);
  model.images = std::move(images.pixels);
  model.labels = std::move(images.labels);
  model.judged = std::min(options.judged, model.image_count());

  ModelReport& report = model.report;
  report.name = source.name();
  report.score = name_of(model.config.score);
  report.label = label_of(report.name, model.config);
  report.description = description_of(model.config);
  std::uint64_t hash = hash_start;
  for (const std::vector<float>& values : model.values) {
    report.parameters += static_cast<std::int64_t>(values.size());
    hash = hash_of(values, hash);
  }
  report.forward_flops = vit_computed_flops(model.config);
  report.weights = options.source.weights.empty() ? fmt::format("random, seed {}", options.source.seed.value_or(0))
                                                  : options.source.weights;
  report.weights_fingerprint = fmt::format("{:016x}", hash);
  report.images = images.source;
  report.images_fingerprint = fmt::format("{:016x}", hash_of(model.images, hash_start));
  report.image_count = model.image_count();
  return model;
}

}  // namespace

std::vector<float> synthetic_images(const VitConfig& config, std::int64_t count) {
  std::vector<float> pixels;
  const Shape shape{count, config.channels, config.image_height, config.image_width};  // refuses what overflows
  pixels.reserve(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t plane = 0; plane < count * config.channels; ++plane) {
    const std::uint64_t draw = scrambled(static_cast<std::uint64_t>(plane));
    const auto across = static_cast<std::int64_t>(draw & 511U) - 256;
    const auto down = static_cast<std::int64_t>((draw >> 9U) & 511U) - 256;
    const auto start = static_cast<std::int64_t>((draw >> 18U) & 255U);
    for (std::int64_t y = 0; y < config.image_height; ++y)
      for (std::int64_t x = 0; x < config.image_width; ++x) {
        const auto place = static_cast<std::uint64_t>((plane * config.image_height + y) * config.image_width + x);
        const auto noise = static_cast<std::int64_t>(scrambled(~place) & 63U) - 32;
        const std::int64_t value = start + across * x / config.image_width + down * y / config.image_height + noise;
        // Whole numbers and one division, which is rounded alike everywhere.
        pixels.push_back(static_cast<float>(2 * std::clamp<std::int64_t>(value, 0, 255) - 255) / 255.0F);
      }
  }
  return pixels;
}

std::vector<std::int64_t> synthetic_labels(const VitConfig& config, std::int64_t count) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(i * 7 % config.classes);
  return labels;
}

std::vector<Model> make_models(const InputOptions& options, std::vector<std::string>& warnings) {
  using Choice = std::optional<std::string>;
  const auto choices = [](const std::vector<std::string>& given, std::vector<Choice> otherwise) {
    return given.empty() ? std::move(otherwise) : std::vector<Choice>(given.begin(), given.end());
  };
  std::vector<std::optional<double>> alphas(options.alphas.begin(), options.alphas.end());
  if (alphas.empty()) alphas.emplace_back();
  std::vector<Choice> scores = choices(options.scores, {"softmax", "relu"});
  std::vector<Model> models;
  const TransformOptions none;
  for (const Choice& name : choices(options.models, {Choice()})) {
    VitModelOptions choice = options.variations;
    choice.model = name;
    if (options.scores.empty() && !options.source.weights.empty()) {
      const VitModel source(choice, options.source);
      if (source.score_is_told()) {
        scores = {Choice()};
        warnings.push_back(
            fmt::format("{} is for {}, and no other score is compared; --scores with --override names others",
                        source.file(), name_of(source.config().score)));
      }
    }
    for (const Choice& score : scores)
      for (const std::optional<double>& alpha : alphas) {
        choice.score = score;
        choice.alpha = alpha;
        const VitModel source(choice, options.source);
        const VitConfig& config = source.config();
        if (std::ranges::any_of(models, [&](const Model& model) {
              return model.report.name == source.name() && model.config.score == config.score &&
                     (config.score == Score::softmax || model.config.alpha == config.alpha);
            }))
          continue;
        models.push_back(make_model(options, source));
        for (const std::string& line : source.warnings(are_image_files(options) ? &none : nullptr))
          if (std::ranges::find(warnings, line) == warnings.end()) warnings.push_back(line);
      }
  }
  return models;
}

}  // namespace sylvit::compare
