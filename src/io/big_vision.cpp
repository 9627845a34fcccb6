#include "io/big_vision.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/counts.hpp"
#include "io/elements.hpp"
#include "io/messages.hpp"

namespace sylvit::io {

namespace {

using base::most_blocks;

/// What kind of parameter an array is, by its axes in flax and in timm.
enum class Kind : std::uint8_t {
  vector,        ///< [n], the same
  token_rows,    ///< [1, n, width], the same
  dense,         ///< [in, out] to [out, in]
  into_heads,    ///< [in, heads, size] to [heads x size, in]
  heads_bias,    ///< [heads, size] to [heads x size]
  out_of_heads,  ///< [heads, size, out] to [out, heads x size]
  patches        ///< [height, width, channels, out] to [out, channels, height, width]
};

std::size_t rank_of(Kind kind) {
  switch (kind) {
    case Kind::vector:
      return 1;
    case Kind::dense:
    case Kind::heads_bias:
      return 2;
    case Kind::patches:
      return 4;
    default:
      return 3;
  }
}

/// Where a block's arrays are: under a path of their own, or at one index of the leading axis that all blocks share.
struct Place {
  std::string path;
  std::optional<std::int64_t> index;
};

/// Goes through the parameters that a model can have, in timm's order, and notes how each is made.
class Mapping {
 public:
  explicit Mapping(const NpzFile& file) : file_(file), prefix_(prefix()) {}

  void run() {
    const Place top{"", std::nullopt};
    const bool has_class = has("cls");
    if (has_class) add("cls_token", Kind::token_rows, {"cls"}, top);
    for (const char* name : {"pos_embedding", "Transformer/posembed_input/pos_embedding"})
      if (has(name)) add_positions(name, has_class);
    add("patch_embed.proj.weight", Kind::patches, {"embedding/kernel"}, top);
    add("patch_embed.proj.bias", Kind::vector, {"embedding/bias"}, top);
    add_blocks();
    add_norm("norm", "Transformer/encoder_norm", top);
    if (has("MAPHead_0/probe")) {
      const Place map{"MAPHead_0/", std::nullopt};
      const std::string attention = "MultiHeadDotProductAttention_0/";
      add("attn_pool.latent", Kind::token_rows, {"probe"}, map);
      add_heads("attn_pool.q", attention, {"query"}, map);
      add_heads("attn_pool.kv", attention, {"key", "value"}, map);
      add_projection("attn_pool.proj", attention, map);
      add_norm("attn_pool.norm", "LayerNorm_0", map);
      add_mlp("attn_pool.mlp", "MlpBlock_0", map);
    }
    if (has("head/kernel")) add_linear("head", "head", top);
    for (const std::string& name : file_.names())
      if (name.starts_with(prefix_) && !taken_.contains(name))
        throw Error(file_.name() + ": member " + in_quotes(name) + " is no parameter that is understood",
                    "Vision Transformers of big_vision are, without further parts such as pre_logits");
  }

  std::vector<TensorInfo> tensors;
  std::vector<TensorRecipe> recipes;
  std::int64_t heads = 0;

 private:
  std::string prefix() const {
    for (const char* known : {"opt/target/", "params/", "params/img/", ""})
      if (file_.contains(std::string(known) + "embedding/kernel")) return known;
    std::string holds;
    for (std::size_t i = 0; i < std::min<std::size_t>(file_.names().size(), 4); ++i)
      add_to_list(holds, in_quotes(file_.names()[i]));
    throw Error(file_.name() + " holds no Vision Transformer of big_vision: there is no embedding/kernel",
                "it holds " + (holds.empty() ? "nothing" : holds + (file_.names().size() > 4 ? ", …" : "")));
  }

  bool has(const std::string& name) const { return file_.contains(prefix_ + name); }
  bool has_any_below(const std::string& path) const {
    const auto found = std::lower_bound(file_.names().begin(), file_.names().end(), prefix_ + path);
    return found != file_.names().end() && found->starts_with(prefix_ + path);
  }

  /// The array's header, read once.
  const NpzArray& take(const std::string& name) {
    const auto found = taken_.find(prefix_ + name);
    if (found != taken_.end()) return found->second;
    const NpzArray array = file_.array(prefix_ + name);
    if (!is_floating(array.header.dtype))
      fail(name, "has elements of type " + std::string(name_of(array.header.dtype)) +
                     ", and parameters are floating-point numbers");
    return taken_.emplace(prefix_ + name, array).first->second;
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error(file_.name() + ": member " + in_quotes(prefix_ + name) + " " + what);
  }

  /// One block's part of an array, and its shape.
  std::pair<TensorPart, Shape> part(const std::string& name, const Place& place, std::size_t rank) {
    TensorPart result;
    result.array = take(name);
    const Shape& shape = result.array.header.shape;
    const std::size_t shared = place.index ? 1 : 0;
    if (shape.rank() != rank + shared)
      fail(name, "is " + shape.text() + ", and must have " + std::to_string(rank + shared) + " axes");
    if (shape.elements() == 0) fail(name, "is " + shape.text() + ": it has no elements");
    if (place.index && shape[0] != depth_)
      fail(name, "is " + shape.text() + ", and the model has " + std::to_string(depth_) + " blocks");
    const Shape own(shape.extents().subspan(shared));
    result.first = place.index.value_or(0) * own.elements();
    return {result, own};
  }

