// From images to tokens and from tokens to what the head sees, with the gradients:
//
//     rows[b, g, (c, y, x)] = images[b, c, gy p + y, gx p + x]                 g = gy grid_width + gx, patches of p x p
//     x[b, t] = embedded[b, t - s] + bias + positions[t]                       s = 1 with a class token, else 0
//     x[b, 0] = class_token + positions[0]                                     with a class token
//     d_embedded[b, t - s] = dx[b, t]     d_positions[t] = Σ_b dx[b, t]        d_class_token = Σ_b dx[b, 0]
//     pooled[b] = 1/(tokens - s) Σ_{t >= s} x[b, t]                            dx[b, t] = factor d_pooled[b], or 0
//
// Patches: a work-group owns one line of patches of an image. `lanes` work-items share a patch's line of p pixels,
// which is one run of memory on both sides; `segments` patches stand side by side.
//
//     image      |< p >|< p >|< p >| …           rows     | c0 y0 | c0 y1 | … | c1 y0 | …     patch 0
//      gy p + y  |0…l-1|0…l-1|0…l-1| …     =>             | c0 y0 | c0 y1 | …                 patch 1
//
// Tokens: a work-group owns `rows` rows, or, where rows are added up, a block of lanes x columns columns of all of
// them. Sums run over the batch, or over the tokens, from the first to the last.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/columns.hpp"
#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct PatchRowsConfig {
  int lanes;
  int columns;
  int segments;
  int sub_group;  ///< the size of the sub-groups that it is meant for; 0: the compiler chooses

  static constexpr const char *name = "PatchRowsConfig", *record = "patch_rows";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &PatchRowsConfig::lanes);
    visit("columns", &PatchRowsConfig::columns);
    visit("segments", &PatchRowsConfig::segments);
    visit("sub_group", &PatchRowsConfig::sub_group);
  }
  constexpr int sub_group_size() const { return sub_group; }
  constexpr int work_items() const { return lanes * segments; }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && segments > 0; }
};

/// Launched over (batch, grid height, 1) work-groups.
struct PatchRowsArguments {
  const float* images;
  void* rows;
  int channels;
  int height;
  int width;
  int patch;
};

template <class T, PatchRowsConfig config>
struct PatchRows {
  using Arguments = PatchRowsArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    // With one segment the compiler must see that all lanes walk the same way.
    const int lane = config.segments > 1 ? lane_of(item) % config.lanes : lane_of(item);
    const int segment = config.segments > 1 ? lane_of(item) / config.lanes : 0;
    const int patch = args.patch;
    const int grid_height = args.height / patch;
    const int grid_width = args.width / patch;
    const std::int64_t image = group_of(item, 0);
    const std::int64_t line = group_of(item, 1);
    const float* in = args.images + (image * args.channels * args.height + line * patch) * args.width;
    T* out = static_cast<T*>(args.rows) + (image * grid_height + line) * grid_width * args.channels * patch * patch;
    for (int column = segment; column < grid_width; column += config.segments)
      for (int channel = 0; channel < args.channels; ++channel)
        for (int y = 0; y < patch; ++y) {
          const float* from = in + (static_cast<std::int64_t>(channel) * args.height + y) * args.width + column * patch;
          T* to = out + ((static_cast<std::int64_t>(column) * args.channels + channel) * patch + y) * patch;
          each_column<config.lanes, config.columns>(0, patch, lane,
                                                    [&](int /*x*/, int c) { to[c] = static_cast<T>(from[c]); });
        }
  }
};

struct PatchRowsKernel : Description<PatchRowsConfig, PatchRowsArguments, Parameters::type> {
  static constexpr const char *header = "tokens.hpp", *functor = "PatchRows", *arguments = "PatchRowsArguments";
};

struct TokensConfig {
  int lanes;
  int columns;
  int rows;
  int sub_group;  ///< the size of the sub-groups that it is meant for; 0: the compiler chooses

  static constexpr const char *name = "TokensConfig", *record = "tokens";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &TokensConfig::lanes);
    visit("columns", &TokensConfig::columns);
    visit("rows", &TokensConfig::rows);
    visit("sub_group", &TokensConfig::sub_group);
  }
  constexpr int work_items() const { return lanes; }
  constexpr int sub_group_size() const { return sub_group; }
  constexpr int block() const { return lanes * columns; }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && rows > 0; }
};

