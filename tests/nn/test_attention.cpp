// Attention on the device against the fp64 reference, and what is promised of it beside the numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "catalogue/head_sizes.hpp"
#include "nn/attention_case.hpp"
#include "tuning/table.hpp"

using namespace sylvit;
using sylvit::test::AttentionCase;
using sylvit::test::AttentionData;
using sylvit::test::AttentionResult;
using sylvit::test::check_error;
using sylvit::test::device;
using sylvit::test::run_attention;

namespace {

void check_all(std::vector<AttentionCase> cases) {
  // A library compiled ahead of time may hold small head sizes only.
  const std::int64_t largest = catalogue::largest_compiled_head_size(device().info().toolchain);
  std::erase_if(cases, [&](const AttentionCase& c) { return c.head_size > largest; });
  test::prepare_attention(cases);
  for (const AttentionCase& c : cases) {
    const AttentionData data(c);
    CAPTURE(c.text());
    CHECK(test::agrees_with_reference(c, data, run_attention(c, data)));
  }
}

enum class Records { all, with_other_numbers };

/// Cases that lead to the attention records of a table, or to the first with each set of numbers.
std::vector<AttentionCase> cases_of(const tuning::Table& table, Records records) {
  std::vector<AttentionCase> cases;
  std::set<std::pair<std::string, tuning::TileNumbers>> seen;
  for (const tuning::Record& record : table.records()) {
    if (!record.kernel.starts_with("attention_")) continue;
    if (!seen.emplace(record.kernel, record.numbers).second && records == Records::with_other_numbers) continue;
    AttentionCase c{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 37, .head_scale = true};
    c.head_size = record.head_size.most > 0 ? record.head_size.most : 256;
    c.keys = record.length.most > 0 ? record.length.most : std::max<std::int64_t>(1100, record.length.least);
    if (!record.dtypes.empty()) c.dtype = record.dtypes.front();
    if (record.kernel == "attention_linear") {
      c.score = Score::identity;
      c.queries = c.head_size * 3 / 2 + 16;
      c.keys = c.head_size * 3 / 2 + 36;
      cases.push_back(c);
      continue;
    }
    for (const Score score : {Score::relu, Score::softmax}) {
      if (record.score_class != ScoreClass::any && record.score_class != class_of(score)) continue;
      c.score = score;
      cases.push_back(c);
    }
  }
  REQUIRE(!cases.empty());
  return cases;
}

/// So many of the cases at the most, evenly spread: kernels take a second each to build.
std::vector<AttentionCase> some_of(const std::vector<AttentionCase>& cases, std::size_t most) {
  if (cases.size() <= most) return cases;
  std::vector<AttentionCase> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(cases[i * cases.size() / most]);
  return some;
}

/// Head sizes from the smallest to the largest: softmax in one type and relu in the other alternately, or both in both.
std::vector<AttentionCase> head_size_cases(bool all) {
  std::vector<AttentionCase> cases;
  bool turn = false;
  for (const std::int64_t head_size : {16, 24, 32, 40, 48, 72, 80, 96, 104, 128, 160, 192, 200, 256}) {
    for (const Score score : {Score::relu, Score::softmax})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const bool chosen = ((score == Score::relu) == (dtype == DType::f32)) == turn;
        if (all || chosen)
          cases.push_back(
              {.batch = 1, .queries = 45, .keys = 131, .head_size = head_size, .score = score, .dtype = dtype});
      }
    turn = !turn;
  }
  return cases;
}

constexpr std::array types = {DType::f32, DType::bf16, DType::f16};

enum class Direction { forward, backward };

