// timm's results for a tiny model, computed in fp64 by perf/vit_models.py --golden, keep the comparison with timm in CI
// without PyTorch. The file holds images, labels, weights.<parameter>, and for each case of its metadata (name: options
// of `run vit`) <name>/logits, <name>/loss and every 7th value of <name>/grad.<parameter>.
#include <cmath>
#include <deque>

#include "io/safetensors.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;

namespace {

constexpr std::size_t stride = 7;

std::vector<float> every_seventh(const std::vector<float>& values) {
  std::vector<float> some;
  for (std::size_t i = 0; i < values.size(); i += stride) some.push_back(values[i]);
  return some;
}

/// The largest difference relative to the largest value, where `counts` says that an element is compared.
template <class Counts>
double difference(const std::vector<float>& got, const std::vector<float>& expected, Counts counts) {
  REQUIRE(got.size() == expected.size());
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!counts(i)) continue;
    const double distance = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    error = std::isnan(distance) ? HUGE_VAL : std::max(error, distance);
    size = std::max(size, std::abs(static_cast<double>(expected[i])));
  }
  CHECK(size > 0);
  return error / size;
}

/// Softmax ignores the keys' bias: the gradient there is rounding and nothing else.
bool is_keys_bias(const std::string& name, std::size_t sample, std::size_t elements, bool softmax) {
  const std::size_t i = sample * stride;
  if (name == "attn_pool.kv.bias") return i < elements / 2;
  return softmax && name.ends_with("qkv.bias") && i >= elements / 3 && i < 2 * elements / 3;
}

}  // namespace

TEST_SUITE("cli/vit_golden") {
  TEST_CASE("logits, loss and gradients are timm's") {
    const io::SafetensorsFile golden =
        io::SafetensorsFile::open(test::test_directory() / "cli" / "vit_golden.safetensors");
    REQUIRE(golden.metadata().size() >= 9);
    const TemporaryDirectory directory;
    const auto subset = [&](const std::string& file, const std::vector<std::pair<std::string, std::string>>& names) {
      std::vector<io::OutputTensor> tensors;
      std::deque<std::vector<std::byte>> bytes;
      for (const auto& [from, to] : names) {
        const io::TensorInfo& info = golden.at(from);
        tensors.push_back({to, info.dtype, info.shape, bytes.emplace_back(golden.read_bytes(info))});
      }
      const std::string path = directory.path() / file;
      io::write_safetensors(path, tensors);
      return path;
    };
    const std::string in = subset("in.safetensors", {{"images", "images"}, {"labels", "labels"}});
    for (const auto& [name, words] : golden.metadata()) {
      CAPTURE(name);
      const std::string gradients = name + "/grad.";
      std::vector<std::pair<std::string, std::string>> parameters;
      for (const io::TensorInfo& info : golden.tensors())
        if (info.name.starts_with(gradients)) {
          const std::string parameter = info.name.substr(gradients.size());
          parameters.emplace_back("weights." + parameter, parameter);
        }
      REQUIRE(parameters.size() > 10);
      const std::string out = directory.path() / "out.safetensors";
      const auto run =
          run_sylvit("run vit --width 32 --depth 2 --heads 2 --mlp 64 --patch 4 " + words + " --weights " +
                     subset("w.safetensors", parameters) + " --input " + in + " --output " + out + " --backward");
      CAPTURE(run.errors);
      REQUIRE(run.exit_code == 0);
      const io::SafetensorsFile result = io::SafetensorsFile::open(out);
      const auto all = [](std::size_t) { return true; };
      CHECK(difference(result.read_f32("logits"), golden.read_f32(name + "/logits"), all) < 2e-6);
      CHECK(difference(result.read_f32("loss"), golden.read_f32(name + "/loss"), all) < 2e-6);
      const bool softmax = words.find("--score") == std::string::npos;
      for (const auto& [from, parameter] : parameters) {
        CAPTURE(parameter);
        const std::vector<float> got = result.read_f32("grad." + parameter);
        const auto counts = [&](std::size_t i) { return !is_keys_bias(parameter, i, got.size(), softmax); };
        CHECK(difference(every_seventh(got), golden.read_f32(gradients + parameter), counts) < 2e-5);
      }
    }
  }
}
