// A kernel variant as text: a description, a configuration and the other template arguments become the C++ type by
// which every toolchain knows the variant, and what its launch asks of a device.
#pragma once

#include <sylvit/tensor.hpp>

#include <string>
#include <string_view>

#include "catalogue/config.hpp"
#include "catalogue/score_functor.hpp"
#include "kernels/gemm.hpp"
#include "runtime/kernel.hpp"

namespace sylvit::catalogue {

/// GELU by the normal distribution itself, or by its usual approximation with tanh.
enum class Gelu { exact, tanh };

/// Template arguments as text, inside namespace sylvit::kernels: "bf16", "Relu", "GemmForm{…}".
std::string_view text_of(DType dtype);
std::string_view text_of(Gelu gelu);
inline const std::string& text_of(const ScoreFunctor& score) { return score.text; }
std::string text_of(const kernels::GemmForm& form);

namespace detail {

inline void note(runtime::KernelName& kernel, DType dtype) { kernel.f16 = kernel.f16 || dtype == DType::f16; }
inline void note(runtime::KernelName& kernel, const ScoreFunctor& score) { kernel.custom = score.custom; }
template <class Other>
void note(runtime::KernelName& /*kernel*/, const Other& /*parameter*/) {}

}  // namespace detail

/// The variant of a described kernel with this configuration; `parameters` are the template arguments before it.
template <class Described, class... Parameters>
runtime::Kernel<typename Described::Arguments> kernel(const typename Described::Config& config,
                                                      const Parameters&... parameters) {
  runtime::Kernel<typename Described::Arguments> result{{.header = Described::header,
                                                         .arguments = Described::arguments,
                                                         .type = Described::functor,
                                                         .functor = Described::functor,
                                                         .record = Described::Config::record}};
  result.type += "<";
  (result.type.append(text_of(parameters)).append(", "), ...);
  result.type.append(text_of(config)).append(">");
  (detail::note(result, parameters), ...);
  result.sub_group_size = sub_group_size_of(config);
  if constexpr (requires { Described::work_items(config); })
    result.work_items = Described::work_items(config);
  else
    result.work_items = work_items_of(config);
  if constexpr (requires { Described::local_floats(config); })
    result.local_floats = Described::local_floats(config);
  else if constexpr (requires { Described::local_floats(config, parameters...); })
    result.local_floats = Described::local_floats(config, parameters...);
  result.local_memory = result.local_floats > 0;
  return result;
}

}  // namespace sylvit::catalogue