/// Does the plan say that this case takes the way that is linear in L?
bool is_linear(const AttentionCase& c, Direction direction) {
  std::byte nothing{};
  const Shape key_shape{c.batch, c.kv_heads, c.keys, c.head_size};
  const AttentionInputs inputs{.q = TensorView(&nothing, c.dtype, {c.batch, c.heads, c.queries, c.head_size}),
                               .k = TensorView(&nothing, c.dtype, key_shape),
                               .v = TensorView(&nothing, c.dtype, key_shape)};
  const AttentionDescription description{.score = c.score, .causal = c.causal, .qk_norm = c.qk_norm};
  const AttentionPlan plan = direction == Direction::forward ? attention_forward_plan(device(), description, inputs)
                                                             : attention_backward_plan(device(), description, inputs);
  return plan.config.starts_with("attention_linear ");
}

/// check_all, for cases that must be linear both ways.
void check_all_linear(const std::vector<AttentionCase>& cases) {
  const std::int64_t largest = catalogue::largest_compiled_head_size(device().info().toolchain);
  for (const AttentionCase& c : cases) {
    if (c.head_size > largest) continue;
    CAPTURE(c.text());
    REQUIRE(is_linear(c, Direction::forward));
    REQUIRE(is_linear(c, Direction::backward));
  }
  check_all(cases);
}

}  // namespace

