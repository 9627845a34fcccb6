// What docs/embedding.md shows, as one program that also checks what it gets.
//
//     guide <weights of a Vision Transformer>
#include <sylvit/sylvit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Numbers = std::vector<float>;

Numbers random_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Numbers result(static_cast<std::size_t>(count));
  std::ranges::generate(result, [&] { return normal(generator); });
  return result;
}

void check(const char* what, bool holds) {
  std::printf("%-70s %s\n", what, holds ? "yes" : "NO");
  if (!holds) throw sylvit::Error(std::string(what) + ": no");
}

constexpr std::int64_t batch = 2, length = 50, heads = 3, head_size = 64, width = heads * head_size;
constexpr std::int64_t row = 3 * width;  // q, k and v of a token, as one projection writes them

/// [batch, heads, length, head size] in a buffer of [batch, length, pitch].
sylvit::TensorView heads_of(float* first, std::int64_t pitch) {
  return {first, sylvit::DType::f32, {batch, heads, length, head_size}, {length * pitch, head_size, pitch, 1}};
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

bool agree(double a, double b) { return std::abs(a - b) <= 1e-3 * std::max(1.0, std::abs(b)); }

/// The application's device memory: plain USM, not sylvit's.
std::shared_ptr<float> usm(std::int64_t count, const sycl::queue& queue) {
  float* data = sycl::malloc_device<float>(static_cast<std::size_t>(count), queue);
  if (data == nullptr) throw std::bad_alloc();
  return {data, [queue](float* memory) { sycl::free(memory, queue); }};
}

/// Forward and backward pass on a queue of the application's, in its memory.
void attention() {
  sycl::queue queue;
  const auto qkv = usm(batch * length * row, queue), qkv_gradient = usm(batch * length * row, queue);
  const auto out = usm(batch * length * width, queue), out_gradient = usm(batch * length * width, queue);
  const Numbers numbers = random_numbers(batch * length * row, 1);
  const Numbers incoming = random_numbers(batch * length * width, 2);
  queue.copy(incoming.data(), out_gradient.get(), incoming.size()).wait();
  const sycl::event before = queue.copy(numbers.data(), qkv.get(), numbers.size());

  const sylvit::TensorView q = heads_of(qkv.get(), row);
  const sylvit::TensorView k = heads_of(qkv.get() + width, row);
  const sylvit::TensorView v = heads_of(qkv.get() + 2 * width, row);
  const sylvit::TensorView o = heads_of(out.get(), width);

  const sylvit::Device device(queue);  // your queue; the library only adds work to it
  const sylvit::AttentionDescription relu{.score = sylvit::Score::relu};
  const sylvit::AttentionInputs inputs{.q = q, .k = k, .v = v};  // views of your USM, with strides
  const sylvit::Memory workspace(device, sylvit::attention_forward_workspace(device, relu, inputs), "scratch");
  sycl::event done = sylvit::attention_forward(device, relu, inputs, o, {}, workspace.data(), {&before, 1});

  const sylvit::TensorView o_gradient = heads_of(out_gradient.get(), width);
  const sylvit::AttentionGradients gradients{.q = heads_of(qkv_gradient.get(), row),
                                             .k = heads_of(qkv_gradient.get() + width, row),
                                             .v = heads_of(qkv_gradient.get() + 2 * width, row)};
  const sylvit::Memory scratch(device, sylvit::attention_backward_workspace(device, relu, inputs, gradients),
                               "scratch of the backward pass");
  sycl::event last =
      sylvit::attention_backward(device, relu, inputs, {}, {}, o_gradient, gradients, scratch.data(), {&done, 1});

  Numbers o_there(incoming.size()), dqkv(numbers.size());
  queue.copy(out.get(), o_there.data(), o_there.size(), done).wait();
  queue.copy(qkv_gradient.get(), dqkv.data(), dqkv.size(), last).wait();
  // o grows in proportion to q, to k and to v. So each of them with its gradient makes the same sum as o with its own.
  const auto part = [&](std::int64_t first) {
    double result = 0;
    for (std::int64_t token = 0; token < batch * length; ++token)
      for (std::int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<std::size_t>(token * row + first + i);
        result += static_cast<double>(numbers[at]) * dqkv[at];
      }
    return result;
  };
  const double sum = dot(incoming, o_there);
  check("relu: gradients of q, k and v belong to o",
        agree(part(0), sum) && agree(part(width), sum) && agree(part(2 * width), sum));

  // Softmax keeps a number for each row. Both passes may share the larger workspace.
  const sylvit::AttentionDescription softmax{.score = sylvit::Score::softmax, .causal = true};
  sylvit::attention_prepare(device, softmax, inputs, true);  // builds all kernels now, and not in the first step
  const std::size_t bytes = std::max(sylvit::attention_forward_workspace(device, softmax, inputs),
                                     sylvit::attention_backward_workspace(device, softmax, inputs, gradients));
  const sylvit::Memory shared(device, bytes, "scratch of both passes");
  const sylvit::Memory sums(device, sizeof(float) * batch * heads * length, "lse");
  const sylvit::TensorView lse(sums.data(), sylvit::DType::f32, {batch, heads, length});
  done = sylvit::attention_forward(device, softmax, inputs, o, lse, shared.data());
  last = sylvit::attention_backward(device, softmax, inputs, o, lse, o_gradient, gradients, shared.data(), {&done, 1});

  queue.copy(out.get(), o_there.data(), o_there.size(), done).wait();
  queue.copy(qkv_gradient.get(), dqkv.data(), dqkv.size(), last).wait();
  check("softmax: the gradient of v belongs to o", agree(part(2 * width), dot(incoming, o_there)));
}

/// What goes wrong is one sentence.
void errors(const sylvit::Device& device) {
  std::string sentence;
  try {
    const sylvit::Memory memory(device, std::size_t{1} << 60, "a very large tensor");
  } catch (const sylvit::Error& error) {
    sentence = error.what();  // "failure (on device); advice": also as failure(), device() and advice()
  }
  std::printf("%s\n", sentence.c_str());
  check("an error names what could not be had, and the device",
        sentence.find("a very large tensor") != std::string::npos && sentence.find(device.name()) != std::string::npos);
}

/// A model from a file, and what its head sees.
void features(const sylvit::Device& device, const std::string& path) {
  const sylvit::VitWeights file(path);            // timm's names in safetensors, or big_vision's .npz
  const sylvit::VitConfig config = file.guess();  // what the file says of its model
  sylvit::VitParameters parameters(device, config, sylvit::DType::f32);
  file.load(parameters);
  sylvit::Vit model(device, config, {.batch = 4, .constant = true});

  const std::int64_t pixels = config.channels * config.image_height * config.image_width;
  const sylvit::Memory images(device, sizeof(float) * static_cast<std::size_t>(4 * pixels), "images");
  const sylvit::Memory logits(device, sizeof(float) * static_cast<std::size_t>(4 * config.classes), "logits");
  const Numbers made_up = random_numbers(3 * pixels, 3);
  const sycl::event copied = device.queue().copy(made_up.data(), images.as<float>(), made_up.size());

  // A batch may be smaller than planned.
  const sylvit::TensorView input(images.data(), sylvit::DType::f32,
                                 {3, config.channels, config.image_height, config.image_width});
  const sylvit::TensorView output(logits.data(), sylvit::DType::f32, {3, config.classes});
  const sycl::event done = model.forward(parameters, input, output, {&copied, 1});
  const sylvit::TensorView seen = model.features();  // [3, width], of the model's type, until the next pass
  Numbers rows(static_cast<std::size_t>(seen.shape().elements()));
  device.queue().copy(seen.as<float>(), rows.data(), rows.size(), done);
  device.wait();  // also throws what failed on the device meanwhile

  check("features are there, one row an image", seen.shape() == sylvit::Shape{3, config.width} && dot(rows, rows) > 0);
}

/// A small model learns to tell dark images from bright ones.
void training(const sylvit::Device& device) {
  const sylvit::VitConfig config{.width = 64,
                                 .depth = 2,
                                 .heads = 2,
                                 .mlp = 128,
                                 .patch = 8,
                                 .image_height = 16,
                                 .image_width = 16,
                                 .classes = 2,
                                 .score = sylvit::Score::relu};
  constexpr std::int64_t images_of_a_step = 8;
  const std::int64_t pixels = config.channels * config.image_height * config.image_width;
  std::vector<std::int64_t> labels(images_of_a_step);
  Numbers pictures = random_numbers(images_of_a_step * pixels, 4);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const std::size_t image = i / static_cast<std::size_t>(pixels);
    labels[image] = static_cast<std::int64_t>(image % 2);
    pictures[i] = 0.1F * pictures[i] + (image % 2 == 0 ? -0.5F : 0.5F);
  }

  sylvit::VitParameters parameters(device, config, sylvit::DType::f32);
  parameters.initialise(1);                      // or load a file
  sylvit::check_labels(labels, config.classes);  // on the host: a device does not look at them
  sylvit::TrainingStep step(device, config,
                            {.dtype = sylvit::DType::f32,
                             .batch = images_of_a_step,
                             .loss = {.smoothing = 0.1F},
                             .optimizer = sylvit::AdamWOptions{.weight_decay = 0.05F}});

  const sylvit::Memory image_memory(device, sizeof(float) * pictures.size(), "images");
  const sylvit::Memory label_memory(device, sizeof(std::int64_t) * labels.size(), "labels");
  device.queue().copy(pictures.data(), image_memory.as<float>(), pictures.size());
  device.queue().copy(labels.data(), label_memory.as<std::int64_t>(), labels.size());
  const sylvit::TensorView images(image_memory.data(), sylvit::DType::f32,
                                  {images_of_a_step, config.channels, config.image_height, config.image_width});
  const sylvit::TensorView targets(label_memory.data(), sylvit::DType::i64, {images_of_a_step});

  const auto loss = [&] {
    float value = 0;
    device.queue().copy(step.mean_loss().as<float>(), &value, 1).wait();
    return value;
  };
  step.forward_backward(parameters, images, targets);
  const float at_first = loss();
  for (int i = 0; i < 20; ++i)
    step.train(parameters, images, targets, {.learning_rate = 2e-3F, .max_norm = 1});  // never waits
  const sylvit::StepReport report = step.wait_and_read_report();  // norm, updates taken and skipped
  std::printf("loss %.3f, after %d updates %.3f\n", static_cast<double>(at_first), static_cast<int>(report.taken),
              static_cast<double>(loss()));
  check("training lowers the loss, and no update was skipped",
        loss() < at_first && report.taken == 20 && report.skipped == 0);
}

