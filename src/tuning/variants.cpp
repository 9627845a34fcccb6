#include "tuning/variants.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/storage_types.hpp"
#include "catalogue/catalogue.hpp"
#include "catalogue/head_sizes.hpp"
#include "catalogue/kernel.hpp"
#include "runtime/probe.hpp"
#include "tuning/choice.hpp"

namespace sylvit::tuning {

namespace {

using base::storage_types;
using catalogue::Gelu;
using kernels::Parameters;

/// Calls use(type of the record, class of the score, template arguments…) for all that a kernel's parameters can be.
template <Parameters parameters, class Use>
void for_each_parameters(const Use& use) {
  if constexpr (parameters == Parameters::none) {
    use(DType::f32, ScoreClass::any);
    return;
  }
  for (const DType dtype : storage_types) {
    const bool f32 = dtype == DType::f32;
    if constexpr (parameters == Parameters::type) {
      use(dtype, ScoreClass::any, dtype);
    } else if constexpr (parameters == Parameters::two_types) {
      for (const DType to : storage_types)
        if (to != dtype) use(dtype, ScoreClass::any, dtype, to);
    } else if constexpr (parameters == Parameters::type_parameters) {
      use(dtype, ScoreClass::any, dtype, dtype);
      if (!f32) use(dtype, ScoreClass::any, dtype, DType::f32);
    } else if constexpr (parameters == Parameters::logits_gradient) {
      use(dtype, ScoreClass::any, dtype, dtype);
      if (!f32) use(dtype, ScoreClass::any, DType::f32, dtype);
    } else if constexpr (parameters == Parameters::gelu_type) {
      for (const Gelu gelu : {Gelu::exact, Gelu::tanh}) use(dtype, ScoreClass::any, gelu, dtype);
    } else if constexpr (parameters == Parameters::score_type) {
      for (const Score score : all_scores) use(dtype, class_of(score), catalogue::ScoreFunctor(score), dtype);
    } else if constexpr (parameters == Parameters::product) {
      for (const kernels::GemmEpilogueKind epilogue : kernels::all_epilogues)
        for (const bool transposed : {false, true}) {
          const kernels::GemmForm form{epilogue, transposed};
          use(dtype, ScoreClass::any, dtype, dtype, form);
          if (!f32) use(dtype, ScoreClass::any, dtype, DType::f32, form);
        }
    }
  }
}

/// Calls use(configuration, head size) for every record that leads to the kernel.
template <class Described, class Use>
void for_each_config(const Table& table, DType dtype, ScoreClass score_class, const Use& use) {
  using Config = typename Described::Config;
  Case wanted{.kernel = Config::record, .dtype = catalogue::is_by_type<Config> ? dtype : DType::f32};
  const auto records = [&](std::int64_t head_size) {
    for (const Record* record : table.candidates_for(wanted)) {
      if constexpr (requires { Described::cut; })
        if (record->number("cut") != static_cast<int>(Described::cut)) continue;
      use(config_of<Config>(*record, head_size), head_size);
    }
  };
  if constexpr (catalogue::has_head_size<Config>) {
    for (const std::int64_t head_size : catalogue::head_sizes_ahead_of_time()) {
      wanted.head_size = head_size;
      // Without a score of its own a kernel serves both classes.
      for (const ScoreClass of : {ScoreClass::pointwise, ScoreClass::softmax}) {
        if (score_class != ScoreClass::any && score_class != of) continue;
        wanted.score_class = of;
        records(head_size);
      }
    }
  } else {
    records(0);
  }
}

class Collector {
 public:
  void add(runtime::KernelName kernel) {
    if (seen_.insert(kernel.type).second) kernels_.push_back(std::move(kernel));
  }
  std::vector<runtime::KernelName> take() { return std::move(kernels_); }

 private:
  std::vector<runtime::KernelName> kernels_;
  std::set<std::string> seen_;
};

template <class Described>
void add_variants(const Table& table, Collector& to) {
  for_each_parameters<Described::parameters>([&](DType dtype, ScoreClass score_class, const auto&... parameters) {
    for_each_config<Described>(table, dtype, score_class, [&](const auto& config, std::int64_t /*head_size*/) {
      to.add(catalogue::kernel<Described>(config, parameters...));
    });
  });
}

/// Calls `use` with the table of each embedded file that serves one of the backends.
template <class Use>
void for_each_table(std::span<const std::string> backends, const Use& use) {
  for (const std::string& backend : backends)
    for (const TableFile& file : embedded())
      // A longer chain, of several files before the default, leads to nothing that these do not lead to.
      if (file.family.serves(backend)) use(embedded_table(file.name, backend));
}

}  // namespace

std::vector<runtime::KernelName> variants_of(const Table& table) {
  Collector result;
  catalogue::for_each_kernel([&]<class Described>() { add_variants<Described>(table, result); });
  return result.take();
}

std::vector<runtime::KernelName> variants_of(const Table& table, std::string_view kernel) {
  Collector result;
  catalogue::for_each_kernel([&]<class Described>() {
    if (kernel == Described::Config::record) add_variants<Described>(table, result);
  });
  return result.take();
}

std::vector<runtime::KernelName> list_variants(std::span<const std::string> backends) {
  Collector result;
  result.add(runtime::probe_kernel());
  for_each_table(backends, [&](const Table& table) {
    for (runtime::KernelName& kernel : variants_of(table)) result.add(std::move(kernel));
  });
  return result.take();
}

std::vector<CustomVariant> list_custom_variants(std::span<const std::string> backends) {
  std::vector<CustomVariant> result;
  std::set<std::string> seen;
  for_each_table(backends, [&](const Table& table) {
    catalogue::for_each_kernel([&]<class Described>() {
      if constexpr (Described::parameters == Parameters::score_type)
        for (const DType dtype : storage_types)
          for_each_config<Described>(
              table, dtype, class_of(Score::custom), [&](const auto& config, std::int64_t head_size) {
                auto kernel = catalogue::kernel<Described>(config, catalogue::ScoreFunctor(Score::custom), dtype);
                if (seen.insert(kernel.type).second) result.push_back({dtype, head_size, std::move(kernel)});
              });
    });
  });
  return result;
}

}  // namespace sylvit::tuning
