// Files of weights that take long or change: what they ask for is in proportion to them, and what fails is an Error.
#include <sylvit/sylvit.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "io/npz_writer.hpp"
#include "support.hpp"
#include "vit/init.hpp"
#include "vit/tiny.hpp"
#include "vit/weights.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::device;
using sylvit::test::npy_f32;
using sylvit::test::npz_of;
using sylvit::test::TemporaryDirectory;

namespace {

/// The smallest model of so many blocks.
VitConfig deep(std::int64_t depth) {
  return {
      .width = 16, .depth = depth, .heads = 1, .mlp = 8, .patch = 4, .image_height = 4, .image_width = 4, .classes = 1};
}

std::string write_weights(const TemporaryDirectory& directory, const VitConfig& config) {
  const std::string path = directory.path() / "weights.safetensors";
  const std::vector<VitParameter> parameters = vit_parameters(config);
  std::int64_t largest = 0;
  for (const VitParameter& parameter : parameters) largest = std::max(largest, parameter.shape.elements());
  const std::vector<float> values(static_cast<std::size_t>(largest), 0.5F);
  std::vector<io::OutputTensor> tensors;
  for (const VitParameter& parameter : parameters)
    tensors.push_back({parameter.name, DType::f32, parameter.shape,
                       std::as_bytes(std::span(values).first(static_cast<std::size_t>(parameter.shape.elements())))});
  io::write_safetensors(path, tensors);
  return path;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_SUITE("vit/weights") {
  TEST_CASE("the time that a file takes grows with its size") {
    const TemporaryDirectory directory;
    // A quadratic search among the names would take a minute here, and an hour below.
    const VitConfig config = deep(4096);
    const std::string path = write_weights(directory, config);
    const io::WeightsFile file = io::WeightsFile::open(path);
    CHECK(vit::config_of_tensors(file).config.depth == 4096);
    CHECK(seconds_of([&] { CHECK(vit::read_weights(file, config).values.size() == vit_parameters(config).size()); }) <
          15);

    const std::string deeper = write_weights(directory, deep(20'000));
    CHECK(seconds_of([&] {
            const VitWeights weights(deeper);
            const VitConfig guess = weights.guess();
            CHECK(guess.depth == 20'000);
            check_error([&] { VitParameters(device(), guess, DType::f32); }, {"depth is 20000", "1 to 4096"});
            check_error([&] { vit::read_weights(io::WeightsFile::open(deeper), guess); }, {"depth is 20000"});
          }) < 30);
  }

  TEST_CASE("an array that all blocks share is unpacked once") {
    // 4096 blocks in 40 MB of zeros, which are 40 KB: unpacked from the beginning for every block, it would be 80 GB.
    constexpr std::int64_t depth = 4096;
    constexpr std::int64_t width = 50;
    std::vector<std::pair<std::string, std::string>> members;
    const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
      std::int64_t count = 1;
      for (const std::int64_t extent : shape) count *= extent;
      members.emplace_back(name, npy_f32(shape, std::vector<float>(static_cast<std::size_t>(count))));
    };
    const auto shared = [&](const std::string& name, std::vector<std::int64_t> shape) {
      shape.insert(shape.begin(), depth);
      add("Transformer/encoderblock/" + name, shape);
    };
    add("embedding/kernel", {1, 1, 1, width});
    add("embedding/bias", {width});
    add("cls", {1, 1, width});
    add("pos_embedding", {1, 2, width});
    for (const char* norm : {"LayerNorm_0", "LayerNorm_1"})
      for (const char* part : {"/scale", "/bias"}) shared(norm + std::string(part), {width});
    const std::string attention = "MultiHeadDotProductAttention_0/";
    for (const char* name : {"query", "key", "value"}) {
      shared(attention + name + "/kernel", {width, 1, width});
      shared(attention + name + "/bias", {1, width});
    }
    shared(attention + "out/kernel", {1, width, width});
    shared(attention + "out/bias", {width});
    shared("MlpBlock_0/Dense_0/kernel", {width, 1});
    shared("MlpBlock_0/Dense_0/bias", {1});
    shared("MlpBlock_0/Dense_1/kernel", {1, width});
    shared("MlpBlock_0/Dense_1/bias", {width});
    add("Transformer/encoder_norm/scale", {width});
    add("Transformer/encoder_norm/bias", {width});
    add("head/kernel", {width, 1});
    add("head/bias", {1});
    const std::string bytes = npz_of(members, true);
    CHECK(bytes.size() < 1'000'000);
    CHECK(seconds_of([&] {
            const io::WeightsFile file = io::WeightsFile::parse(std::as_bytes(std::span(bytes)), "deep.npz");
            for (const io::TensorInfo& info : file.tensors())
              REQUIRE(file.read_f32(info.name).size() == static_cast<std::size_t>(info.shape.elements()));
          }) < 60);
  }

  TEST_CASE("a file that shrinks while it is read is an Error, and a status in C") {
    const TemporaryDirectory directory;
    const VitConfig config = test::tiny_vit([](VitConfig& c) {
      c.depth = 40;
      c.image_width = c.image_height;  // so that the file tells it
    });
    const std::string path = write_weights(directory, config);
    const std::uintmax_t size = std::filesystem::file_size(path);
    VitParameters parameters(device(), config, DType::f32);
    const VitWeights weights(path);
    std::filesystem::resize_file(path, size / 2);
    check_error([&] { (void)weights.load(parameters); }, {path, "ends after " + std::to_string(size / 2) + " bytes"});

    // Again and again, at any moment of the call.
    sylvit_device* opened = nullptr;
    REQUIRE(sylvit_device_open(nullptr, &opened) == SYLVIT_OK);
    const std::string whole = test::read_file(write_weights(directory, config));
    std::atomic<bool> done = false;
    std::thread other([&] {
      for (std::uintmax_t cut = 0; !done; cut = (cut + size / 7 + 1) % size) {
        std::ofstream(path, std::ios::binary | std::ios::in | std::ios::out) << whole;
        std::this_thread::sleep_for(std::chrono::milliseconds(1 + cut % 4));
        std::filesystem::resize_file(path, cut);
      }
    });
    int loaded = 0;
    int failed = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (int i = 0; i < 100 || ((loaded == 0 || failed == 0) && std::chrono::steady_clock::now() < end); ++i) {
      sylvit_model* model = nullptr;
      const sylvit_status status = sylvit_model_load(opened, path.c_str(), nullptr, &model);
      (status == SYLVIT_OK ? loaded : failed) += 1;
      if (status != SYLVIT_OK) {
        CHECK(status == SYLVIT_FAILED);
        CHECK(std::string(sylvit_last_error()).find("weights.safetensors") != std::string::npos);
      }
      sylvit_model_free(model);
    }
    done = true;
    other.join();
    sylvit_device_close(opened);
    MESSAGE(loaded << " times whole, " << failed << " times cut");
    CHECK(loaded > 0);
    CHECK(failed > 0);
  }
}
