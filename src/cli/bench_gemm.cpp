// sylvit bench gemm: a matrix product by every provider that can serve it, interleaved.
#include <sylvit/error.hpp>
#include <sylvit/gemm.hpp>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "bench/device_tensors.hpp"
#include "bench/timing.hpp"
#include "cli/commands.hpp"
#include "options/numbers.hpp"
#include "options/words.hpp"
#include "terminal/print.hpp"
#include "tuning/estimated.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  std::vector<std::int64_t> shape = {1576, 1152, 384};
  std::string dtype = "f32";
  std::string result;
  std::string epilogue = "none";
  std::string provider;
  std::string device;
  bool transpose_a = false;
  bool transpose_b = false;
  double seconds = 2;
  bool json = false;
};

constexpr std::array epilogues{
    std::pair{"none", Epilogue::none}, std::pair{"bias", Epilogue::bias}, std::pair{"bias_gelu", Epilogue::bias_gelu},
    std::pair{"bias_gelu_tanh", Epilogue::bias_gelu_tanh}, std::pair{"bias_residual", Epilogue::bias_residual}};

struct Contestant {
  std::string provider;
  Gemm product;  // by this provider
  void* workspace;
  std::size_t workspace_bytes;
  Times times = {};
};

void bench(const Options& options) {
  const DType dtype = parse_dtype(options.dtype);
  const DType result_type = options.result.empty() ? dtype : parse_dtype(options.result);
  const std::int64_t m = options.shape[0];
  const std::int64_t n = options.shape[1];
  const std::int64_t k = options.shape[2];
  const Device device = Device::open(options.device);
  DeviceTensors tensors(device, "the benchmark");
  // All memory is asked for before any of it is filled, which takes long where it is much.
  const auto laid_out = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    return tensors.empty(dtype, transposed ? Shape{columns, rows} : Shape{rows, columns});
  };
  const TensorView a = laid_out(m, k, options.transpose_a);
  const TensorView b = laid_out(k, n, options.transpose_b);
  Gemm product{.a = options.transpose_a ? a.permute({1, 0}) : a,
               .b = options.transpose_b ? b.permute({1, 0}) : b,
               .c = tensors.empty(result_type, {m, n})};
  for (const TensorView& factor : {a, b}) tensors.fill_randomly(factor);
  for (const auto& [name, epilogue] : epilogues)
    if (options.epilogue == name) product.epilogue = epilogue;
  if (product.epilogue != Epilogue::none) product.bias = tensors.random(DType::f32, {n});
  if (product.epilogue == Epilogue::bias_residual) product.residual = tensors.random(result_type, {m, n});

  std::vector<Contestant> contestants;
  std::vector<GemmProvider> providers = gemm_providers(device, product);
  if (!options.provider.empty()) providers = {*find_gemm_provider(options.provider)};
  for (const GemmProvider provider : providers) {
    Gemm by_provider = product;
    by_provider.provider = provider;
    const std::size_t bytes = gemm_workspace(device, by_provider);
    contestants.push_back({std::string(name_of(provider)), by_provider, tensors.scratch(bytes), bytes});
  }
  const auto run = [&](const Contestant& contestant) {
    gemm(device, contestant.product, contestant.workspace);
    device.wait();
  };
  for (const Contestant& contestant : contestants) run(contestant);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  while (contestants.front().times.count() < 5 || std::chrono::steady_clock::now() < end)
    for (Contestant& contestant : contestants) contestant.times.add(milliseconds([&] { run(contestant); }));

  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto gflops = [&](const Contestant& contestant) { return flops / contestant.times.best() / 1e6; };
  if (options.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Contestant& contestant : contestants)
      json.push_back({{"provider", contestant.provider},
                      {"ms_best", contestant.times.best()},
                      {"ms_median", contestant.times.median()},
                      {"gflops", gflops(contestant)},
                      {"workspace_bytes", contestant.workspace_bytes},
                      {"device", device.name()},
                      {"toolchain", name_of(device.info().toolchain)}});
    terminal::print_json(json);
    return;
  }
  terminal::print("{} x {} x {} {} on {} ({}), {} rounds\n", m, n, k, options.dtype, device.name(),
                  name_of(device.info().toolchain), contestants.front().times.count());
  terminal::print("  {:<10} {:>10} {:>10} {:>10} {:>8}\n", "provider", "best ms", "median ms", "GFLOP/s", "of first");
  for (const Contestant& contestant : contestants)
    terminal::print("  {:<10} {:>10.3f} {:>10.3f} {:>10.1f} {:>7.0f}%\n", contestant.provider, contestant.times.best(),
                    contestant.times.median(), gflops(contestant),
                    100 * contestants.front().times.best() / contestant.times.best());
  if (tuning_choice(device.info(), {.kernel = "gemm", .dtype = dtype, .n = n, .k = k}).estimated)
    terminal::print("  {}\n", tuning::estimated_note);
}

}  // namespace

void add_bench_gemm(CLI::App& program) {
  CLI::App* command = program.add_subcommand("gemm", "Compare the providers of matrix products");
  auto options = std::make_shared<Options>();
  command->add_option("--shape", options->shape, "M,N,K")
      ->delimiter(',')
      ->expected(3)
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "Type of the factors: f32, bf16 or f16")
      ->check(storage_type_word)
      ->capture_default_str();
  command->add_option("--result", options->result, "Type of the result (default: that of the factors)")
      ->check(storage_type_word);
  command->add_option("--epilogue", options->epilogue, "none, bias, bias_gelu, bias_gelu_tanh or bias_residual")
      ->check(CLI::IsMember({"none", "bias", "bias_gelu", "bias_gelu_tanh", "bias_residual"}))
      ->capture_default_str();
  command->add_flag("--transpose-a", options->transpose_a, "A lies as [K, M]");
  command->add_flag("--transpose-b", options->transpose_b, "B lies as [N, K], as a network's weights do");
  command->add_option("--provider", options->provider, "This provider alone: onemkl, onemath, blas or builtin")
      ->check(provider_word);
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->add_option("--seconds", options->seconds, "How long to measure")
      ->check(number_from_zero)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print a JSON array, one object a provider");
  command->callback([options] { bench(*options); });
}

}  // namespace sylvit::cli
