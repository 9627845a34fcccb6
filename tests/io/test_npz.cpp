// Checkpoints of big_vision: every layout gives timm's tensors, and no file, however broken, does more than be refused
// with a sentence.
#include <sylvit/error.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "io/elements.hpp"
#include "io/npz_writer.hpp"
#include "io/weights_file.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::io::NpzArray;
using sylvit::io::NpzFile;
using sylvit::io::WeightsFile;
using sylvit::test::check_contains;
using sylvit::test::npy_dict;
using sylvit::test::npy_f32;
using sylvit::test::npy_of;
using sylvit::test::npz_of;

namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

// Sizes that are all different, so that no two axes can be taken for each other.
constexpr std::int64_t heads = 2;
constexpr std::int64_t head_size = 3;
constexpr std::int64_t width = heads * head_size;
constexpr std::int64_t hidden = 5;
constexpr std::int64_t patch_height = 2;
constexpr std::int64_t patch_width = 4;
constexpr std::int64_t channels = 3;
constexpr std::int64_t classes = 7;
constexpr std::int64_t depth = 2;

struct Layout {
  std::string prefix;
  bool old = false;
  bool scanned = false;
  bool deflated = false;
  std::string query_norm;  // "query_ln", …
  bool norm_bias = false;
  bool map = false;
  bool has_class = true;
  std::int64_t positions = 5;
};

/// A model's parameters as flax has them, each number its own.
class Flax {
 public:
  explicit Flax(const Layout& layout) : layout_(layout) {
    add("embedding/kernel", {patch_height, patch_width, channels, width});
    add("embedding/bias", {width});
    if (layout.has_class) add("cls", {1, 1, width});
    add(positions(), {1, layout.positions, width});
    for (std::int64_t block = 0; block < depth; ++block) {
      const std::string path = "Transformer/encoderblock_" + std::to_string(block) + "/";
      add_norm(path + "LayerNorm_0");
      add_norm(path + norm2());
      add_attention(path + attention());
      if (!layout.query_norm.empty()) {
        const std::string key_norm = "key" + layout.query_norm.substr(5);
        for (const std::string& name : {layout.query_norm, key_norm}) {
          add(path + attention() + name + "/scale", {head_size});
          if (layout.norm_bias) add(path + attention() + name + "/bias", {head_size});
        }
      }
      add_mlp(path + mlp());
    }
    add_norm("Transformer/encoder_norm");
    if (layout.map) {
      add("MAPHead_0/probe", {1, 1, width});
      add_attention("MAPHead_0/MultiHeadDotProductAttention_0/");
      add_norm("MAPHead_0/LayerNorm_0");
      add_mlp("MAPHead_0/MlpBlock_0");
    }
    add("head/kernel", {width, classes});
    add("head/bias", {classes});
  }

  std::string positions() const { return layout_.old ? "Transformer/posembed_input/pos_embedding" : "pos_embedding"; }
  std::string norm2() const { return layout_.old ? "LayerNorm_2" : "LayerNorm_1"; }
  std::string attention() const {
    return layout_.old ? "MultiHeadDotProductAttention_1/" : "MultiHeadDotProductAttention_0/";
  }
  std::string mlp() const { return layout_.old ? "MlpBlock_3" : "MlpBlock_0"; }

  float at(const std::string& name, const std::vector<std::int64_t>& indices) const {
    const Array& array = arrays_.at(name);
    REQUIRE(indices.size() == array.shape.size());
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) position = position * array.shape[axis] + indices[axis];
    return array.values.at(static_cast<std::size_t>(position));
  }

  Members members() const {
    Members result;
    const std::string first = "Transformer/encoderblock_0/";
    for (const auto& [name, array] : arrays_) {
      if (!layout_.scanned || !name.starts_with("Transformer/encoderblock_")) {
        result.emplace_back(layout_.prefix + name, npy_f32(array.shape, array.values));
      } else if (name.starts_with(first)) {
        std::vector<float> values = array.values;
        const std::vector<float>& second = arrays_.at("Transformer/encoderblock_1/" + name.substr(first.size())).values;
        values.insert(values.end(), second.begin(), second.end());
        std::vector<std::int64_t> shape = array.shape;
        shape.insert(shape.begin(), depth);
        result.emplace_back(layout_.prefix + "Transformer/encoderblock/" + name.substr(first.size()),
                            npy_f32(shape, values));
      }
    }
    return result;
  }
  std::string file() const { return npz_of(members(), layout_.deflated); }

 private:
  struct Array {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    Array& array = arrays_[name];
    array.shape = shape;
    for (std::int64_t i = 0; i < count; ++i) array.values.push_back(next_++);
  }
  void add_norm(const std::string& name) {
    add(name + "/scale", {width});
    add(name + "/bias", {width});
  }
  void add_attention(const std::string& path) {
    for (const char* name : {"query", "key", "value"}) {
      add(path + name + "/kernel", {width, heads, head_size});
      add(path + name + "/bias", {heads, head_size});
    }
    add(path + "out/kernel", {heads, head_size, width});
    add(path + "out/bias", {width});
  }
  void add_mlp(const std::string& name) {
    add(name + "/Dense_0/kernel", {width, hidden});
    add(name + "/Dense_0/bias", {hidden});
    add(name + "/Dense_1/kernel", {hidden, width});
    add(name + "/Dense_1/bias", {width});
  }

  Layout layout_;
  std::map<std::string, Array> arrays_;
  float next_ = 1;
};