/// One device, parameters that nobody changes, and a model for each thread.
void threads(const sylvit::Device& device) {
  const sylvit::VitConfig config{
      .width = 64, .depth = 1, .heads = 2, .mlp = 128, .patch = 8, .image_height = 16, .image_width = 16, .classes = 5};
  sylvit::VitParameters parameters(device, config, sylvit::DType::f32);
  parameters.initialise(2);
  const std::int64_t pixels = config.channels * config.image_height * config.image_width;
  const Numbers picture = random_numbers(pixels, 5);
  std::vector<Numbers> results(3, Numbers(5));
  std::vector<std::thread> all;
  for (Numbers& result : results)
    all.emplace_back([&device, &config, &parameters, &picture, &result] {
      try {
        sylvit::Vit model(device, config, {.batch = 1});  // its own activations
        const sylvit::Memory image(device, picture.size() * sizeof(float), "an image");
        const sylvit::Memory logits(device, result.size() * sizeof(float), "logits");
        device.queue().copy(picture.data(), image.as<float>(), picture.size());
        const sycl::event done = model.forward(parameters, {image.data(), sylvit::DType::f32, {1, 3, 16, 16}},
                                               {logits.data(), sylvit::DType::f32, {1, 5}});
        device.queue().copy(logits.as<float>(), result.data(), result.size(), done).wait();
      } catch (const sylvit::Error& error) {
        std::fprintf(stderr, "guide: %s\n", error.what());  // an exception must not leave its thread
      }
    });
  for (std::thread& thread : all) thread.join();

  check("three threads get the same bits", results[0] == results[1] && results[1] == results[2]);
  check("and they are numbers", dot(results[0], results[0]) > 0);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) {
    std::fputs("usage: guide <weights>\n", stderr);
    return 2;
  }
  const sylvit::Device device = sylvit::Device::open();  // or open("gpu"), open("opencl:cpu"), a part of its name, …
  attention();
  errors(device);
  features(device, words[1]);
  training(device);
  threads(device);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "guide: %s\n", error.what());
  return 1;
}
