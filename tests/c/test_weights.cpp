// What C says of a model, against what was written down with its weights. examples/c is a program in C.
#include <sylvit/sylvit.h>

#include <cmath>

#include "io/safetensors.hpp"
#include "support.hpp"

using sylvit::test::check_contains;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;

namespace {

class COwner {
 public:
  COwner() { REQUIRE(sylvit_device_open(nullptr, &device_) == SYLVIT_OK); }
  ~COwner() { sylvit_device_close(device_); }
  COwner(const COwner&) = delete;
  COwner& operator=(const COwner&) = delete;

  sylvit_status load(const std::string& path, const sylvit_model_options* options) const {
    sylvit_model* model = nullptr;
    const sylvit_status status = sylvit_model_load(device_, path.c_str(), options, &model);
    CHECK((model != nullptr) == (status == SYLVIT_OK));
    sylvit_model_free(model);
    return status;
  }

  /// Of one made-up image.
  std::vector<float> logits(const std::string& path, const sylvit_model_options* options) const {
    sylvit_model* model = nullptr;
    const sylvit_status status = sylvit_model_load(device_, path.c_str(), options, &model);
    CAPTURE(sylvit_last_error());
    REQUIRE(status == SYLVIT_OK);
    std::vector<float> image(3 * 8 * 8);
    for (std::size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<float>(i));
    std::vector<float> result(7);
    CHECK(sylvit_model_run(model, image.data(), 1, result.data(), nullptr) == SYLVIT_OK);
    sylvit_model_free(model);
    return result;
  }

 private:
  sylvit_device* device_ = nullptr;
};

}  // namespace

TEST_SUITE("c/weights") {
  TEST_CASE("a file's own words go before the defaults, and options that contradict them are invalid") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "w.safetensors";
    REQUIRE(run_sylvit("init --width 48 --depth 2 --heads 3 --mlp 80 --patch 4 --classes 7 --image-size 8 "
                       "--score relu --alpha 0.5 --gelu-tanh --output " +
                       path)
                .exit_code == 0);
    const COwner c;
    const std::vector<float> written = c.logits(path, nullptr);
    sylvit_model_options options = SYLVIT_MODEL_OPTIONS_INIT;
    CHECK(c.logits(path, &options) == written);
    options.score = "relu";
    options.alpha = 0.5F;
    options.gelu_tanh = 1;
    options.heads = 3;
    options.pooling = "tok";
    CHECK(c.logits(path, &options) == written);

    const auto contradicts = [&](const auto& change, const std::string& sentence) {
      sylvit_model_options wrong = SYLVIT_MODEL_OPTIONS_INIT;
      change(wrong);
      CHECK(c.load(path, &wrong) == SYLVIT_INVALID_ARGUMENT);
      check_contains(sylvit_last_error(), {sentence, path, "override_file"});
    };
    contradicts([](auto& o) { o.score = "softmax"; }, "score softmax contradicts");
    contradicts([](auto& o) { o.alpha = 1; }, "alpha 1.0 contradicts");
    contradicts([](auto& o) { o.heads = 1; }, "heads 1 contradicts");
    contradicts([](auto& o) { o.model = "S/16"; }, "width 384 contradicts");
    contradicts([](auto& o) { o.pooling = "gap"; }, "pooling gap contradicts");

    sylvit_model_options other = SYLVIT_MODEL_OPTIONS_INIT;
    other.score = "softmax";
    other.override_file = 1;
    CHECK(c.logits(path, &other) != written);
    // A caller that was compiled before the member was there.
    other.struct_size = offsetof(sylvit_model_options, override_file);
    CHECK(c.load(path, &other) == SYLVIT_INVALID_ARGUMENT);
    other.score = nullptr;
    CHECK(c.logits(path, &other) == written);

    sylvit_model_options unknown = SYLVIT_MODEL_OPTIONS_INIT;
    unknown.pooling = "max";
    CHECK(c.load(path, &unknown) == SYLVIT_INVALID_ARGUMENT);
    check_contains(sylvit_last_error(), {"no pooling \"max\"", "tok, gap, map"});
  }
}