/// Compares the tensors of a file with flax's parameters, index by index, and counts them.
class Comparison {
 public:
  Comparison(const WeightsFile& file, const Flax& flax) : file_(file), flax_(flax) {}

  void tensor(const std::string& name, const Shape& shape,
              const std::function<float(std::int64_t row, std::int64_t column)>& expected) {
    CAPTURE(name);
    ++count_;
    const std::vector<float> values = file_.read_f32(name, shape);
    const std::int64_t rows = shape[0];
    const std::int64_t columns = shape.elements() / rows;
    bool equal = static_cast<std::int64_t>(values.size()) == shape.elements();
    for (std::int64_t i = 0; equal && i < shape.elements(); ++i)
      equal = values[static_cast<std::size_t>(i)] == expected(i / columns, i % columns);
    CHECK(equal);
  }
  void vector(const std::string& name, const std::string& from, std::int64_t size) {
    tensor(name, {size}, [&](std::int64_t i, std::int64_t) { return flax_.at(from, {i}); });
  }
  void norm(const std::string& name, const std::string& from, std::int64_t size = width) {
    vector(name + ".weight", from + "/scale", size);
    vector(name + ".bias", from + "/bias", size);
  }
  void linear(const std::string& name, const std::string& from, std::int64_t out, std::int64_t in) {
    tensor(name + ".weight", {out, in}, [&](std::int64_t o, std::int64_t i) {
      return flax_.at(from + "/kernel", {i, o});
    });
    vector(name + ".bias", from + "/bias", out);
  }
  void mlp(const std::string& name, const std::string& from) {
    linear(name + ".fc1", from + "/Dense_0", hidden, width);
    linear(name + ".fc2", from + "/Dense_1", width, hidden);
  }
  void into_heads(const std::string& name, const std::string& from, const std::vector<std::string>& which) {
    const auto count = static_cast<std::int64_t>(which.size());
    const auto part = [&](std::int64_t row) { return from + which[static_cast<std::size_t>(row / width)]; };
    tensor(name + ".weight", {count * width, width}, [&](std::int64_t row, std::int64_t in) {
      return flax_.at(part(row) + "/kernel", {in, row % width / head_size, row % head_size});
    });
    tensor(name + ".bias", {count * width}, [&](std::int64_t row, std::int64_t) {
      return flax_.at(part(row) + "/bias", {row % width / head_size, row % head_size});
    });
  }
  void out_of_heads(const std::string& name, const std::string& from) {
    tensor(name + ".weight", {width, width}, [&](std::int64_t out, std::int64_t in) {
      return flax_.at(from + "out/kernel", {in / head_size, in % head_size, out});
    });
    vector(name + ".bias", from + "out/bias", width);
  }
  void model(const Layout& layout) {
    if (layout.has_class)
      tensor("cls_token", {1, 1, width}, [&](std::int64_t, std::int64_t i) { return flax_.at("cls", {0, 0, i}); });
    // Behind four positions without one for the class token comes none; in front of them comes a zero.
    const std::int64_t zeros = layout.has_class && layout.positions != 5 ? 1 : 0;
    tensor("pos_embed", {1, layout.positions + zeros, width}, [&](std::int64_t, std::int64_t i) {
      const std::int64_t token = i / width - zeros;
      return token < 0 ? 0.0F : flax_.at(flax_.positions(), {0, token, i % width});
    });
    tensor("patch_embed.proj.weight", {width, channels, patch_height, patch_width},
           [&](std::int64_t out, std::int64_t i) {
             const std::int64_t y = i / patch_width % patch_height;
             return flax_.at("embedding/kernel", {y, i % patch_width, i / (patch_width * patch_height), out});
           });
    vector("patch_embed.proj.bias", "embedding/bias", width);
    for (std::int64_t block = 0; block < depth; ++block) {
      const std::string name = "blocks." + std::to_string(block);
      const std::string from = "Transformer/encoderblock_" + std::to_string(block) + "/";
      norm(name + ".norm1", from + "LayerNorm_0");
      into_heads(name + ".attn.qkv", from + flax_.attention(), {"query", "key", "value"});
      if (!layout.query_norm.empty()) {
        head_norm(name + ".attn.q_norm", from + flax_.attention() + layout.query_norm, layout.norm_bias);
        head_norm(name + ".attn.k_norm", from + flax_.attention() + "key" + layout.query_norm.substr(5),
                  layout.norm_bias);
      }
      out_of_heads(name + ".attn.proj", from + flax_.attention());
      norm(name + ".norm2", from + flax_.norm2());
      mlp(name + ".mlp", from + flax_.mlp());
    }
    norm("norm", "Transformer/encoder_norm");
    if (layout.map) {
      const std::string attention = "MAPHead_0/MultiHeadDotProductAttention_0/";
      tensor("attn_pool.latent", {1, 1, width}, [&](std::int64_t, std::int64_t i) {
        return flax_.at("MAPHead_0/probe", {0, 0, i});
      });
      into_heads("attn_pool.q", attention, {"query"});
      into_heads("attn_pool.kv", attention, {"key", "value"});
      out_of_heads("attn_pool.proj", attention);
      norm("attn_pool.norm", "MAPHead_0/LayerNorm_0");
      mlp("attn_pool.mlp", "MAPHead_0/MlpBlock_0");
    }
    linear("head", "head", classes, width);
    CHECK(file_.tensors().size() == count_);
    CHECK(file_.heads() == heads);
  }

