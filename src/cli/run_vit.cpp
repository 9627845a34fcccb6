// sylvit run vit: logits, loss and gradients of a Vision Transformer, from a safetensors file to another.
#include <sylvit/error.hpp>
#include <sylvit/training.hpp>
#include <sylvit/vit.hpp>

#include <algorithm>
#include <fmt/core.h>

#include "bench/device_tensors.hpp"
#include "cli/commands.hpp"
#include "cli/ran.hpp"
#include "cli/results.hpp"
#include "io/safetensors.hpp"
#include "options/vit_model.hpp"
#include "options/words.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  VitModelOptions model;
  std::string input;
  std::string output;
  VitWeightOptions source;
  std::string dtype = "f32";
  std::string device;
  bool backward = false;
  bool recompute = false;
};

/// Images that one forward pass takes at most; a backward pass takes all of them.
constexpr std::int64_t most_images = 32;

Shape image_shape(const io::SafetensorsFile& file) {
  const Shape& shape = file.at("images").shape;
  if (shape.rank() != 4)
    throw Error("images in " + file.name() + " is " + shape.text() + ", and must be [B, channels, height, width]");
  if (shape[0] < 1) throw Error("images in " + file.name() + " is " + shape.text() + ": there is no image");
  return shape;
}

VitConfig config_for(const Options& options, const Shape& images, VitConfig config) {
  if (options.model.image_size && (images[2] != config.image_height || images[3] != config.image_width))
    throw Error(
        fmt::format("the images are {} x {}, and --image-size is {}", images[2], images[3], *options.model.image_size));
  config.image_height = images[2];
  config.image_width = images[3];
  if (images[1] != config.channels)
    throw Error(fmt::format("the images have {} channels, and the model takes {}", images[1], config.channels));
  config.check();
  return config;
}

std::vector<std::int64_t> read_labels(const io::SafetensorsFile& file, std::int64_t images, std::int64_t classes) {
  std::vector<std::int64_t> labels = file.read_i64("labels", Shape{images});
  check_labels(labels, classes);
  return labels;
}

void run(const Options& options) {
  const DType dtype = parse_dtype(options.dtype);
  const io::SafetensorsFile input = io::SafetensorsFile::open(options.input);
  const Shape shape = image_shape(input);
  const VitModel source(options.model, options.source);
  const VitConfig config = config_for(options, shape, source.config());
  const std::int64_t count = shape[0];
  const std::vector<std::int64_t> labels =
      options.backward ? read_labels(input, count, config.classes) : std::vector<std::int64_t>();
  const std::vector<float> pixels = input.read_f32("images");

  const Device device = Device::open(options.device);
  const VitParameters parameters = source.parameters(device, config, dtype);
  print_warnings(source.warnings());
  DeviceTensors tensors(device, "the model's inputs and outputs");
  Results results;
  std::set<std::string> providers;
  if (options.backward) {
    TrainingStep step(device, config, {.dtype = dtype, .batch = count, .recompute = options.recompute});
    const TensorView images = tensors.upload(std::as_bytes(std::span(pixels)), DType::f32, shape);
    const TensorView targets = tensors.upload(std::as_bytes(std::span(labels)), DType::i64, {count});
    const ProductObserver products(step.model());
    step.forward_backward(parameters, images, targets);
    providers = products.names();
    results.add("logits", step.logits().shape(), tensors.download(step.logits()));
    results.add("loss", Shape{}, tensors.download(step.mean_loss()));
    for (const VitParameter& parameter : step.gradients().parameters())
      results.add("grad." + parameter.name, parameter.shape, step.wait_and_read_gradient(parameter.name));
  } else {
    const std::int64_t batch = std::min(count, most_images);
    Vit model(device, config, {.dtype = dtype, .batch = batch, .constant = true});
    const TensorView images = tensors.upload(std::as_bytes(std::span(pixels)), DType::f32, shape);
    const TensorView logits = tensors.empty(DType::f32, {count, config.classes});
    const ProductObserver products(model);
    for (std::int64_t first = 0; first < count; first += batch) {
      const std::int64_t some = std::min(batch, count - first);
      model.forward(parameters, images.slice(0, first, some), logits.slice(0, first, some));
    }
    providers = products.names();
    results.add("logits", logits.shape(), tensors.download(logits));
  }
  const auto ran = what_ran(source, config, dtype, device, providers);
  results.write(options.output, {{run_key, as_text(ran, -1)}});
}

}  // namespace

void add_run_vit(CLI::App& program) {
  CLI::App* command = program.add_subcommand("vit", "A Vision Transformer over the images of a safetensors file");
  auto options = std::make_shared<Options>();
  command->add_option("--input", options->input, "Holds images [B,C,H,W], and for --backward labels [B]")->required();
  command
      ->add_option("--output", options->output,
                   "Gets logits, with --backward loss and grad.<parameter>, and what ran as metadata")
      ->required();
  options->source.add_to(*command);
  options->model.add_to(*command);
  auto* backward =
      command->add_flag("--backward", options->backward, "Also the loss and the gradient of every parameter");
  command->add_flag("--recompute", options->recompute, "Backward with less memory: compute activations again")
      ->needs(backward);
  command->add_option("--dtype", options->dtype, "Storage type: f32, bf16 or f16")
      ->check(storage_type_word)
      ->capture_default_str();
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->callback([options] { run(*options); });
}

}  // namespace sylvit::cli
