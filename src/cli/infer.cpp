// sylvit infer: what a Vision Transformer sees in image files.
#include <sylvit/error.hpp>
#include <sylvit/vit.hpp>

#include <algorithm>
#include <fmt/core.h>
#include <future>
#include <numeric>
#include <unistd.h>

#include "bench/device_tensors.hpp"
#include "cli/classes.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/ran.hpp"
#include "images/batch.hpp"
#include "options/numbers.hpp"
#include "options/vit_model.hpp"
#include "options/words.hpp"
#include "terminal/print.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  std::vector<std::string> images;
  VitModelOptions model;
  VitWeightOptions source;
  TransformOptions transform;
  std::string labels;
  std::string subset;
  std::int64_t top = 5;
  std::int64_t batch = 32;
  std::string dtype = "f32";
  std::string device;
  bool json = false;
};

/// What is said about one image: the error, if it has one, or the classes.
struct Answer {
  std::optional<std::string> error;
  std::vector<Prediction> top;
};

VitConfig checked(const VitModel& source) {
  const VitConfig& config = source.config();
  source.check([&] {
    config.check();
    if (config.channels != 3)
      throw Error(fmt::format("the model takes {} channels, and image files have 3", config.channels));
    if (config.image_height != config.image_width)
      throw Error(fmt::format("the model takes images of {} x {}, and infer makes square ones", config.image_height,
                              config.image_width));
  });
  return config;
}

/// The model on its device, with room for a batch.
class Classifier {
 public:
  Classifier(const VitModel& source, const VitConfig& config, const Device& device, DType dtype, std::int64_t batch)
      : device_(device),
        parameters_(source.parameters(device, config, dtype)),
        model_(device, config, {.dtype = dtype, .batch = batch, .constant = true}),
        tensors_(device, "the images and their logits"),
        images_(tensors_.empty(DType::f32, {batch, config.channels, config.image_height, config.image_width})),
        logits_(tensors_.empty(DType::f32, {batch, config.classes})) {}

  /// [images, classes]. Waits.
  std::vector<float> logits(std::span<const float> pixels) {
    const std::int64_t count =
        static_cast<std::int64_t>(pixels.size()) / (images_.shape().elements() / images_.shape()[0]);
    if (count == 0) return {};
    const TensorView logits = logits_.slice(0, 0, count);
    device_.queue().memcpy(images_.data(), pixels.data(), pixels.size_bytes());
    device_.wait();
    model_.forward(parameters_, images_.slice(0, 0, count), logits);
    return tensors_.download(logits);
  }

  /// Who computed the products so far.
  const std::set<std::string>& providers() const { return products_.names(); }

 private:
  Device device_;
  VitParameters parameters_;
  Vit model_;
  ProductObserver products_{model_};
  DeviceTensors tensors_;
  TensorView images_, logits_;
};

/// Where the answers go: printed as they come, or kept for one JSON document.
class Report {
 public:
  using Json = nlohmann::ordered_json;

  Report(bool json, std::vector<std::string> labels) : json_(json), labels_(std::move(labels)) {}

  void add(const std::string& path, const Answer& answer) {
    if (answer.error) terminal::print(stderr, "sylvit: {}\n", *answer.error);
    if (json_)
      images_.push_back(as_json(path, answer));
    else if (!answer.error)
      print(path, answer);
  }

  /// With what ran.
  void end(Json document) {
    document["images"] = std::move(images_);
    if (json_) terminal::print_json(document);
  }

 private:
  std::string label(const Prediction& one) const {
    return labels_.empty() ? "" : labels_[static_cast<std::size_t>(one.number)];
  }

  Json as_json(const std::string& path, const Answer& answer) const {
    if (answer.error) return {{"path", path}, {"error", *answer.error}};
    Json top = Json::array();
    for (const Prediction& one : answer.top) {
      Json entry{{"class", one.number}};
      if (!labels_.empty()) entry["label"] = label(one);
      entry["probability"] = one.probability;
      entry["logit"] = one.logit;
      top.push_back(std::move(entry));
    }
    return {{"path", path}, {"top", std::move(top)}};
  }