/// Launched over (batch, ceil(tokens / rows), 1) work-groups.
struct AssembleTokensArguments {
  const void* embedded;
  const void* bias;
  const void* positions;
  const void* class_token;  ///< null: none
  void* out;
  int tokens;
  int width;
};

/// T: the type of the tokens; P: that of the parameters.
template <class T, class P, TokensConfig config>
struct AssembleTokens {
  using Arguments = AssembleTokensArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    const int skip = args.class_token != nullptr ? 1 : 0;
    const std::int64_t image = group_of(item, 0);
    const int first = static_cast<int>(group_of(item, 1)) * config.rows;
    const int end = first + config.rows < args.tokens ? first + config.rows : args.tokens;
    const P* bias = static_cast<const P*>(args.bias);
    for (int token = first; token < end; ++token) {
      const P* position = static_cast<const P*>(args.positions) + static_cast<std::int64_t>(token) * args.width;
      T* to = static_cast<T*>(args.out) + (image * args.tokens + token) * args.width;
      if (token < skip) {
        const P* from = static_cast<const P*>(args.class_token);
        each_column<config.lanes, config.columns>(0, args.width, lane, [&](int /*x*/, int c) {
          to[c] = static_cast<T>(static_cast<float>(from[c]) + static_cast<float>(position[c]));
        });
      } else {
        const T* from =
            static_cast<const T*>(args.embedded) + (image * (args.tokens - skip) + token - skip) * args.width;
        each_column<config.lanes, config.columns>(0, args.width, lane, [&](int /*x*/, int c) {
          to[c] = static_cast<T>(static_cast<float>(from[c]) + static_cast<float>(bias[c]) +
                                 static_cast<float>(position[c]));
        });
      }
    }
  }
};

struct AssembleTokensKernel : Description<TokensConfig, AssembleTokensArguments, Parameters::type_parameters> {
  static constexpr const char *header = "tokens.hpp", *functor = "AssembleTokens",
                              *arguments = "AssembleTokensArguments";
};

/// Launched over (1, ceil(tokens / rows), ceil(width / block)) work-groups.
struct AssembleTokensBackwardArguments {
  const void* gradient;
  void* embedded_gradient;    ///< null: not wanted
  float* positions_gradient;  ///< null: not wanted
  float* class_gradient;      ///< null: not wanted
  int batch;
  int tokens;
  int width;
  int skip;  ///< 1 with a class token, else 0
};

template <class T, TokensConfig config>
struct AssembleTokensBackward {
  using Arguments = AssembleTokensBackwardArguments;
  static_assert(config.valid());

  /// One token's columns; `whole`: the block ends inside the row.
  template <bool whole>
  [[gnu::always_inline]] static void columns_of(const Arguments& args, int token, int column0, int lane) {
    const int left = args.width - column0;
    const T* from = static_cast<const T*>(args.gradient) + static_cast<std::int64_t>(token) * args.width + column0;
    const bool copies = args.embedded_gradient != nullptr && token >= args.skip;
    T* to = static_cast<T*>(args.embedded_gradient) +
            (copies ? static_cast<std::int64_t>(token - args.skip) * args.width + column0 : 0);
    const std::int64_t from_step = static_cast<std::int64_t>(args.tokens) * args.width;
    const std::int64_t to_step = static_cast<std::int64_t>(args.tokens - args.skip) * args.width;
    float sums[config.columns] = {};
    for (int image = 0; image < args.batch; ++image, from += from_step) {
#pragma unroll
      for (int x = 0; x < config.columns; ++x) {
        const int c = x * config.lanes + lane;
        if (whole || c < left) sums[x] += static_cast<float>(from[c]);
      }
      if (copies) {
#pragma unroll
        for (int x = 0; x < config.columns; ++x) {
          const int c = x * config.lanes + lane;
          if (whole || c < left) to[c] = from[c];
        }
        to += to_step;
      }
    }
    const auto store = [&](float* out) {
#pragma unroll
      for (int x = 0; x < config.columns; ++x) {
        const int c = x * config.lanes + lane;
        if (whole || c < left) out[column0 + c] = sums[x];
      }
    };
    if (args.positions_gradient != nullptr)
      store(args.positions_gradient + static_cast<std::int64_t>(token) * args.width);
    if (args.class_gradient != nullptr && token == 0) store(args.class_gradient);
  }

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    const int first = static_cast<int>(group_of(item, 1)) * config.rows;
    const int end = first + config.rows < args.tokens ? first + config.rows : args.tokens;
    const int column0 = static_cast<int>(group_of(item, 2)) * config.block();
    if (column0 + config.block() <= args.width)
      for (int token = first; token < end; ++token) columns_of<true>(args, token, column0, lane);
    else
      for (int token = first; token < end; ++token) columns_of<false>(args, token, column0, lane);
  }
};

