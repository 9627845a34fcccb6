// A Vision Transformer as a feature extractor: every JPEG and PNG file of a directory becomes a row of numbers, and
// each image is shown with the one whose features are nearest to its own.
//
//     features <directory> <weights> [batch]
//
// The features are what the model's head sees. That they are is checked, too: head · features must be the logits.
#include <sylvit/images.hpp>
#include <sylvit/sylvit.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> images_in(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".jpg" || entry.path().extension() == ".png") found.push_back(entry.path());
  std::ranges::sort(found);
  if (found.empty()) throw sylvit::Error("there is no .jpg or .png file in " + directory.string());
  return found;
}

class Extractor {
 public:
  Extractor(const sylvit::Device& device, const fs::path& weights, std::int64_t batch)
      : device_(device),
        file_(weights),
        config_(file_.guess()),
        parameters_(device, config_, sylvit::DType::f32),
        model_(device, config_, {.batch = batch, .constant = true}),
        batch_(batch),
        images_(device, bytes(batch * image_values()), "the images"),
        logits_(device, bytes(batch * config_.classes), "the logits") {
    file_.load(parameters_);
    head_ = parameters_.values().read("head.weight");
    bias_ = parameters_.values().read("head.bias");
  }

  std::int64_t width() const { return config_.width; }
  double worst_error() const { return worst_error_; }

  /// The features of all files, one row each.
  std::vector<float> extract(const std::vector<fs::path>& files) {
    std::vector<float> all;
    const auto step = static_cast<std::size_t>(batch_);
    for (std::size_t first = 0; first < files.size(); first += step) {
      const std::size_t count = std::min(step, files.size() - first);
      const std::vector<float> rows = extract_batch(std::span(files).subspan(first, count));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

 private:
  static std::size_t bytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }
  std::int64_t image_values() const { return config_.channels * config_.image_height * config_.image_width; }

  std::vector<float> extract_batch(std::span<const fs::path> files) {
    const auto count = static_cast<std::int64_t>(files.size());
    const auto values = static_cast<std::size_t>(image_values());
    std::vector<float> pixels(files.size() * values);
    const sylvit::ImageTransform transform{.size = config_.image_height};
    for (std::size_t i = 0; i < files.size(); ++i)
      sylvit::transform_image(sylvit::read_image(files[i]), transform, std::span(pixels).subspan(i * values, values));

    sycl::queue& queue = device_.queue();
    const sylvit::TensorView images(images_.data(), sylvit::DType::f32,
                                    {count, config_.channels, config_.image_height, config_.image_width});
    const sylvit::TensorView logits(logits_.data(), sylvit::DType::f32, {count, config_.classes});
    const sycl::event copied = queue.memcpy(images_.data(), pixels.data(), pixels.size() * sizeof(float));
    const sycl::event done = model_.forward(parameters_, images, logits, {&copied, 1});
    const sylvit::TensorView view = model_.features();
    std::vector<float> features(static_cast<std::size_t>(view.shape().elements()));
    std::vector<float> seen(static_cast<std::size_t>(logits.shape().elements()));
    queue.memcpy(features.data(), view.data(), features.size() * sizeof(float), done);
    queue.memcpy(seen.data(), logits.data(), seen.size() * sizeof(float), done);
    device_.wait();
    check(features, seen);
    return features;
  }

  void check(const std::vector<float>& features, const std::vector<float>& logits) {
    const auto width = static_cast<std::size_t>(config_.width);
    const auto classes = static_cast<std::size_t>(config_.classes);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const float* feature = &features[i / classes * width];
      const float* weight = &head_[i % classes * width];
      const double expected =
          std::inner_product(feature, feature + width, weight, static_cast<double>(bias_[i % classes]));
      worst_error_ = std::max(worst_error_, std::abs(expected - logits[i]));
    }
  }

  const sylvit::Device& device_;
  sylvit::VitWeights file_;
  sylvit::VitConfig config_;
  sylvit::VitParameters parameters_;
  sylvit::Vit model_;
  std::int64_t batch_;
  sylvit::Memory images_, logits_;
  std::vector<float> head_, bias_;
  double worst_error_ = 0;
};

double cosine(std::span<const float> a, std::span<const float> b) {
  const auto dot = [](std::span<const float> x, std::span<const float> y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> arguments(words + 1, words + count);
  std::int64_t batch = 4;
  if (arguments.size() == 3) std::from_chars(words[3], words[3] + arguments[2].size(), batch);
  if (arguments.size() < 2 || arguments.size() > 3 || batch < 1) {
    std::fputs("usage: features <directory> <weights> [batch]\n", stderr);
    return 2;
  }
  const std::vector<fs::path> files = images_in(arguments[0]);
  const sylvit::Device device = sylvit::Device::open();
  Extractor extractor(device, arguments[1], batch);
  const std::vector<float> features = extractor.extract(files);
  const auto width = static_cast<std::size_t>(extractor.width());
  const auto row = [&](std::size_t i) { return std::span(features).subspan(i * width, width); };
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::size_t nearest = i;
    double best = -2;
    for (std::size_t j = 0; j < files.size(); ++j) {
      const double similarity = cosine(row(i), row(j));
      if (j != i && similarity > best) {
        best = similarity;
        nearest = j;
      }
    }
    std::printf("%-24s nearest %-24s %.4f\n", files[i].filename().c_str(), files[nearest].filename().c_str(), best);
  }
  constexpr double bound = 1e-4;
  std::printf("%zu images, %zu features each; head · features differs from the logits by %.1e (bound %.0e)\n",
              files.size(), width, extractor.worst_error(), bound);
  return extractor.worst_error() <= bound ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "features: %s\n", error.what());
  return 1;
}
