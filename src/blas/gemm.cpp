// The public matrix product: checks, chooses a provider, adds the epilogue where the provider has none.
#include <sylvit/error.hpp>
#include <sylvit/gemm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "blas/builtin.hpp"
#include "blas/product.hpp"
#include "runtime/rehearsal.hpp"
#include "tuning/table.hpp"

namespace sylvit {

namespace blas {

namespace {

void require(bool good, const std::string& sentence) {
  if (!good) throw Error("gemm: " + sentence);
}

std::string shape_of(const TensorView& view) { return view.shape().text(); }

/// How a factor lies; `rows` and `columns` are its last two axes.
Factor factor_of(const TensorView& view, const char* name) {
  const std::size_t rows = view.shape().rank() - 2;
  const bool batched = rows == 1;
  const std::int64_t row_stride = view.stride(rows);
  const std::int64_t column_stride = view.stride(rows + 1);
  const std::int64_t batch_stride = batched ? view.stride(0) : 0;
  const std::int64_t m = view.extent(rows);
  const std::int64_t n = view.extent(rows + 1);
  // A single row or column has no stride of its own that counts.
  if ((column_stride == 1 || n <= 1) && (row_stride >= n || m <= 1))
    return {view.data(), false, std::max({row_stride, n, std::int64_t{1}}), batch_stride};
  require((row_stride == 1 || m <= 1) && (column_stride >= m || n <= 1),
          std::string(name) + " " + shape_of(view) + " has neither contiguous rows nor contiguous columns");
  return {view.data(), true, std::max({column_stride, m, std::int64_t{1}}), batch_stride};
}

void check_same_as_c(const TensorView& view, const char* name, const Gemm& gemm) {
  require(view.shape() == gemm.c.shape(),
          std::string(name) + " is " + shape_of(view) + ", and must have C's shape " + shape_of(gemm.c));
  require(view.dtype() == gemm.c.dtype(), std::string(name) + " must have C's type");
  require(view.stride(view.shape().rank() - 1) == 1 || view.extent(view.shape().rank() - 1) <= 1,
          std::string(name) + " must have contiguous rows");
}

bool is_gelu(Epilogue epilogue) { return epilogue == Epilogue::bias_gelu || epilogue == Epilogue::bias_gelu_tanh; }

void check_epilogue(const Gemm& gemm, std::int64_t n) {
  if (gemm.epilogue != Epilogue::none) {
    require(static_cast<bool>(gemm.bias) || n == 0, "this epilogue needs a bias");
    require(gemm.bias.shape() == Shape{n} && gemm.bias.dtype() == DType::f32 && gemm.bias.is_dense(),
            "the bias is " + shape_of(gemm.bias) + " " + std::string(name_of(gemm.bias.dtype())) +
                ", and must be dense f32 [" + std::to_string(n) + "]");
  }
  if (gemm.epilogue == Epilogue::bias_residual) {
    check_same_as_c(gemm.residual, "the residual", gemm);
    require(!gemm.residual.overlaps(gemm.c), "the residual overlaps C, but is not C itself");
  }
  if (gemm.kept) {
    require(is_gelu(gemm.epilogue), "only gelu keeps what it was taken of");
    check_same_as_c(gemm.kept, "kept", gemm);
    require(!gemm.kept.overlaps(gemm.c), "kept overlaps C");
  }
}

}  // namespace

Product product_of(const Gemm& gemm) {
  const std::size_t rank = gemm.c.shape().rank();
  require(rank == 2 || rank == 3, "C is " + shape_of(gemm.c) + ", and must have 2 axes, or 3 with a batch");
  require(gemm.a.shape().rank() == rank && gemm.b.shape().rank() == rank,
          "A " + shape_of(gemm.a) + ", B " + shape_of(gemm.b) + " and C " + shape_of(gemm.c) +
              " must have the same number of axes");
  const std::size_t rows = rank - 2;
  const std::int64_t batch = rank == 3 ? gemm.c.extent(0) : 1;
  const std::int64_t m = gemm.c.extent(rows);
  const std::int64_t n = gemm.c.extent(rows + 1);
  const std::int64_t k = gemm.a.extent(rows + 1);
  const bool batches_fit = rank == 2 || (gemm.a.extent(0) == batch && gemm.b.extent(0) == batch);
  require(batches_fit && gemm.a.extent(rows) == m && gemm.b.extent(rows) == k && gemm.b.extent(rows + 1) == n,
          "A " + shape_of(gemm.a) + " times B " + shape_of(gemm.b) + " does not give C " + shape_of(gemm.c));
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  require(m <= most && n <= most - 256 && k <= most, "an extent above 2^31 is not supported");
  const DType type = gemm.a.dtype();
  require(type == DType::f32 || type == DType::bf16 || type == DType::f16,
          "A is " + std::string(name_of(type)) + ", and must be f32, bf16 or f16");
  require(gemm.b.dtype() == type, "A is " + std::string(name_of(type)) + " and B " +
                                      std::string(name_of(gemm.b.dtype())) + "; they must have one type");
  require(gemm.c.dtype() == type || gemm.c.dtype() == DType::f32, "C must have the type of A and B, or f32");
  require(std::isfinite(gemm.alpha) && std::isfinite(gemm.beta), "alpha and beta must be finite");
  const Factor c = factor_of(gemm.c, "C");
  require(!c.transposed, "C " + shape_of(gemm.c) + " must have contiguous rows");
  require(!gemm.c.may_alias_itself(), "C's strides make elements share memory");
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
  require(product.trivial() || (!gemm.c.overlaps(gemm.a) && !gemm.c.overlaps(gemm.b)), "C overlaps a factor");
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
std::optional<Provider> choose(const Device& device, const Product& product, std::string_view asked) {
  if (product.trivial()) return {};
  const std::vector<Provider> vendors = vendors_for(device, product);
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(vendors, [&](const Provider& provider) { return name == provider.name; });
  };
  const auto require_named = [&](std::string_view name, const std::string& who) -> std::optional<Provider> {
    if (name == "builtin") return {};
    if (const auto provider = find(name); provider != vendors.end()) return *provider;
    std::string there = "builtin";
    for (const Provider& provider : vendors) there += std::string(", ") + provider.name;
    throw Error(who + " names \"" + std::string(name) + "\", which cannot serve this product", "here are: " + there,
                device.name());
  };
  if (!asked.empty()) return require_named(asked, "gemm: the provider");
  if (const char* forced = std::getenv("SYLVIT_GEMM"); forced != nullptr && *forced != '\0')
    return require_named(forced, "SYLVIT_GEMM");
  // What the table prefers, as far as it is there; then the first that can serve.
  const tuning::Case wanted{.kernel = "gemm_provider", .dtype = product.type, .n = product.n, .k = product.k};
  if (const tuning::Record* preferred = tuning::table_for(device).match(wanted))
    for (const std::string& name : preferred->providers) {
      if (name == "builtin") return {};
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
  const sycl::event done = runtime::is_rehearsal(device) ? sycl::event() : vendor->run(device, product, after);
  if (gemm.epilogue == Epilogue::none) return done;
  return blas::run_epilogue(device, product, output, {&done, 1});
}

void gemm_prepare(const Device& device, const Gemm& gemm) {
  const runtime::Rehearsal rehearsal(device);
  sylvit::gemm(rehearsal.device(), gemm, nullptr);
  runtime::prepare(device, rehearsal.kernels());
}

std::vector<std::string> gemm_providers(const Device& device, const Gemm& gemm) {
  const blas::Product product = blas::product_of(blas::without_residual_in_place(gemm));
  std::vector<std::string> names;
  for (const blas::Provider& provider : blas::vendors_for(device, product)) names.emplace_back(provider.name);
  names.emplace_back("builtin");
  const std::optional<blas::Provider> chosen = blas::choose(device, product, gemm.provider);
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name == (chosen ? chosen->name : "builtin"); });
  return names;
}

}  // namespace sylvit