  void print(const std::string& path, const Answer& answer) const {
    terminal::print("{}\n", path);
    for (const Prediction& one : answer.top)
      terminal::print("  {:>6.2f} %  {:>5}{}\n", 100 * one.probability, one.number,
                      labels_.empty() ? "" : "  " + label(one));
    std::fflush(stdout);
  }

  bool json_;
  std::vector<std::string> labels_;
  Json images_ = Json::array();
};

void infer(const Options& options) {
  const DType dtype = parse_dtype(options.dtype);
  const VitModel source(options.model, options.source);
  const VitConfig config = checked(source);
  const sylvit::ImageTransform transform = source.transform(options.transform);
  std::vector<std::string> labels;
  if (!options.labels.empty()) labels = read_labels(options.labels, config.classes);
  std::vector<std::int64_t> classes(static_cast<std::size_t>(config.classes));
  std::iota(classes.begin(), classes.end(), 0);
  if (!options.subset.empty()) classes = read_subset(options.subset, config.classes, labels);
  const std::vector<images::ImageSource> sources = images::image_sources(options.images);

  const Device device = Device::open(options.device);
  const std::size_t batch = std::min(static_cast<std::size_t>(options.batch), sources.size());
  Classifier classifier(source, config, device, dtype, static_cast<std::int64_t>(batch));
  print_warnings(source.warnings(&options.transform));
  Report report(options.json, std::move(labels));
  // While the device computes a batch, the next one is read.
  const auto start_reading = [&](std::size_t first) {
    const auto some = std::span(sources).subspan(first, std::min(batch, sources.size() - first));
    return std::async(std::launch::async, [some, &transform] { return images::read_batch(some, transform); });
  };
  Progress progress("images", sources.size());
  const bool answers_on_terminal = !options.json && isatty(STDOUT_FILENO) == 1;
  std::size_t failed = 0;
  std::future<images::ImageBatch> reading = start_reading(0);
  for (std::size_t first = 0; first < sources.size(); first += batch) {
    const images::ImageBatch images = reading.get();
    if (first + batch < sources.size()) reading = start_reading(first + batch);
    const std::vector<float> logits = classifier.logits(images.pixels);
    std::span<const float> rest(logits);
    for (std::size_t i = 0; i < images.errors.size(); ++i) {
      const std::string& path = sources[first + i].path;
      Answer answer{images.errors[i], {}};
      if (!answer.error) {
        try {
          answer.top = top_classes(rest.first(static_cast<std::size_t>(config.classes)), classes,
                                   static_cast<std::size_t>(options.top));
        } catch (const Error& error) {
          answer.error = path + ": " + error.what();
        }
        rest = rest.subspan(static_cast<std::size_t>(config.classes));
      }
      if (answer.error) ++failed;
      if (answer.error || answers_on_terminal) progress.clear();
      report.add(path, answer);
    }
    progress.advance(images.errors.size());
  }
  progress.clear();
  report.end(what_ran(source, config, dtype, device, classifier.providers(), &options.transform));
  if (failed > 0) throw Error(fmt::format("{} of {} images could not be classified", failed, sources.size()));
}

}  // namespace

void add_infer(CLI::App& program) {
  CLI::App* command = program.add_subcommand("infer", "Classify image files with a Vision Transformer");
  auto options = std::make_shared<Options>();
  command->add_option("images", options->images, "JPEG or PNG files, or directories of them")->required();
  options->source.add_to(*command);
  options->model.add_to(*command);
  command->add_option("--labels", options->labels, "A file with one label a line, the first for class 0");
  command->add_option("--top", options->top, "How many classes to show")
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_option("--classes-subset", options->subset,
                      "A file with the classes that count, one a line: numbers, or labels if --labels is given");
  options->transform.add_to(*command);
  command->add_option("--batch", options->batch, "Images at a time")
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "Storage type: f32, bf16 or f16")
      ->check(storage_type_word)
      ->capture_default_str();
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->add_flag("--json", options->json, "Print one JSON document at the end");
  command->footer(
      "An image that cannot be read is named on standard error (and in the JSON document), the others are classified,\n"
      "and the exit code is 1.");
  command->callback([options] { infer(*options); });
}

}  // namespace sylvit::cli