TEST_SUITE("nn/attention") {
  TEST_CASE("every score in every type, plain and with every mask and option") {
    std::vector<AttentionCase> cases;
    for (const Score score : all_scores)
      for (const DType dtype : types) {
        const bool pointwise = score != Score::softmax;
        cases.push_back({.score = score, .dtype = dtype});
        cases.push_back({.queries = 50, .keys = 37, .score = score, .dtype = dtype, .causal = true});
        cases.push_back({.batch = 3,
                         .heads = 4,
                         .kv_heads = 2,
                         .queries = 19,
                         .keys = 70,
                         .score = score,
                         .dtype = dtype,
                         .head_scale = true,
                         .head_alpha = pointwise,
                         .lengths = {70, 1, 33},
                         .packed = true});
        cases.push_back({.score = score, .dtype = dtype, .causal = true, .qk_norm = true, .lengths = {20, 33}});
      }
    check_all(cases);
  }

  TEST_CASE("lengths that leave tails, from one key to thousands") {
    std::vector<AttentionCase> cases;
    for (const Score score : {Score::relu, Score::softmax}) {
      for (const std::int64_t length : {1, 2, 7, 15, 16, 17, 49, 64, 95, 96, 97, 196, 197, 205, 257, 785}) {
        cases.push_back({.batch = 1, .queries = length, .keys = length, .score = score});
        cases.push_back(
            {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 5, .keys = length, .score = score, .causal = true});
        cases.push_back({.batch = 1, .heads = 1, .kv_heads = 1, .queries = length, .keys = 5, .score = score});
      }
      cases.push_back({.batch = 1, .heads = 1, .kv_heads = 1, .queries = 300, .keys = 1100, .score = score});
      cases.push_back(
          {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 800, .keys = 800, .score = score, .causal = true});
    }
    check_all(cases);
  }

  TEST_CASE("head sizes from 16 to 256") { check_all(head_size_cases(false)); }

  TEST_CASE("grouped heads, packed buffers, alpha, divisor and scale") {
    check_all({{.heads = 6, .kv_heads = 1, .packed = true},
               {.heads = 6, .kv_heads = 3, .queries = 197, .keys = 197, .score = Score::softmax, .packed = true},
               {.heads = 8, .kv_heads = 2, .dtype = DType::bf16, .packed = true},
               {.alpha = 0.0F},
               {.alpha = 0.5F},
               {.alpha = 2.0F},
               {.score = Score::sigmoid, .alpha = 1.37F, .divisor = 100},
               {.score = Score::gelu, .scale = 0.3F},
               {.score = Score::softmax, .scale = 0.9F},
               {.score = Score::relu2, .alpha = 0.8F, .divisor = 7, .lengths = {5, 30}},
               {.score = Score::relu6, .scale = 2.0F},
               {.qk_norm = true, .norm_parameters = false},
               {.score = Score::softmax, .qk_norm = true, .head_scale = true, .packed = true}});
  }

  TEST_CASE("tile numbers of this device's table") {
    check_all(some_of(cases_of(tuning::table_for(device().info()), Records::with_other_numbers), 16));
  }

  TEST_CASE("identity is linear in L where that is allowed and cheaper, whatever the batch is") {
    for (const Direction direction : {Direction::forward, Direction::backward})
      for (const std::int64_t batch : {1, 2, 64}) {
        const AttentionCase c{.batch = batch, .queries = 785, .keys = 785, .score = Score::identity};
        const auto with = [&](auto change) {
          AttentionCase changed = c;
          change(changed);
          return is_linear(changed, direction);
        };
        CHECK(is_linear(c, direction));
        CHECK(with([](AttentionCase& x) { x.dtype = DType::bf16; }));
        CHECK(with([](AttentionCase& x) { x.qk_norm = true; }));
        CHECK(with([](AttentionCase& x) { x.kv_heads = 1; }));
        CHECK(!with([](AttentionCase& x) { x.causal = true; }));
        CHECK(!with([](AttentionCase& x) { x.score = Score::relu; }));
        CHECK(!with([](AttentionCase& x) { x.queries = x.keys = 49; }));
        CHECK(!with([](AttentionCase& x) { x.queries = 1; }));
        CHECK(!with([](AttentionCase& x) { x.keys = 1; }));
      }
  }

  TEST_CASE("linear identity: types, head sizes, lengths, groups, packed buffers and every option") {
    std::vector<AttentionCase> cases;
    for (const DType dtype : types) {
      for (const std::int64_t head_size : {16, 40, 64, 80, 128, 256})
        cases.push_back({.batch = 1,
                         .queries = 2 * head_size + 3,
                         .keys = 2 * head_size + 38,
                         .head_size = head_size,
                         .score = Score::identity,
                         .dtype = dtype});
      cases.push_back({.batch = 5,
                       .heads = 4,
                       .kv_heads = 2,
                       .queries = 200,
                       .keys = 170,
                       .score = Score::identity,
                       .dtype = dtype,
                       .head_scale = true,
                       .head_alpha = true,
                       .lengths = {170, 0, 1, 96, 97},
                       .packed = true});
      cases.push_back({.batch = 2,
                       .heads = 6,
                       .kv_heads = 2,
                       .queries = 131,
                       .keys = 333,
                       .head_size = 40,
                       .score = Score::identity,
                       .dtype = dtype,
                       .qk_norm = true,
                       .head_scale = true,
                       .alpha = 0.7F,
                       .divisor = 50,
                       .lengths = {333, 20},
                       .packed = true});
    }
    cases.push_back({.batch = 1, .queries = 785, .keys = 785, .score = Score::identity, .scale = 0.4F});
    cases.push_back({.queries = 785, .keys = 196, .score = Score::identity, .alpha = 0.0F, .lengths = {196, 77}});
    cases.push_back({.heads = 8,
                     .kv_heads = 1,
                     .queries = 97,
                     .keys = 300,
                     .score = Score::identity,
                     .qk_norm = true,
                     .alpha = 2.0F});
    check_all_linear(cases);
  }

  TEST_CASE("a row without a key gives zeros, and so do its gradients") {
    for (const Score score : {Score::relu, Score::softmax, Score::sigmoid, Score::identity}) {
      AttentionCase c{.batch = 3, .score = score, .head_scale = true, .lengths = {0, 33, 2}};
      if (score == Score::identity) c.queries = c.keys = 150;  // linear
      AttentionData data(c);
      data.q[5] = 1e30F;  // a query that sees nothing may be anything
      const AttentionResult got = run_attention(c, data);
      CHECK(test::agrees_with_reference(c, data, got));
      const std::size_t one = static_cast<std::size_t>(c.heads * c.queries * c.head_size);
      for (std::size_t i = 0; i < one; ++i) {
        REQUIRE(got.o[i] == 0.0F);
        REQUIRE(got.dq[i] == 0.0F);
        REQUIRE(got.dk[i] == 0.0F);
        REQUIRE(got.dv[i] == 0.0F);
      }
    }
  }

  TEST_CASE("twenty runs give the same bits") {
    for (const Score score : {Score::relu, Score::softmax, Score::identity}) {
      const AttentionCase c{.heads = 4,
                            .kv_heads = 2,
                            .queries = 197,
                            .keys = 300,
                            .score = score,
                            .qk_norm = true,
                            .head_scale = true,
                            .head_alpha = score != Score::softmax};
      const AttentionData data(c);
      const AttentionResult first = run_attention(c, data);
      for (int run = 1; run < 20; ++run) REQUIRE(run_attention(c, data) == first);
    }
  }

  TEST_CASE("a sequence alone gives the bits that it gives in a batch") {
    for (const Score score : {Score::relu, Score::softmax, Score::gelu, Score::identity})
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const bool causal : {false, true}) {
          const AttentionCase together{.batch = 5,
                                       .heads = 2,
                                       .kv_heads = 1,
                                       .queries = 150,
                                       .keys = 290,
                                       .score = score,
                                       .dtype = dtype,
                                       .causal = causal,
                                       .lengths = {290, 17, 200, 290, 1}};
          const AttentionData data(together);
          const AttentionResult all = run_attention(together, data);
          for (const std::size_t b : {0U, 2U, 4U}) {
            AttentionCase alone = together;
            alone.batch = 1;
            alone.lengths = {together.lengths[b]};
            const auto part = [&](const std::vector<float>& values) {
              const std::size_t each = values.size() / 5;
              return std::vector<float>(values.begin() + static_cast<std::ptrdiff_t>(b * each),
                                        values.begin() + static_cast<std::ptrdiff_t>((b + 1) * each));
            };
            AttentionData one = data;
            one.q = part(data.q);
            one.k = part(data.k);
            one.v = part(data.v);
            one.grad_o = part(data.grad_o);
            const AttentionResult expected{
                part(all.o), part(all.lse), part(all.dq), part(all.dk), part(all.dv), {}, {}, {}, {}, {}, {}};
            CAPTURE(alone.text());
            CHECK(run_attention(alone, one) == expected);
          }
        }
  }

  TEST_CASE("softmax with large scales, where one key has nearly all the weight") {
    std::vector<AttentionCase> cases;
    for (const DType dtype : types)
      for (const float scale : {0.5F, 2.0F, 8.0F})
        for (const std::int64_t head_size : {16, 64})
          for (const std::int64_t queries : {2, 40})
            for (const std::int64_t keys : {2, 8, 197})
              cases.push_back({.batch = 1,
                               .queries = queries,
                               .keys = keys,
                               .head_size = head_size,
                               .score = Score::softmax,
                               .dtype = dtype,
                               .scale = scale});
    cases.push_back({.heads = 4,
                     .kv_heads = 2,
                     .queries = 19,
                     .keys = 70,
                     .score = Score::softmax,
                     .dtype = DType::bf16,
                     .causal = true,
                     .head_scale = true,
                     .scale = 2.0F,
                     .lengths = {70, 33},
                     .packed = true});
    check_all(cases);
  }

  TEST_CASE("large scores stay finite where the maths does") {
    // Scores of about ±1e4: softmax picks the largest, everything else stays a plain product.
    for (const Score score : {Score::softmax, Score::relu, Score::softplus, Score::sigmoid, Score::silu, Score::gelu}) {
      AttentionCase c{.score = score, .scale = 160.0F};
      const AttentionData data(c);
      const AttentionResult got = run_attention(c, data);
      for (const float value : got.o) REQUIRE(std::isfinite(value));
      for (const float value : got.dq) REQUIRE(std::isfinite(value));
      for (const float value : got.dv) REQUIRE(std::isfinite(value));
    }
  }

  TEST_CASE("a NaN or an infinity goes where the maths sends it, and nowhere else") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const Score score : {Score::relu, Score::softmax, Score::gelu, Score::sigmoid, Score::relu6}) {
      const AttentionCase c{.batch = 2, .heads = 1, .kv_heads = 1, .queries = 40, .keys = 40, .score = score};
      const std::size_t d = 64;
      AttentionData in_query(c);
      in_query.q[7 * d + 3] = nan;  // query 7 of the first sequence
      const AttentionResult from_query = run_attention(c, in_query);
      for (std::size_t i = 0; i < from_query.o.size(); ++i) {
        CAPTURE(i);
        REQUIRE(std::isnan(from_query.o[i]) == (i / d == 7));
      }
      AttentionData in_value(c);
      in_value.v[9 * d + 5] = std::numeric_limits<float>::infinity();  // key 9, channel 5
      const AttentionResult from_value = run_attention(c, in_value);
      for (std::size_t i = 0; i < from_value.o.size(); ++i)
        if (i / d >= 40 || i % d != 5) REQUIRE(std::isfinite(from_value.o[i]));
      AttentionData in_key(c);
      in_key.k[(40 + 4) * d] = nan;  // key 4 of the second sequence
      const AttentionResult from_key = run_attention(c, in_key);
      for (std::size_t i = 0; i < from_key.o.size(); ++i) REQUIRE(std::isnan(from_key.o[i]) == (i / d >= 40));
    }
  }

  TEST_CASE("what does not fit is refused, with the tensor and the numbers") {
    const Memory memory(device(), 1 << 20, "a test");
    auto* at = memory.as<float>();
    const auto view = [&](std::initializer_list<std::int64_t> shape, std::int64_t offset = 0,
                          DType dtype = DType::f32) { return TensorView(at + offset, dtype, Shape(shape)); };
    const AttentionInputs good{
        .q = view({1, 2, 8, 16}), .k = view({1, 2, 9, 16}, 1000), .v = view({1, 2, 9, 16}, 2000)};
    const TensorView o = view({1, 2, 8, 16}, 3000);
    const auto forward = [&](const AttentionInputs& inputs,
                             const AttentionDescription& description = {.score = Score::relu},
                             const std::optional<TensorView>& out = {}) {
      attention_forward(device(), description, inputs, out ? *out : o, {}, nullptr);
    };
    forward(good);
    device().wait();
    const auto with = [&](auto change) {
      AttentionInputs inputs = good;
      change(inputs);
      return inputs;
    };
    check_error([&] { forward(with([&](auto& i) {
                        i.q = view({2, 8, 16});
                      })); },
                {"q is f32 [2, 8, 16]", "[B, H, Lq, d]"});
    check_error([&] { forward(with([&](auto& i) {
                        i.v = view({1, 2, 8, 16}, 2000);
                      })); },
                {"v is f32 [1, 2, 8, 16]", "[1, 2, 9, 16]"});
    check_error([&] { forward(with([&](auto& i) {
                        i.k = view({1, 2, 9, 16}, 1000, DType::bf16);
                      })); },
                {"k is bf16", "f32 [1, 2, 9, 16]"});
    check_error([&] { forward(with([&](auto& i) { i.q = view({1, 3, 8, 16}); })); }, {"3 heads", "2 heads"});
    for (const std::int64_t d : {8, 20, 264})
      check_error(
          [&] {
            forward({.q = view({1, 1, 2, d}), .k = view({1, 1, 2, d}, 1000), .v = view({1, 1, 2, d}, 2000)});
          },
          {"head size " + std::to_string(d), "16 to 256"});
    check_error([&] { forward(with([&](auto& i) { i.lengths = view({2}, 9000, DType::i32); })); },
                {"lengths is i32 [2]", "[1]"});
    check_error([&] { forward(with([&](auto& i) { i.head_scale = view({3}, 9000); })); }, {"head_scale", "[3]", "[2]"});
    check_error([&] { forward(with([&](auto& i) { i.q_norm_weight = view({16}, 9000); })); },
                {"q_norm.weight", "switched off"});
    check_error([&] { forward(with([&](auto& i) { i.head_alpha = view({2}, 9000); }), {.score = Score::softmax}); },
                {"head_alpha", "softmax"});
    check_error([&] { forward(good, {.score = Score::relu, .alpha = std::nanf("")}); }, {"alpha", "finite"});
    check_error([&] { forward(good, {.score = Score::relu, .alpha = 2.5F}); }, {"alpha", "2.5", "[0, 2]"});
    check_error([&] { forward(good, {.score = Score::relu, .divisor = -3}); }, {"divisor", "-3"});
    check_error(
        [&] {
          forward(good, {.score = Score::relu}, view({1, 2, 8, 16}, 100));
        },
        {"o is written and overlaps q"});
    check_error(
        [&] {
          forward(good, {.score = Score::relu}, TensorView(at + 3000, DType::f32, {1, 2, 8, 16}, {256, 128, 8, 1}));
        },
        {"o", "share memory"});
    check_error(
        [&] {
          forward(good, {.score = Score::relu}, TensorView(at + 3000, DType::f32, {1, 2, 8, 16}, {512, 256, 32, 2}));
        },
        {"o has stride 2", "contiguous"});
    const std::vector<std::int32_t> negative{3, -1};
    check_error([&] { check_lengths(negative, 9); }, {"lengths[1] is -1", "Lk = 9"});
    const std::vector<std::int32_t> long_one{10};
    check_error([&] { check_lengths(long_one, 9); }, {"lengths[0] is 10"});
    const AttentionGradients gradients{
        .q = view({1, 2, 8, 16}, 4000), .k = view({1, 2, 9, 16}, 5000), .v = view({1, 2, 9, 16}, 5100)};
    check_error(
        [&] {
          attention_backward(device(), {.score = Score::relu}, good, {}, {}, view({1, 2, 8, 16}, 7000), gradients,
                             nullptr);
        },
        {"dk and dv", "overlap"});
    check_error(
        [&] {
          attention_backward(device(), {}, good, {}, {}, view({1, 2, 8, 16}, 7000), gradients, nullptr);
        },
        {"softmax needs"});
  }
}

