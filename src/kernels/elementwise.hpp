// Fill and convert, one element at a time:
//
//     fill:     out[i] = value            convert:  out[i] = To(From(in[i]))      0 <= i < count
//
// A work-group of `work_items` owns a run of work_items * per_item elements, and a work-item takes every work_items-th
// of them, so that neighbouring work-items touch neighbouring elements:
//
//     |<------------- group 0 ------------->|<------------- group 1 ----
//     | 0 1 2 … w-1 | 0 1 2 … w-1 | …       |
//       per_item = 0  per_item = 1
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct ElementwiseConfig {
  int work_items;
  int per_item;

  static constexpr const char *name = "ElementwiseConfig", *record = "elementwise";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("work_items", &ElementwiseConfig::work_items);
    visit("per_item", &ElementwiseConfig::per_item);
  }
  constexpr int run() const { return work_items * per_item; }
  constexpr bool valid() const { return work_items > 0 && per_item > 0; }
};

struct FillArguments {
  void* out;
  std::int64_t count;
  float value;
};

template <class T, ElementwiseConfig config>
struct Fill {
  using Arguments = FillArguments;

  static void run(const FillArguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    T* out = static_cast<T*>(arguments.out);
    const T value{arguments.value};
    const std::int64_t first = group_of(item, 2) * config.run() + lane_of(item);
    for (int step = 0; step < config.per_item; ++step) {
      const std::int64_t i = first + step * config.work_items;
      if (i < arguments.count) out[i] = value;
    }
  }
};

struct FillKernel : Description<ElementwiseConfig, FillArguments, Parameters::type> {
  static constexpr const char *header = "elementwise.hpp", *functor = "Fill", *arguments = "FillArguments";
};

struct ConvertArguments {
  const void* in;
  void* out;
  std::int64_t count;
};

template <class From, class To, ElementwiseConfig config>
struct Convert {
  using Arguments = ConvertArguments;

  static void run(const ConvertArguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const From* in = static_cast<const From*>(arguments.in);
    To* out = static_cast<To*>(arguments.out);
    const std::int64_t first = group_of(item, 2) * config.run() + lane_of(item);
    for (int step = 0; step < config.per_item; ++step) {
      const std::int64_t i = first + step * config.work_items;
      if (i < arguments.count) out[i] = To{static_cast<float>(in[i])};
    }
  }
};

struct ConvertKernel : Description<ElementwiseConfig, ConvertArguments, Parameters::two_types> {
  static constexpr const char *header = "elementwise.hpp", *functor = "Convert", *arguments = "ConvertArguments";
};

}  // namespace sylvit::kernels