struct AssembleTokensBackwardKernel : Description<TokensConfig, AssembleTokensBackwardArguments, Parameters::type> {
  static constexpr const char *header = "tokens.hpp", *functor = "AssembleTokensBackward",
                              *arguments = "AssembleTokensBackwardArguments";
};

/// Launched over (batch, 1, ceil(width / block)) work-groups.
struct PoolAverageArguments {
  const void* in;
  void* out;
  int tokens;
  int width;
  int skip;  ///< tokens at the front that do not count
};

template <class T, TokensConfig config>
struct PoolAverage {
  using Arguments = PoolAverageArguments;
  static_assert(config.valid());

  template <bool whole>
  [[gnu::always_inline]] static void columns_of(const Arguments& args, std::int64_t image, int column0, int lane) {
    const int left = args.width - column0;
    const T* from = static_cast<const T*>(args.in) + (image * args.tokens + args.skip) * args.width + column0;
    float sums[config.columns] = {};
    for (int token = args.skip; token < args.tokens; ++token, from += args.width)
#pragma unroll
      for (int x = 0; x < config.columns; ++x) {
        const int c = x * config.lanes + lane;
        if (whole || c < left) sums[x] += static_cast<float>(from[c]);
      }
    T* to = static_cast<T*>(args.out) + image * args.width + column0;
    const auto count = static_cast<float>(args.tokens - args.skip);
#pragma unroll
    for (int x = 0; x < config.columns; ++x) {
      const int c = x * config.lanes + lane;
      if (whole || c < left) to[c] = static_cast<T>(sums[x] / count);
    }
  }

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int column0 = static_cast<int>(group_of(item, 2)) * config.block();
    if (column0 + config.block() <= args.width)
      columns_of<true>(args, group_of(item, 0), column0, lane_of(item));
    else
      columns_of<false>(args, group_of(item, 0), column0, lane_of(item));
  }
};

struct PoolAverageKernel : Description<TokensConfig, PoolAverageArguments, Parameters::type> {
  static constexpr const char *header = "tokens.hpp", *functor = "PoolAverage", *arguments = "PoolAverageArguments";
};

/// Launched over (batch, ceil(tokens / rows), 1) work-groups. Tokens of [begin, end) get factor d_pooled, the others 0.
struct PoolBackwardArguments {
  const void* pooled_gradient;
  void* gradient;
  int tokens;
  int width;
  int begin;
  int end;
  float factor;
};

template <class T, TokensConfig config>
struct PoolBackward {
  using Arguments = PoolBackwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    const std::int64_t image = group_of(item, 0);
    const int first = static_cast<int>(group_of(item, 1)) * config.rows;
    const int end = first + config.rows < args.tokens ? first + config.rows : args.tokens;
    const T* from = static_cast<const T*>(args.pooled_gradient) + image * args.width;
    for (int token = first; token < end; ++token) {
      T* to = static_cast<T*>(args.gradient) + (image * args.tokens + token) * args.width;
      if (token >= args.begin && token < args.end)
        each_column<config.lanes, config.columns>(0, args.width, lane, [&](int /*x*/, int c) {
          to[c] = static_cast<T>(static_cast<float>(from[c]) * args.factor);
        });
      else
        each_column<config.lanes, config.columns>(0, args.width, lane,
                                                  [&](int /*x*/, int c) { to[c] = static_cast<T>(0.0F); });
    }
  }
};

struct PoolBackwardKernel : Description<TokensConfig, PoolBackwardArguments, Parameters::type> {
  static constexpr const char *header = "tokens.hpp", *functor = "PoolBackward", *arguments = "PoolBackwardArguments";
};

}  // namespace sylvit::kernels
