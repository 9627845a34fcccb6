// A kernel variant as text: how the numbers of a tuning record become a C++ type.
#pragma once

#include <sylvit/error.hpp>
#include <sylvit/tensor.hpp>

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::tuning {

inline constexpr std::array storage_types = {DType::f32, DType::bf16, DType::f16};

/// "Name{1, 2}", a configuration as C++ text.
std::string config_text(std::string_view name, std::initializer_list<int> numbers);

/// The C++ name of a storage type inside namespace sylvit::kernels: "float", "bf16", "f16".
std::string type_text(DType dtype);

/// The configuration itself, if its numbers fit together.
template <class Config>
Config checked(const Config& config, const Record& record) {
  if (!config.valid())
    throw Error("the tuning record for " + record.kernel + " (" + record.origin + ") has tile numbers that do not fit");
  return config;
}

/// The name of a kernel. A sub-group is asked for where the work-items of a tile are meant to be one; a single
/// work-item is none.
template <class Arguments>
runtime::Kernel<Arguments> named(const char* header, const char* arguments, std::string type, int lanes,
                                 bool local_memory) {
  return {{.header = header,
           .arguments = arguments,
           .type = std::move(type),
           .sub_group_size = lanes > 1 ? lanes : 0,
           .local_memory = local_memory}};
}

}  // namespace sylvit::tuning