// Any table's tiles can be built for this device by the run-time compiler, so the results of those made for other
// devices are tested here too. It takes minutes to build them. AdaptiveCpp's tables for GPUs have DPC++'s records.
namespace {

void check_table(const std::string& name) {
  if (device().info().toolchain != Toolchain::rtc && name != tuning::table_for(device().info()).name()) return;
  const test::Setting setting("SYLVIT_TUNING_TABLE", name);
  check_all(cases_of(tuning::table_for(device().info()), Records::all));
}

}  // namespace

TEST_SUITE("nn/attention_tables") {
  TEST_CASE("head sizes from 16 to 256 in every score class and type") { check_all(head_size_cases(true)); }
  TEST_CASE("dpcpp-cpu") { check_table("dpcpp-cpu/default"); }
  TEST_CASE("acpp-cpu") { check_table("acpp-cpu/default"); }
  TEST_CASE("dpcpp-intel-gpu") { check_table("dpcpp-intel-gpu/default"); }
  TEST_CASE("dpcpp-cuda") { check_table("dpcpp-cuda/default"); }
  TEST_CASE("acpp-cuda") { check_table("acpp-cuda/default"); }
  TEST_CASE("dpcpp-hip") { check_table("dpcpp-hip/default"); }
  TEST_CASE("acpp-hip") { check_table("acpp-hip/default"); }
  TEST_CASE("no table is left out") {
    // Those above and families of theirs. A family's own records are taken with its backend's default.
    for (const tuning::TableFile& file : tuning::embedded())
      if (!file.family.is_default() && !file.records.empty()) check_table(file.name);
    CHECK(std::ranges::count_if(tuning::embedded(),
                                [](const tuning::TableFile& file) { return file.family.is_default(); }) == 7);
  }
}