  /// All attention has the same heads.
  void check_heads(const std::string& name, std::int64_t count, std::int64_t size) {
    if (heads == 0) {
      heads = count;
      head_size_ = size;
    }
    if (count != heads || size != head_size_)
      fail(name, "has " + std::to_string(count) + " heads of " + std::to_string(size) + ", and others have " +
                     std::to_string(heads) + " of " + std::to_string(head_size_));
  }

  /// The shape that an array has in timm, and how its elements get there.
  Shape arrange(TensorPart& part, const std::string& name, Kind kind, const Shape& shape) {
    switch (kind) {
      case Kind::vector:
      case Kind::token_rows:
        part.axes[0] = shape.elements();
        return shape;
      case Kind::heads_bias:
        check_heads(name, shape[0], shape[1]);
        part.axes[0] = shape.elements();
        return {shape.elements()};
      case Kind::dense:
        part.axes = {shape[0], 1, shape[1]};
        break;
      case Kind::into_heads:
        check_heads(name, shape[1], shape[2]);
        part.axes = {shape[0], 1, shape[1] * shape[2]};
        break;
      case Kind::out_of_heads:
        check_heads(name, shape[0], shape[1]);
        part.axes = {shape[0] * shape[1], 1, shape[2]};
        break;
      case Kind::patches:
        part.axes = {shape[0] * shape[1], shape[2], shape[3]};
        return {shape[3], shape[2], shape[0], shape[1]};
    }
    return {part.axes[2], part.axes[0]};
  }

  /// A tensor of one or more arrays of a kind, one after the other.
  void add(const std::string& tensor, Kind kind, const std::vector<std::string>& names, const Place& place) {
    TensorRecipe recipe;
    Shape shape;
    for (const std::string& name : names) {
      const std::string full = place.path + name;
      auto [next, own] = part(full, place, rank_of(kind));
      const Shape arranged = arrange(next, full, kind, own);
      if (recipe.parts.empty()) {
        shape = arranged;
      } else if (arranged != shape || next.array.header.dtype != recipe.parts.front().array.header.dtype) {
        fail(full,
             "is " + described(next.array) + ", and " + names.front() + " is " + described(recipe.parts.front().array));
      }
      recipe.parts.push_back(next);
    }
    std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
    extents.front() *= static_cast<std::int64_t>(names.size());
    const DType dtype = recipe.parts.front().array.header.dtype;
    note(tensor, dtype, Shape(extents), std::move(recipe));
  }

  static std::string described(const NpzArray& array) {
    return std::string(name_of(array.header.dtype)) + " " + array.header.shape.text();
  }

  void note(const std::string& tensor, DType dtype, const Shape& shape, TensorRecipe recipe) {
    const std::uint64_t begin = tensors.empty() ? 0 : tensors.back().end;
    tensors.push_back(
        {tensor, dtype, shape, begin, begin + static_cast<std::uint64_t>(shape.elements()) * size_of(dtype)});
    recipes.push_back(std::move(recipe));
  }

  void add_linear(const std::string& tensor, const std::string& name, const Place& place) {
    add(tensor + ".weight", Kind::dense, {name + "/kernel"}, place);
    add(tensor + ".bias", Kind::vector, {name + "/bias"}, place);
  }

  void add_norm(const std::string& tensor, const std::string& name, const Place& place) {
    add(tensor + ".weight", Kind::vector, {name + "/scale"}, place);
    add(tensor + ".bias", Kind::vector, {name + "/bias"}, place);
  }

  void add_mlp(const std::string& tensor, const std::string& name, const Place& place) {
    add_linear(tensor + ".fc1", name + "/Dense_0", place);
    add_linear(tensor + ".fc2", name + "/Dense_1", place);
  }

  void add_heads(const std::string& tensor, const std::string& attention, const std::vector<std::string>& which,
                 const Place& place) {
    std::vector<std::string> kernels;
    std::vector<std::string> biases;
    for (const std::string& one : which) {
      kernels.push_back(attention + one + "/kernel");
      biases.push_back(attention + one + "/bias");
    }
    add(tensor + ".weight", Kind::into_heads, kernels, place);
    add(tensor + ".bias", Kind::heads_bias, biases, place);
  }

  void add_projection(const std::string& tensor, const std::string& attention, const Place& place) {
    add(tensor + ".weight", Kind::out_of_heads, {attention + "out/kernel"}, place);
    add(tensor + ".bias", Kind::vector, {attention + "out/bias"}, place);
  }

  /// Flax's norm of queries or keys, which has no bias; with its name in flax or another that is in use.
  void add_head_norm(const std::string& tensor, const std::string& name, const Place& place) {
    for (const char* ending : {"_ln", "_norm"}) {
      if (!has(place.path + name + ending + "/scale")) continue;
      add(tensor + ".weight", Kind::vector, {name + ending + "/scale"}, place);
      const TensorInfo weight = tensors.back();
      if (has(place.path + name + ending + "/bias"))
        add(tensor + ".bias", Kind::vector, {name + ending + "/bias"}, place);
      else
        note(tensor + ".bias", weight.dtype, weight.shape, {weight.shape.elements(), {}});
      return;
    }
  }

