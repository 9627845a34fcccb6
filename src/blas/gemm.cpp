// The public matrix product: checks, chooses a provider, adds the epilogue where the provider has none.
#include <sylvit/error.hpp>
#include <sylvit/gemm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/require.hpp"
#include "base/storage_types.hpp"
#include "blas/builtin.hpp"
#include "blas/product.hpp"
#include "runtime/rehearsal.hpp"
#include "tuning/table.hpp"

namespace sylvit {

namespace blas {

namespace {

void require_of_gemm(bool good, const std::string& sentence) { base::require(good, "gemm: " + sentence); }

std::string shape_of(const TensorView& view) { return view.shape().text(); }

/// How a factor, or C, lies; `rows` and `columns` are its last two axes.
Factor factor_of(const TensorView& view, const char* name, bool may_be_transposed = true) {
  const std::size_t rows = view.shape().rank() - 2;
  const bool batched = rows == 1;
  const std::int64_t row_stride = view.stride(rows);
  const std::int64_t column_stride = view.stride(rows + 1);
  const std::int64_t batch_stride = batched ? view.stride(0) : 0;
  const std::int64_t m = view.extent(rows);
  const std::int64_t n = view.extent(rows + 1);
  // A single row or column has no stride of its own that counts. Where either reading fits, the strides still tell
  // which is meant, so that a batch of one image takes the kernel of larger batches.
  const bool has_rows = (column_stride == 1 || n <= 1) && (row_stride >= n || m <= 1);
  const bool meant_transposed = may_be_transposed && row_stride == 1 && column_stride != 1 && column_stride >= m;
  if (has_rows && !meant_transposed)
    return {view.data(), false, std::max({row_stride, n, std::int64_t{1}}), batch_stride};
  require_of_gemm((row_stride == 1 || m <= 1) && (column_stride >= m || n <= 1),
                  std::string(name) + " " + shape_of(view) + " has neither contiguous rows nor contiguous columns");
  return {view.data(), true, std::max({column_stride, m, std::int64_t{1}}), batch_stride};
}

void check_same_as_c(const TensorView& view, const char* name, const Gemm& gemm) {
  require_of_gemm(view.shape() == gemm.c.shape(),
                  std::string(name) + " is " + shape_of(view) + ", and must have C's shape " + shape_of(gemm.c));
  require_of_gemm(view.dtype() == gemm.c.dtype(), std::string(name) + " must have C's type");
  require_of_gemm(view.stride(view.shape().rank() - 1) == 1 || view.extent(view.shape().rank() - 1) <= 1,
                  std::string(name) + " must have contiguous rows");
}

bool is_gelu(Epilogue epilogue) { return epilogue == Epilogue::bias_gelu || epilogue == Epilogue::bias_gelu_tanh; }

void check_epilogue(const Gemm& gemm, std::int64_t n) {
  if (gemm.epilogue != Epilogue::none) {
    require_of_gemm(static_cast<bool>(gemm.bias) || n == 0, "this epilogue needs a bias");
    require_of_gemm(gemm.bias.shape() == Shape{n} && gemm.bias.dtype() == DType::f32 && gemm.bias.is_dense(),
                    "the bias is " + shape_of(gemm.bias) + " " + std::string(name_of(gemm.bias.dtype())) +
                        ", and must be dense f32 [" + std::to_string(n) + "]");
  }
  if (gemm.epilogue == Epilogue::bias_residual) {
    check_same_as_c(gemm.residual, "the residual", gemm);
    require_of_gemm(!gemm.residual.overlaps(gemm.c), "the residual overlaps C, but is not C itself");
  }
  if (gemm.pre_activation) {
    require_of_gemm(is_gelu(gemm.epilogue), "only gelu keeps what it was taken of");
    check_same_as_c(gemm.pre_activation, "pre_activation", gemm);
    require_of_gemm(!gemm.pre_activation.overlaps(gemm.c), "pre_activation overlaps C");
  }
}

}  // namespace

Product product_of(const Gemm& gemm) {
  const std::size_t rank = gemm.c.shape().rank();
  require_of_gemm(rank == 2 || rank == 3, "C is " + shape_of(gemm.c) + ", and must have 2 axes, or 3 with a batch");
  require_of_gemm(gemm.a.shape().rank() == rank && gemm.b.shape().rank() == rank,
                  "A " + shape_of(gemm.a) + ", B " + shape_of(gemm.b) + " and C " + shape_of(gemm.c) +
                      " must have the same number of axes");
  const std::size_t rows = rank - 2;
  const std::int64_t batch = rank == 3 ? gemm.c.extent(0) : 1;
  const std::int64_t m = gemm.c.extent(rows);
  const std::int64_t n = gemm.c.extent(rows + 1);
  const std::int64_t k = gemm.a.extent(rows + 1);
  const bool batches_fit = rank == 2 || (gemm.a.extent(0) == batch && gemm.b.extent(0) == batch);
  require_of_gemm(batches_fit && gemm.a.extent(rows) == m && gemm.b.extent(rows) == k && gemm.b.extent(rows + 1) == n,
                  "A " + shape_of(gemm.a) + " times B " + shape_of(gemm.b) + " does not give C " + shape_of(gemm.c));
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  require_of_gemm(m <= most && n <= most - 256 && k <= most, "an extent above 2^31 is not supported");
  const DType type = gemm.a.dtype();
  require_of_gemm(base::is_storage(type), "A is " + std::string(name_of(type)) + ", and must be f32, bf16 or f16");
  require_of_gemm(gemm.b.dtype() == type, "A is " + std::string(name_of(type)) + " and B " +
                                              std::string(name_of(gemm.b.dtype())) + "; they must have one type");
  require_of_gemm(gemm.c.dtype() == type || gemm.c.dtype() == DType::f32, "C must have the type of A and B, or f32");
  require_of_gemm(std::isfinite(gemm.alpha) && std::isfinite(gemm.beta), "alpha and beta must be finite");
  const Factor c = factor_of(gemm.c, "C", false);
  require_of_gemm(!c.transposed, "C " + shape_of(gemm.c) + " must have contiguous rows");
  require_of_gemm(!gemm.c.may_alias_itself(), "C's strides make elements share memory");
  check_epilogue(gemm, n);
  const Product product{batch,
                        m,
                        n,
                        k,
                        type,
                        gemm.c.dtype(),
                        factor_of(gemm.a, "A"),
                        factor_of(gemm.b, "B"),
                        gemm.c.data(),
                        c.stride,
                        c.batch_stride,
                        gemm.alpha,
                        gemm.beta};
  require_of_gemm(product.trivial() || (!gemm.c.overlaps(gemm.a) && !gemm.c.overlaps(gemm.b)), "C overlaps a factor");
  return product;
}

namespace {

/// A residual in place is one more C, which every provider adds on its way.
Gemm without_residual_in_place(const Gemm& gemm) {
  Gemm result = gemm;
  if (gemm.epilogue == Epilogue::bias_residual && gemm.residual.data() == gemm.c.data()) {
    check_same_as_c(gemm.residual, "the residual", gemm);
    result.beta += 1.0F;
    result.epilogue = Epilogue::bias;
    result.residual = {};
  }
  return result;
}

std::vector<Provider> vendors_for(const Device& device, const Product& product) {
  std::vector<Provider> found;
  for (const auto& list : {onemkl_provider(), onemath_provider(), cblas_provider()})
    for (const Provider& provider : list)
      if (provider.serves(device, product)) found.push_back(provider);
  return found;
}

/// Empty: the builtin one.
std::optional<Provider> choose(const Device& device, const Product& product, std::optional<GemmProvider> asked) {
  if (product.trivial()) return {};
  const std::vector<Provider> vendors = vendors_for(device, product);
  const auto find = [&](std::string_view name) {
    return std::ranges::find(vendors, name, [](const Provider& provider) { return name_of(provider.name); });
  };
  const auto require_named = [&](std::string_view name, const std::string& who) -> std::optional<Provider> {
    if (name == name_of(GemmProvider::builtin)) return {};
    if (const auto provider = find(name); provider != vendors.end()) return *provider;
    std::string there(name_of(GemmProvider::builtin));
    for (const Provider& provider : vendors) there.append(", ").append(name_of(provider.name));
    throw Error(who + " names \"" + std::string(name) + "\", which cannot serve this product", "here are: " + there,
                device.name());
  };
  if (asked) return require_named(name_of(*asked), "gemm: the provider");
  if (const char* forced = std::getenv("SYLVIT_GEMM"); forced != nullptr && *forced != '\0')
    return require_named(forced, "SYLVIT_GEMM");
  // What the table prefers, as far as it is there; then the first that can serve.
  const tuning::Case wanted{.kernel = "gemm_provider", .dtype = product.type, .n = product.n, .k = product.k};
  if (const tuning::Record* preferred = tuning::table_for(device).match(wanted))
    for (const std::string& name : preferred->providers) {
      if (name == name_of(GemmProvider::builtin)) return {};
      if (const auto provider = find(name); provider != vendors.end()) return *provider;
    }
  if (vendors.empty()) return {};
  return vendors.front();
}

}  // namespace

}  // namespace blas

std::size_t gemm_workspace(const Device& device, const Gemm& gemm) {
  const blas::Product product = blas::product_of(blas::without_residual_in_place(gemm));
  if (gemm.packed_b != nullptr || blas::choose(device, product, gemm.provider)) return 0;
  return blas::builtin_packed_bytes(device, product);
}

std::size_t gemm_packed_bytes(const Device& device, const Gemm& gemm) {
  const blas::Product product = blas::product_of(blas::without_residual_in_place(gemm));
  return blas::choose(device, product, gemm.provider) ? 0 : blas::builtin_packed_bytes(device, product);
}

sycl::event gemm_pack(const Device& device, const Gemm& gemm, void* packed, std::span<const sycl::event> after) {
  return blas::builtin_pack(device, blas::product_of(blas::without_residual_in_place(gemm)), packed, after);
}

sycl::event gemm(const Device& device, const Gemm& asked, void* workspace, std::span<const sycl::event> after) {
  const Gemm gemm = blas::without_residual_in_place(asked);
  const blas::Product product = blas::product_of(gemm);
  const kernels::GemmOutput output = blas::output_of(gemm, product);
  const std::optional<blas::Provider> vendor = blas::choose(device, product, gemm.provider);
  if (!vendor && gemm.packed_b != nullptr) return blas::builtin_gemm(device, product, output, gemm.packed_b, after);
  if (!vendor) {
    const sycl::event packed = blas::builtin_pack(device, product, workspace, after);
    return blas::builtin_gemm(device, product, output, workspace, {&packed, 1});
  }
  const sycl::event done = runtime::submit_other(device, name_of(vendor->name),
                                                 [&](sycl::queue&) { return vendor->run(device, product, after); });
  if (gemm.epilogue == Epilogue::none) return done;
  return blas::run_epilogue(device, product, output, {&done, 1});
}

void gemm_prepare(const Device& device, const Gemm& gemm) {
  const runtime::Rehearsal rehearsal(device);
  sylvit::gemm(rehearsal.device(), gemm, nullptr);
  runtime::prepare(device, rehearsal.kernels());
}

std::vector<GemmProvider> gemm_providers(const Device& device, const Gemm& gemm) {
  const blas::Product product = blas::product_of(blas::without_residual_in_place(gemm));
  std::vector<GemmProvider> providers;
  for (const blas::Provider& provider : blas::vendors_for(device, product)) providers.push_back(provider.name);
  providers.push_back(GemmProvider::builtin);
  const std::optional<blas::Provider> chosen = blas::choose(device, product, gemm.provider);
  std::ranges::stable_partition(
      providers, [&](GemmProvider provider) { return provider == (chosen ? chosen->name : GemmProvider::builtin); });
  return providers;
}

}  // namespace sylvit
