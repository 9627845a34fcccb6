// Matrix products with what follows them in a network, on whichever library serves the device best:
//
//     C = epilogue(alpha · A B + beta · C)
//
// Operands are views [m, k] · [k, n] → [m, n], or with a batch axis in front. Transposed operands are permuted views:
// one of the last two axes of A and of B is contiguous, and so are the rows of C. Sums are f32 whatever the storage
// type. All functions return at once, after adding work to the device's queue after the given events; nothing is
// allocated. Results are bitwise repeatable.
//
// Threads: any number may call these functions at once, also for one Device and shared operands, as long as outputs and
// workspaces are different.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/export.hpp>
#include <sylvit/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sylvit {

/// What is done to the product before it is stored.
enum class Epilogue : std::uint8_t {
  none,            ///< nothing
  bias,            ///< + bias
  bias_gelu,       ///< u = product + bias, stored in `pre_activation` if given; C = gelu(u)
  bias_gelu_tanh,  ///< the same with GELU's usual approximation
  bias_residual    ///< + bias + residual
};

/// Who computes products.
enum class GemmProvider : std::uint8_t {
  builtin,  ///< this library's own kernels: everywhere, with the epilogues fused
  onemkl,   ///< oneMKL's SYCL interface
  onemath,  ///< oneMath
  blas      ///< the host's BLAS, for AdaptiveCpp's CPU device
};

/// All of them.
inline constexpr std::array all_gemm_providers{GemmProvider::builtin, GemmProvider::onemkl, GemmProvider::onemath,
                                               GemmProvider::blas};

/// "builtin", "onemkl", …: the name of the enumerator.
SYLVIT_API std::string_view name_of(GemmProvider provider) noexcept;
/// The provider of that name; none if there is no such provider.
SYLVIT_API std::optional<GemmProvider> find_gemm_provider(std::string_view name) noexcept;

/// A matrix product.
struct Gemm {
  TensorView a = {};                   ///< [m, k] or [batch, m, k]
  TensorView b = {};                   ///< [k, n] or [batch, k, n]; A's type
  TensorView c = {};                   ///< [m, n] or [batch, m, n]; A's type or f32
  float alpha = 1.0F;                  ///< the factor of A B
  float beta = 0.0F;                   ///< 0: what C holds is not read
  Epilogue epilogue = Epilogue::none;  ///< what follows
  TensorView bias = {};                ///< [n], f32
  TensorView residual = {};            ///< C's shape and type; may be C itself
  TensorView pre_activation = {};      ///< C's shape and type
  const void* packed_b = nullptr;      ///< what gemm_pack() made of B; then B is not read where the provider can use it
  std::optional<GemmProvider> provider = {};  ///< one of gemm_providers(); none: the first of them
};

/// Bytes of scratch memory on the device that gemm() needs for these operands; may be 0.
SYLVIT_API std::size_t gemm_workspace(const Device& device, const Gemm& gemm);

/// Adds the product to the device's queue. Throws Error that names the operand and the numbers when something does not
/// fit.
SYLVIT_API sycl::event gemm(const Device& device, const Gemm& gemm, void* workspace,
                            std::span<const sycl::event> after = {});

/// Bytes of B in the form that the product's provider works on; 0 where the provider keeps that to itself. Whoever
/// multiplies many matrices with one B packs it once.
SYLVIT_API std::size_t gemm_packed_bytes(const Device& device, const Gemm& gemm);
/// Writes that form of B, for every product with this B, this provider and these types.
SYLVIT_API sycl::event gemm_pack(const Device& device, const Gemm& gemm, void* packed,
                                 std::span<const sycl::event> after = {});

/// Builds the kernels that this product needs; without it they are built at its first use.
SYLVIT_API void gemm_prepare(const Device& device, const Gemm& gemm);

/// The providers that can serve this product. gemm() uses the first: the one that the variable SYLVIT_GEMM names, if it
/// is set, else the one that the device's tuning table prefers.
SYLVIT_API std::vector<GemmProvider> gemm_providers(const Device& device, const Gemm& gemm);

}  // namespace sylvit