  /// Positions with or without one for the class token. big_vision adds the class token after them: it has position 0
  /// then. As in big_vision, what is one more than a square has one.
  void add_positions(const std::string& name, bool has_class) {
    add("pos_embed", Kind::token_rows, {name}, {"", std::nullopt});
    TensorInfo& info = tensors.back();
    if (!has_class || info.shape[0] != 1) return;
    const std::int64_t patches = info.shape[1] - 1;
    const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
    if (patches > 0 && side * side == patches) return;
    recipes.back().zeros = info.shape[2];
    info.shape = {1, info.shape[1] + 1, info.shape[2]};
    info.end += static_cast<std::uint64_t>(info.shape[2]) * size_of(info.dtype);
  }

  void add_blocks() {
    const std::string shared = "Transformer/encoderblock/";
    const auto own = [](std::int64_t block) { return "Transformer/encoderblock_" + std::to_string(block) + "/"; };
    const bool is_shared = has_any_below(shared);
    if (is_shared) {
      const Shape& shape = take(shared + "LayerNorm_0/scale").header.shape;
      depth_ = shape.rank() == 0 ? 0 : shape[0];
    } else {
      while (depth_ <= most_blocks && has_any_below(own(depth_))) ++depth_;
    }
    if (depth_ < 1 || depth_ > most_blocks)
      throw Error(file_.name() + ": it has " + (depth_ < 1 ? "no" : std::to_string(depth_)) +
                  " blocks, and must have 1 to " + std::to_string(most_blocks));
    for (std::int64_t block = 0; block < depth_; ++block)
      add_block("blocks." + std::to_string(block), is_shared ? Place{shared, block} : Place{own(block), std::nullopt});
  }

  void add_block(const std::string& tensor, const Place& place) {
    // The predecessor numbered all modules of a block together.
    const bool old_norm = has(place.path + "LayerNorm_2/scale");
    const bool old_attention = has(place.path + "MultiHeadDotProductAttention_1/query/kernel");
    const bool old_mlp = has(place.path + "MlpBlock_3/Dense_0/kernel");
    const std::string attention = std::string("MultiHeadDotProductAttention_") + (old_attention ? "1/" : "0/");
    add_norm(tensor + ".norm1", "LayerNorm_0", place);
    add_heads(tensor + ".attn.qkv", attention, {"query", "key", "value"}, place);
    add_head_norm(tensor + ".attn.q_norm", attention + "query", place);
    add_head_norm(tensor + ".attn.k_norm", attention + "key", place);
    add_projection(tensor + ".attn.proj", attention, place);
    add_norm(tensor + ".norm2", old_norm ? "LayerNorm_2" : "LayerNorm_1", place);
    add_mlp(tensor + ".mlp", old_mlp ? "MlpBlock_3" : "MlpBlock_0", place);
  }

  const NpzFile& file_;
  std::string prefix_;
  std::map<std::string, NpzArray> taken_;
  std::int64_t depth_ = 0;
  std::int64_t head_size_ = 0;
};

/// [a, b, c] to [c, b, a], in squares that stay in the cache.
void append_reversed(const std::vector<float>& from, const std::array<std::int64_t, 3>& axes,
                     std::vector<float>& result) {
  constexpr std::int64_t side = 16;
  const auto [a, b, c] = axes;
  const std::size_t begin = result.size();
  result.resize(begin + from.size());
  float* to = result.data() + begin;
  for (std::int64_t first_k = 0; first_k < c; first_k += side)
    for (std::int64_t first_i = 0; first_i < a; first_i += side)
      for (std::int64_t j = 0; j < b; ++j)
        for (std::int64_t k = first_k; k < std::min(c, first_k + side); ++k)
          for (std::int64_t i = first_i; i < std::min(a, first_i + side); ++i)
            to[(k * b + j) * a + i] = from[static_cast<std::size_t>((i * b + j) * c + k)];
}

}  // namespace

BigVisionFile::BigVisionFile(NpzFile file) : file_(std::move(file)) {
  Mapping mapping(file_);
  mapping.run();
  tensors_ = TensorList(std::move(mapping.tensors), file_.name());
  recipes_ = std::move(mapping.recipes);
  heads_ = mapping.heads;
}

std::vector<float> BigVisionFile::read_f32(std::string_view tensor, const std::optional<Shape>& expected) const {
  const TensorInfo& info = at(tensor, expected);
  const TensorRecipe& recipe = recipes_[static_cast<std::size_t>(&info - tensors().data())];
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(info.shape.elements()));
  result.resize(static_cast<std::size_t>(recipe.zeros));
  for (const TensorPart& part : recipe.parts) {
    const auto [a, b, c] = part.axes;
    append_reversed(file_.read_f32(part.array, part.first, a * b * c), part.axes, result);
  }
  return result;
}

}  // namespace sylvit::io