 private:
  void head_norm(const std::string& name, const std::string& from, bool has_bias) {
    if (has_bias) return norm(name, from, head_size);
    vector(name + ".weight", from + "/scale", head_size);
    tensor(name + ".bias", {head_size}, [](std::int64_t, std::int64_t) { return 0.0F; });
  }

  const WeightsFile& file_;
  const Flax& flax_;
  std::size_t count_ = 0;
};

/// Uses a copy that ends where its memory ends, so that ASan sees any read beyond.
template <class Use>
auto with_exact_copy(const std::string& file, Use use) {
  const auto copy = std::make_unique<std::byte[]>(file.size());
  std::memcpy(copy.get(), file.data(), file.size());
  return use(std::span<const std::byte>(copy.get(), file.size()));
}

template <class Use>
auto with_weights(const std::string& file, Use use) {
  return with_exact_copy(file, [&](auto bytes) { return use(WeightsFile::parse(bytes, "test.npz")); });
}

template <class Use>
auto with_npz(const std::string& file, Use use) {
  return with_exact_copy(file, [&](auto bytes) { return use(NpzFile::parse(bytes, "test.npz")); });
}

std::vector<float> whole(const NpzFile& file, const std::string& name) {
  const NpzArray array = file.array(name);
  return file.read_f32(array, 0, array.header.shape.elements());
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

/// Opens a file of weights and reads all of it.
std::string refusal(const std::string& file) {
  return refusal([&] {
    with_weights(file, [](const WeightsFile& weights) {
      for (const io::TensorInfo& info : weights.tensors()) {
        const std::vector<float> values = weights.read_f32(info.name);
        REQUIRE(static_cast<std::int64_t>(values.size()) == info.shape.elements());
      }
    });
  });
}

/// Why one array of these bytes is refused.
std::string array_refusal(const std::string& npy) {
  return refusal([&] { with_npz(npz_of({{"a", npy}}), [](const NpzFile& file) { whole(file, "a"); }); });
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string& member(Members& members, const std::string& name) {
  for (auto& [known, content] : members)
    if (known == name) return content;
  FAIL("no member " << name);
  return members.front().second;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

/// A zip file of one stored member whose sizes and offset all stand in zip64 fields, as in a file of many gigabytes.
/// Its sizes are said to be larger by `more`.
std::string zip64_of(const std::string& name, const std::string& content, std::uint64_t more = 0) {
  const std::string all_ones = "\xff\xff\xff\xff";
  const std::uint64_t size = content.size() + more;
  const auto header = [&](std::uint16_t extra_bytes) {
    return little<std::uint16_t>(45) + std::string(8, '\0') + little(crc32(content)) + all_ones + all_ones +
           little(static_cast<std::uint16_t>(name.size())) + little(extra_bytes);
  };
  std::string file = "PK\x03\x04" + header(20) + name + little<std::uint16_t>(1) + little<std::uint16_t>(16) +
                     little(size) + little(size) + content;
  const std::uint64_t directory = file.size();
  file += "PK\x01\x02" + little<std::uint16_t>(45) + header(28) + std::string(10, '\0') + all_ones + name +
          little<std::uint16_t>(1) + little<std::uint16_t>(24) + little(size) + little(size) + little<std::uint64_t>(0);
  const std::uint64_t end = file.size();
  file += "PK\x06\x06" + little<std::uint64_t>(44) + little<std::uint16_t>(45) + little<std::uint16_t>(45) +
          std::string(8, '\0') + little<std::uint64_t>(1) + little<std::uint64_t>(1) + little(end - directory) +
          little(directory);
  file += "PK\x06\x07" + std::string(4, '\0') + little(end) + little<std::uint32_t>(1);
  return file + "PK\x05\x06" + std::string(4, '\0') + "\xff\xff\xff\xff" + all_ones + all_ones + std::string(2, '\0');
}

/// One to four random changes of the kind that files suffer or attackers make.
void mutate(std::string& text, std::mt19937& random) {
  for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
    if (text.empty()) text = "x";
    const std::size_t at = random() % text.size();
    const std::size_t kind = random() % 6;
    const auto number = static_cast<std::uint32_t>(random());
    const auto any = static_cast<char>(number >> 8);
    if (kind == 0) {
      text[at] = any;
    } else if (kind == 1) {
      text[at] = static_cast<char>(text[at] ^ (1 << number % 8));
    } else if (kind == 2) {
      text.resize(at);
    } else if (kind == 3) {
      text.insert(at, number % 9, any);
    } else if (kind == 4) {
      text.erase(at, number % 9);
    } else if (const std::size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos) {
      text[digit] = static_cast<char>('0' + number % 10);  // so that numbers disagree while the dict stays a dict
    }
  }
}

}  // namespace

TEST_SUITE("io/npz") {
  TEST_CASE("every layout gives timm's tensors") {
    std::vector<Layout> layouts;
    for (const char* prefix : {"", "params/", "params/img/", "opt/target/"})
      for (const bool old : {false, true})
        for (const bool scanned : {false, true})
          for (const bool deflated : {false, true}) {
            Layout layout;
            layout.prefix = prefix;
            layout.old = old;
            layout.scanned = scanned;
            layout.deflated = deflated;
            layouts.push_back(layout);
          }
    for (const char* name : {"query_ln", "query_norm"})
      for (const bool norm_bias : {false, true}) {
        Layout layout;
        layout.query_norm = name;
        layout.norm_bias = norm_bias;
        layout.scanned = norm_bias;
        layouts.push_back(layout);
      }
    Layout map;
    map.map = true;
    map.has_class = false;
    map.positions = 4;
    layouts.push_back(map);
    // The class token's position is missing: four, and six (two by three), positions are those of patches.
    for (const std::int64_t positions : {4, 6}) {
      Layout layout;
      layout.positions = positions;
      layouts.push_back(layout);
    }
    for (const Layout& layout : layouts) {
      CAPTURE(layout.prefix);
      CAPTURE(layout.old);
      CAPTURE(layout.scanned);
      CAPTURE(layout.deflated);
      const Flax flax(layout);
      with_weights(flax.file(), [&](const WeightsFile& file) { Comparison(file, flax).model(layout); });
    }
  }

  TEST_CASE("with a prefix, what is beside the parameters is left alone; without one it is an error") {
    const std::string count = npy_of(npy_dict("<i4", {}), std::string(4, '\1'));
    Layout layout;
    layout.prefix = "params/";
    const Flax flax(layout);
    Members members = flax.members();
    members.emplace_back("opt/0/count", count);
    members.emplace_back("extra", "no array");
    with_weights(npz_of(members), [&](const WeightsFile& file) { Comparison(file, flax).model(layout); });
    members = Flax({}).members();
    members.emplace_back("opt/0/count", count);
    check_contains(refusal(npz_of(members)), {"test.npz", "\"opt/0/count\"", "understood"});
  }

  TEST_CASE("parameters that are not understood, missing or misshapen are named") {
    const auto changed = [](const std::function<void(Members&)>& change, const Layout& layout = {}) {
      Members members = Flax(layout).members();
      change(members);
      return refusal(npz_of(members));
    };
    const std::string block = "Transformer/encoderblock_1/";
    const std::string attention = block + "MultiHeadDotProductAttention_0/";
    CHECK(changed([](Members&) {}) == "accepted");
    for (const std::string& name :
         {std::string("pre_logits/kernel"), block + "LayerNorm_7/scale", std::string("Transformer/encoderblock_3/x"),
          std::string("Transformer/posembed_input/pos_embedding/x"), std::string("MAPHead_0/LayerNorm_0/scale")})
      check_contains(changed([&](Members& members) { members.emplace_back(name, npy_f32({1}, {1})); }),
                     {"test.npz", ("\"" + name + "\"").c_str(), "understood"});
    check_contains(changed([](Members& members) {
                     for (auto& [name, content] : members)
                       if (name == "head/bias") content = npy_of(npy_dict("<i4", {3}), std::string(12, '\1'));
                   }),
                   {"test.npz", "\"head/bias\"", "i32", "floating-point"});
    // Every member of the model is needed, but for these.
    for (const auto& [name, content] : Flax({}).members()) {
      const std::string text = changed(
          [&](Members& members) { std::erase_if(members, [&](const auto& known) { return known.first == name; }); });
      CAPTURE(name);
      if (name == "cls" || name == "pos_embedding")
        CHECK(text == "accepted");
      else if (name == "head/kernel")
        check_contains(text, {"\"head/bias\"", "understood"});
      else if (name == "embedding/kernel")
        check_contains(text, {"no embedding/kernel", "it holds \"Transformer/encoder_norm/bias\"", "…"});
      else
        check_contains(text, {"test.npz", "there is no member", name.c_str()});
    }
    const auto reshaped = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                              const Layout& layout = {}) {
      std::size_t count = 1;
      for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
      return changed([&](Members& members) { member(members, name) = npy_f32(shape, std::vector<float>(count)); },
                     layout);
    };
    check_contains(reshaped("embedding/kernel", {8, 3, 6}), {"\"embedding/kernel\"", "[8, 3, 6]", "4 axes"});
    check_contains(reshaped("head/bias", {0}), {"\"head/bias\"", "[0]", "no elements"});
    check_contains(reshaped(attention + "query/kernel", {6, 3, 2}), {"query/kernel", "3 heads of 2", "2 of 3"});
    check_contains(reshaped(attention + "out/kernel", {3, 2, 6}), {"out/kernel", "3 heads of 2", "2 of 3"});
    check_contains(reshaped(attention + "key/bias", {3, 2}), {"key/bias", "3 heads of 2", "2 of 3"});
    check_contains(reshaped(attention + "key/kernel", {5, 2, 3}), {"key/kernel", "f32 [5, 2, 3]", "f32 [6, 2, 3]"});
    check_contains(changed([&](Members& members) {
                     member(members, attention + "value/bias") = npy_of(npy_dict("<f2", {2, 3}), std::string(12, '\0'));
                   }),
                   {"value/bias", "f16 [2, 3]", "f32 [2, 3]"});
    Layout scanned;
    scanned.scanned = true;
    const std::string shared = "Transformer/encoderblock/";
    check_contains(reshaped(shared + "LayerNorm_1/bias", {3, 6}, scanned), {"LayerNorm_1/bias", "[3, 6]", "2 blocks"});
    check_contains(reshaped(shared + "LayerNorm_1/bias", {12}, scanned), {"LayerNorm_1/bias", "[12]", "2 axes"});
    check_contains(reshaped(shared + "LayerNorm_0/scale", {5000, 1}, scanned), {"5000 blocks", "4096"});
    check_contains(reshaped(shared + "LayerNorm_0/scale", {0, 6}, scanned), {"no blocks"});
    check_contains(reshaped(shared + "LayerNorm_0/scale", {}, scanned), {"no blocks"});
  }

  TEST_CASE("element types, versions, packings and parts of an array") {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const bool deflated : {false, true})
      for (const int version : {1, 2, 3}) {
        const auto array = [&](const char* descr, const std::string& bytes) {
          return npy_of(npy_dict(descr, {3}), bytes, version);
        };
        const std::vector<std::uint16_t> f16{0x3C00, 0x0001, 0xFC00};
        const std::vector<std::uint16_t> bf16{0x3F80, 0xC040, 0x0001};
        const std::string file = npz_of({{"f32", array("<f4", bytes_of<float>({1.5F, -2, 3}))},
                                         {"f64", array("<f8", bytes_of<double>({1.1, -1e300, 0.5}))},
                                         {"f16", array("<f2", bytes_of(f16))},
                                         {"bf16", array("<V2", bytes_of(bf16))},
                                         {"void", array("|V2", bytes_of(bf16))},
                                         {"none", npy_of(npy_dict("<f4", {2, 0}), "")},
                                         {"scalar", npy_of(npy_dict("<f4", {}), bytes_of<float>({7}))}},
                                        deflated);
        with_npz(file, [&](const NpzFile& npz) {
          CHECK(npz.names() == std::vector<std::string>{"bf16", "f16", "f32", "f64", "none", "scalar", "void"});
          CHECK(whole(npz, "f32") == std::vector<float>{1.5F, -2, 3});
          CHECK(whole(npz, "f64") == std::vector<float>{1.1F, -infinity, 0.5F});
          CHECK(whole(npz, "f16") == std::vector<float>{1, 0x1p-24F, -infinity});
          CHECK(whole(npz, "bf16") == std::vector<float>{1, -3, 0x1p-133F});
          CHECK(whole(npz, "void") == whole(npz, "bf16"));
          CHECK(npz.array("void").header.dtype == DType::bf16);
          CHECK(whole(npz, "none").empty());
          CHECK(npz.array("none").header.shape == Shape{2, 0});
          CHECK(whole(npz, "scalar") == std::vector<float>{7});
          CHECK(npz.array("scalar").header.shape == Shape{});
          CHECK(npz.read_f32(npz.array("f32"), 1, 1) == std::vector<float>{-2});
          CHECK(npz.read_f32(npz.array("f64"), 2, 1) == std::vector<float>{0.5F});
          CHECK(npz.read_f32(npz.array("f16"), 0, 2) == std::vector<float>{1, 0x1p-24F});
          check_contains(refusal([&] { npz.read_f32(npz.array("f32"), 2, 2); }), {"\"f32\"", "2 to 4"});
          check_contains(refusal([&] { npz.read_f32(npz.array("f32"), -1, 1); }), {"\"f32\"", "-1"});
          check_contains(refusal([&] { npz.array("f3"); }), {"test.npz", "no member \"f3\""});
        });
        const std::string integers = npz_of({{"i16", npy_of(npy_dict("<i2", {3}), bytes_of<std::int16_t>({1, -2, 3}))},
                                             {"u8", npy_of(npy_dict("|u1", {2}), "\x07\xFF")}},
                                            deflated);
        with_npz(integers, [&](const NpzFile& npz) {
          CHECK(npz.array("i16").header.dtype == DType::i16);
          CHECK(io::as_i64(DType::i16, npz.read(npz.array("i16"), 0, 3)) == std::vector<std::int64_t>{1, -2, 3});
          CHECK(npz.read(npz.array("u8"), 1, 1) == std::vector<std::byte>{std::byte{255}});
          check_contains(refusal([&] { npz.read_f32(npz.array("u8"), 0, 2); }), {"\"u8\"", "are u8", "floating-point"});
        });
      }
    // More than a buffer, so that a part in the middle is reached over several reads.
    std::vector<float> many(100'000);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
    for (const bool deflated : {false, true})
      with_npz(npz_of({{"many", npy_f32({100, 1000}, many)}}, deflated), [&](const NpzFile& npz) {
        CHECK(whole(npz, "many") == many);
        CHECK(npz.read_f32(npz.array("many"), 70'001, 2) == std::vector<float>{70'001, 70'002});
      });
  }

  TEST_CASE("dicts that Python reads alike, and zip64") {
    const std::string bytes = bytes_of<float>({1, 2, 3, 4, 5, 6});
    for (const std::string dict : {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                                   "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False}",
                                   " { 'fortran_order' : False , 'shape' : ( 2 , 3 ) , 'descr' : '<f4' } "}) {
      CAPTURE(dict);
      CHECK(array_refusal(npy_of(dict, bytes)) == "accepted");
    }
    with_npz(zip64_of("a/b.npy", npy_of(npy_dict("<f4", {2, 3}), bytes)), [&](const NpzFile& file) {
      CHECK(whole(file, "a/b") == std::vector<float>{1, 2, 3, 4, 5, 6});
      CHECK(file.array("a/b").header.shape == Shape{2, 3});
    });
  }

  TEST_CASE("headers that are not what they should be") {
    const auto dict = [](const std::string& text, std::size_t bytes = 24) {
      return array_refusal(npy_of(text, std::string(bytes, '\0')));
    };
    const auto with_shape = [&](const std::string& shape, std::size_t bytes = 24) {
      return dict("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", bytes);
    };
    CHECK(with_shape("(2, 3)") == "accepted");
    for (const std::string shape :
         {"(6)", "(,)", "(2 3)", "(2,,3)", "(2, 3", "[2, 3]", "(-2, 3)", "(2.0, 3)", "(2L, 3)", "None", "6", "((2, 3))",
          "(2, 3) x", "'(2, 3)'", "(0x2, 3)", "(+2, 3)", ""})
      check_contains(with_shape(shape), {"test.npz: member \"a\": its header is not the dict", "near byte"});
    for (const std::string text :
         {"", "{", "}", "{}{}", "x", "{'descr'}", "{'descr': }", "{'descr': '<f4}", "{'descr': <f4}",
          "{'descr': '<f4' 'shape': (6,)}", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}",
          "{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "{'de\\x73cr': '<f4'}", "{,}"})
      check_contains(dict(text), {"test.npz: member \"a\": its header is not the dict", "near byte"});
    check_contains(dict("{}"), {"lacks descr"});
    check_contains(dict("{'descr': '<f4', 'shape': (6,)}"), {"lacks fortran_order"});
    check_contains(dict("{'descr': '<f4', 'fortran_order': False}"), {"lacks shape"});
    check_contains(dict("{'descr': '<f4', 'descr': '<f4'}"), {"descr twice"});
    check_contains(dict("{'shape': (6,), 'shape': (6,)}"), {"shape twice"});
    check_contains(dict("{'order': 1}"), {"unknown key \"order\""});
    check_contains(dict("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}"),
                   {"member \"a\"", "Fortran order", "ascontiguousarray"});
    for (const std::string descr : {"<u4", ">i4", ">f4", "f4", "<f16", "|O", "<c8", "|V4", "|b1", ""})
      check_contains(
          dict("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (6,)}"),
          {"member \"a\"", ("\"" + descr + "\"").c_str(), "<f4, <f2, <f8, <V2, |V2, |u1, |i1, <i2, <i4, <i8"});
    check_contains(with_shape("(2, 3)", 20), {"member \"a\"", "f32 [2, 3] needs 24 bytes but 20 follow"});
    check_contains(with_shape("(2, 3)", 25), {"f32 [2, 3] needs 24 bytes but 25 follow"});
    check_contains(with_shape("(0,)"), {"f32 [0] needs 0 bytes but 24 follow"});
    check_contains(with_shape("(1,1,1,1,1,1,1,1,6)"), {"more than 8 extents"});
    check_contains(with_shape("(9223372036854775808,)"), {"does not fit in 63 bits"});
    check_contains(with_shape("(99999999999999999999999999,)"), {"does not fit in 63 bits"});
    // Products that wrap round to 24 bytes, to none, or past the sign.
    check_contains(with_shape("(4611686018427387910,)"), {"f32 [4611686018427387910] do not fit in 63 bits"});
    check_contains(with_shape("(4294967296, 4294967296)", 0), {"[4294967296, 4294967296] do not fit"});
    check_contains(with_shape("(2305843009213693952,)", 0), {"do not fit"});
    check_contains(with_shape("(0, 4294967296, 4294967296)", 0), {"do not fit"});
    check_contains(with_shape("(1000000000,)"), {"needs 4000000000 bytes but 24 follow"});

    const std::string good = npy_f32({6}, {1, 2, 3, 4, 5, 6});
    const auto patched = [&](std::size_t at, const std::string& bytes) {
      std::string npy = good;
      npy.replace(at, bytes.size(), bytes);
      return array_refusal(npy);
    };
    CHECK(array_refusal(good) == "accepted");
    check_contains(patched(0, "\x94"), {"member \"a\"", "no .npy array"});
    check_contains(patched(6, std::string(1, '\0')), {"version 0.0"});
    check_contains(patched(6, "\x04"), {"version 4.0"});
    check_contains(patched(6, "\xff"), {"version 255.0"});
    check_contains(patched(7, "\x01"), {"version 1.1"});
    check_contains(patched(8, "\xff\xff"), {"header of 65535 bytes is longer than the 142 bytes that are left"});
    check_contains(patched(8, std::string(2, '\0')), {"not the dict"});
    check_contains(array_refusal(npy_of("{}", "", 2).replace(8, 4, "\xff\xff\xff\xff")),
                   {"4294967295", "limit of 65535"});
    for (std::size_t size = 0; size < good.size(); ++size) {
      const std::string text = array_refusal(good.substr(0, size));
      CAPTURE(size);
      check_contains(text, {"test.npz: member \"a\": "});
    }
  }

  TEST_CASE("zip files that are none, or none of arrays") {
    const std::string good = npz_of({{"a", npy_f32({2}, {1, 2})}});
    with_npz(good, [](const NpzFile& file) { CHECK(whole(file, "a") == std::vector<float>{1, 2}); });
    const auto opening = [](const std::string& file) {
      return refusal([&] { with_npz(file, [](const NpzFile& npz) { whole(npz, "a"); }); });
    };
    for (std::size_t size = 0; size < good.size(); ++size) {
      const std::string text = opening(good.substr(0, size));
      CAPTURE(size);
      check_contains(text, {"test.npz of", std::to_string(size).c_str(), "cannot be read as a zip file"});
    }
    std::string renamed = good;
    replace_all(renamed, "a.npy", "a.pkl");
    check_contains(opening(renamed), {"test.npz", "\"a.pkl\"", "no .npy array"});
    std::string twice = npz_of({{"a", npy_f32({2}, {1, 2})}, {"b", npy_f32({2}, {1, 2})}});
    replace_all(twice, "b.npy", "a.npy");
    check_contains(opening(twice), {"test.npz of 466 bytes cannot be read as a zip file"});
    check_contains(refusal(std::string("PK\x05\x06") + std::string(18, '\0')), {"test.npz", "embedding/kernel"});
    check_contains(refusal(good), {"test.npz", "embedding/kernel", "it holds \"a\""});

    std::string damaged = good;
    damaged[damaged.find("{'descr'") + 118] ^= 1;  // in the elements
    check_contains(opening(damaged), {"test.npz: member \"a\"", "CRC"});
  }

  TEST_CASE("sizes that the zip file does not have the bytes for") {
    const std::string array = npy_f32({2}, {1, 2});
    const std::string size = little(static_cast<std::uint32_t>(array.size()));
    const auto opening = [](const std::string& file) {
      return refusal([&] { with_npz(file, [](const NpzFile& npz) { whole(npz, "a"); }); });
    };
    // A stored member that claims 3 GB, and a deflated one, in both of its headers.
    std::string stored = npz_of({{"a", array}});
    replace_all(stored, size, little<std::uint32_t>(3'000'000'000));
    check_contains(opening(stored), {"test.npz"});
    // What deflate could not do: the header agrees with the claim, so nothing but the claim itself is wrong.
    const std::string bomb = npy_of(npy_dict("<f4", {750'000'000}), "");
    std::string deflated = npz_of({{"a", bomb}}, true);
    replace_all(deflated, little(static_cast<std::uint32_t>(bomb.size())),
                little(static_cast<std::uint32_t>(bomb.size() + 3'000'000'000)));
    check_contains(opening(deflated), {"test.npz: member \"a\"", "cannot hold its 3000000128 bytes"});
    // Possible by the ratio, but the bytes end before.
    const std::string shorter = npy_of(npy_dict("<f4", {1000}), "");
    std::string ends = npz_of({{"a", shorter}}, true);
    replace_all(ends, little(static_cast<std::uint32_t>(shorter.size())),
                little(static_cast<std::uint32_t>(shorter.size() + 4000)));
    check_contains(opening(ends), {"test.npz: member \"a\""});
    // And when more comes out than was claimed.
    const std::string longer = npy_of(npy_dict("<f4", {1000}), std::string(4004, '\0'));
    std::string goes_on = npz_of({{"a", longer}}, true);
    replace_all(goes_on, little(static_cast<std::uint32_t>(longer.size())),
                little(static_cast<std::uint32_t>(longer.size() - 4)));
    check_contains(opening(goes_on), {"test.npz: member \"a\""});
    // Sizes that no file has, and that wrap round when an offset is added.
    for (const std::uint64_t more : {std::uint64_t{1} << 40, std::uint64_t{1} << 62, ~std::uint64_t{0} - 200}) {
      const std::string huge = npy_of(npy_dict("<f4", {static_cast<std::int64_t>(more / 4)}), "");
      check_contains(opening(zip64_of("a.npy", huge, more)), {"test.npz"});
    }
    std::string secret = npz_of({{"a", array}});
    secret[6] |= 1;
    secret[secret.find("PK\x01\x02") + 8] |= 1;
    check_contains(opening(secret), {"test.npz: member \"a\"", "encrypted"});
    // LZMA in both headers.
    std::string other = npz_of({{"a", array}});
    other[8] = 14;
    other[other.find("PK\x01\x02") + 10] = 14;
    check_contains(opening(other), {"test.npz: member \"a\"", "method 14"});
  }

  TEST_CASE("members cannot share bytes, so that a small file holds no number of large arrays") {
    // The stored member "a" claims the header and the content of "b" behind it, too: its checksum is that of both.
    const std::string array = npy_f32({16}, std::vector<float>(16, 1));
    const std::string a = array + std::string("PK\x03\x04") + std::string(24, '\0');
    std::string file = npz_of({{"a", a}, {"b", array}});
    const auto header_of_b = file.find("b.npy") - 30;
    const auto shared = static_cast<std::uint32_t>(file.find("PK\x01\x02") - (file.find("a.npy") + 5));
    const std::string size = little(static_cast<std::uint32_t>(a.size()));
    REQUIRE(shared > a.size());
    REQUIRE(file.substr(header_of_b, 4) == "PK\x03\x04");
    replace_all(file, size + size, little(shared) + little(shared));
    check_contains(refusal([&] { with_npz(file, [](const NpzFile&) {}); }),
                   {"test.npz", "cannot be read as a zip file"});
    // A file of many members that all lie in one another is what makes bombs large.
    check_contains(refusal([&] { with_npz(file, [](const NpzFile& npz) { whole(npz, "b"); }); }), {"test.npz"});
  }

  TEST_CASE("parts of a deflated array are read in any order, and its checksum with the last") {
    std::vector<float> many(300'000);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i % 1000);
    const std::string good = npz_of({{"a", npy_f32({300'000}, many)}, {"b", npy_f32({300'000}, many)}}, true);
    const auto part = [&](const NpzFile& npz, const std::string& name, std::int64_t first, std::int64_t count) {
      const std::vector<float> expected(many.begin() + first, many.begin() + first + count);
      CHECK(npz.read_f32(npz.array(name), first, count) == expected);
    };
    with_npz(good, [&](const NpzFile& npz) {
      const NpzFile copy = npz;
      for (const std::int64_t first : {0, 1000, 50'000, 50'000, 10, 299'000, 0, 299'999}) {
        part(npz, "a", first, 1);
        part(copy, "b", first / 2, 1000);
      }
      part(npz, "a", 0, 300'000);
    });
    std::string damaged = good;
    damaged[damaged.find("b.npy") - 30 - 200] ^= 1;  // late in "a"
    with_npz(damaged, [&](const NpzFile& npz) {
      part(npz, "a", 0, 1000);
      part(npz, "b", 0, 300'000);
      check_contains(refusal([&] {
                       npz.read_f32(npz.array("a"), 1000, 100'000);
                       npz.read_f32(npz.array("a"), 101'000, 199'000);
                     }),
                     {"test.npz: member \"a\""});
    });
  }

  TEST_CASE("a file that another program cuts while it is open is an Error when it is read") {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() / "x.npz";
    std::mt19937 random(1);
    std::vector<float> noise(200'000);
    for (float& value : noise) value = static_cast<float>(random());
    for (const bool deflated : {false, true}) {
      std::ofstream(path, std::ios::binary) << npz_of({{"a", npy_f32({200'000}, noise)}}, deflated);
      const NpzFile npz = NpzFile::parse(io::ByteSource::open(path, "a file"));
      CHECK(whole(npz, "a") == noise);
      std::filesystem::resize_file(path, 100'000);
      check_contains(refusal([&] { whole(npz, "a"); }), {path + " ends after 100000 bytes", "was longer"});
    }
  }

  TEST_CASE("mutations are refused with a sentence or are read") {
    std::mt19937 random(5);
    Layout scanned;
    scanned.scanned = true;
    const std::vector<Members> seeds{
        {{"embedding/kernel", npy_f32({1, 1, 1, 1}, {1})}}, Flax(scanned).members(), Flax({}).members()};
    for (std::size_t round = 0; round < 4000; ++round) {
      const bool deflated = random() % 2 == 0;
      const bool inside = random() % 2 == 0;
      Members members = seeds[random() % seeds.size()];
      // Inside a member, so that the zip file is whole, or anywhere in the file.
      if (inside) mutate(members[random() % members.size()].second, random);
      std::string file = npz_of(members, deflated);
      if (!inside) mutate(file, random);
      // Whatever comes first, it is to be taken for a zip file.
      file.resize(std::max<std::size_t>(4, file.size()));
      file.replace(0, 4, "PK\x03\x04");
      const std::string text = refusal(file);
      if (text == "accepted") continue;
      REQUIRE(text.starts_with("test.npz"));
      REQUIRE(text.find('\n') == std::string::npos);
      REQUIRE(text.size() < 500);
    }
  }

  TEST_CASE("a file is what its content says") {
    const test::TemporaryDirectory directory;
    const Flax flax({});
    const auto path = directory.path() / "named.safetensors";
    std::ofstream(path, std::ios::binary) << flax.file();
    WeightsFile file = WeightsFile::open(path);
    Comparison(file, flax).model({});
    const std::vector<float> numbers{1, 2};
    const auto other = directory.path() / "named.npz";
    const std::vector<io::OutputTensor> tensors{{"a", DType::f32, {2}, std::as_bytes(std::span(numbers))}};
    io::write_safetensors(other, tensors);
    const WeightsFile copy = file;  // NOLINT(performance-unnecessary-copy-initialization): outlives what it is of
    file = WeightsFile::open(other);
    CHECK(file.read_f32("a") == numbers);
    CHECK(file.name() == other.string());
    CHECK(!file.heads());
    Comparison(copy, flax).model({});
    const auto opening = [](const std::filesystem::path& wrong) { return refusal([&] { WeightsFile::open(wrong); }); };
    check_contains(opening(directory.path()), {"is a directory, not a file with weights"});
    check_contains(opening(directory.path() / "missing"), {"missing does not exist"});
  }
}
