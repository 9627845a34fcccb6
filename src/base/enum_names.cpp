// The names of the public enums.
#include "base/enum_names.hpp"

#include <sylvit/device.hpp>
#include <sylvit/gemm.hpp>
#include <sylvit/pass.hpp>
#include <sylvit/score.hpp>
#include <sylvit/vit_config.hpp>

namespace sylvit {

namespace {

template <class... Texts>
constexpr auto names(Texts... texts) {
  return std::array<std::string_view, sizeof...(Texts)>{texts...};
}

}  // namespace

std::string_view name_of(Toolchain toolchain) noexcept {
  return base::name_at(names("rtc", "dpcpp", "acpp"), toolchain);
}

std::string_view name_of(Backend backend) noexcept {
  return base::name_at(names("unknown", "opencl", "level_zero", "cuda", "hip", "omp"), backend);
}

std::string_view name_of(DeviceType type) noexcept { return base::name_at(names("cpu", "gpu", "accelerator"), type); }

std::string_view name_of(ScoreClass score_class) noexcept {
  return base::name_at(names("any", "pointwise", "softmax"), score_class);
}

std::string_view name_of(GemmProvider provider) noexcept {
  return base::name_at(names("builtin", "onemkl", "onemath", "blas"), provider);
}

std::optional<GemmProvider> find_gemm_provider(std::string_view name) noexcept {
  for (const GemmProvider provider : all_gemm_providers)
    if (name_of(provider) == name) return provider;
  return {};
}

std::string_view name_of(Pass pass) noexcept {
  return base::name_at(names("forward", "forward_backward", "train"), pass);
}

std::string_view name_of(Pooling pooling) noexcept { return base::name_at(names("tok", "gap", "map"), pooling); }

Pooling parse_pooling(std::string_view name) { return base::value_named(name, all_poolings, "pooling", "poolings"); }

std::string_view name_of(Positions positions) noexcept { return base::name_at(names("learned", "sincos"), positions); }

Positions parse_positions(std::string_view name) {
  return base::value_named(name, all_positions, "positions", "positions");
}

Pass parse_pass(std::string_view name) {
  if (name == "backward") return Pass::forward_backward;
  return base::value_named(name, all_passes, "pass", "passes");
}

}  // namespace sylvit
