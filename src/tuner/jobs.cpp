#include "tuner/jobs.hpp"

#include <sylvit/error.hpp>
#include <sylvit/score.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <sstream>

#include "base/head_sizes.hpp"
#include "catalogue/head_sizes.hpp"
#include "catalogue/records.hpp"
#include "io/files.hpp"
#include "io/messages.hpp"

namespace sylvit::tuner {

namespace {

struct Shapes {
  std::vector<std::array<std::int64_t, 4>> attention;  // B, H, L, d
  std::vector<GemmWork::Extents> gemm;
  std::vector<LayerNormWork::Extents> layer_norm;
};

/// The layers of S/16 at batch 8, with the token counts of S/32, S/16 and 384 x 384 images.
Shapes vit_shapes() {
  return {{{8, 6, 50, 64}, {8, 6, 197, 64}, {4, 6, 577, 64}},
          {{1576, 1152, 384}, {1576, 384, 384}, {1576, 1536, 384}, {1576, 384, 1536}},
          {{1576, 384}, {1576, 768}}};
}

Shapes long_shapes() {
  return {{{2, 6, 785, 64}, {1, 6, 2048, 64}, {1, 6, 4096, 64}},
          {{4096, 1152, 384}, {4096, 384, 384}, {4096, 1536, 384}, {4096, 384, 1536}},
          {{4096, 384}, {4096, 768}}};
}

std::vector<std::int64_t> numbers_of(const std::string& text) {
  std::vector<std::int64_t> numbers;
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc{} || end != part.data() + part.size() || number < 1 || number > (1 << 24)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

/// A shape is a case to tune, which takes seconds.
constexpr std::size_t most_shapes = 4096;
constexpr std::uint64_t largest_shape_file = 1 << 20;

/// "attention 8,6,197,64", "gemm 1576,1152,384", "layer_norm 1576,384"; # begins a comment.
Shapes shapes_of_file(const std::string& path) {
  std::istringstream file;
  try {
    file.str(io::read_text(path, "a file of shapes", largest_shape_file));
  } catch (const Error& error) {
    throw Error("--shapes is neither vit nor long nor a file that can be read: " + error.failure());
  }
  Shapes shapes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string kind;
    std::string rest;
    if (!(words >> kind)) continue;
    words >> rest;
    std::string surplus;
    const std::vector<std::int64_t> n = words >> surplus ? std::vector<std::int64_t>() : numbers_of(rest);
    if (kind == "attention" && n.size() == 4)
      shapes.attention.push_back({n[0], n[1], n[2], n[3]});
    else if (kind == "gemm" && n.size() == 3)
      shapes.gemm.push_back({n[0], n[1], n[2]});
    else if (kind == "layer_norm" && n.size() == 2)
      shapes.layer_norm.push_back({n[0], n[1]});
    else
      throw Error(fmt::format("{}, line {}: {} is no shape", path, number, io::in_quotes(line)),
                  "write 'attention B,H,L,d', 'gemm M,N,K' or 'layer_norm ROWS,CHANNELS'");
    if (shapes.attention.size() + shapes.gemm.size() + shapes.layer_norm.size() > most_shapes)
      throw Error(fmt::format("{} has more than {} shapes", path, most_shapes));
  }
  return shapes;
}

/// Which lengths each of the measured ones stands for: up to half-way to the next, on a scale of ratios.
std::map<std::int64_t, tuning::Range> ranges_of(std::vector<std::int64_t> measured, bool spread) {
  std::ranges::sort(measured);
  measured.erase(std::unique(measured.begin(), measured.end()), measured.end());
  std::map<std::int64_t, tuning::Range> ranges;
  const auto middle = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
  };
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::int64_t length = measured[i];
    const std::int64_t least = i > 0 ? middle(measured[i - 1], length) + 1 : (length + 1) / 2;
    const std::int64_t most = i + 1 < measured.size() ? middle(length, measured[i + 1]) : 2 * length;
    ranges[length] = {spread && i == 0 ? 0 : least, spread && i + 1 == measured.size() ? 0 : most};
  }
  return ranges;
}

class JobMaker {
 public:
  JobMaker(Device device, const TuneRequest& request)
      : device_(std::move(device)),
        request_(request),
        shapes_(request.shapes == "vit"    ? vit_shapes()
                : request.shapes == "long" ? long_shapes()
                                           : shapes_of_file(request.shapes)) {}

  std::vector<TuneJob> make() {
    for (const std::string& kernel : request_.kernels)
      for (const std::string& dtype : request_.dtypes) {
        if (kernel == "attention_forward" || kernel == "attention_backward")
          add_attention(kernel == "attention_backward", parse_dtype(dtype));
        else if (kernel == "layer_norm")
          add_layer_norm(parse_dtype(dtype));
        else if (kernel == "gemm")
          add_gemm(parse_dtype(dtype));
        else if (kernel == "gemm_provider")
          add_providers(parse_dtype(dtype));
        else
          throw Error("'" + kernel + "' cannot be tuned",
                      "choose from attention_forward, attention_backward, layer_norm, gemm and gemm_provider");
      }
    if (jobs_.empty())
      throw Error("there is nothing to tune: '" + request_.shapes + "' has no shape for the kernels that are asked for",
                  "write 'attention B,H,L,d', 'gemm M,N,K' or 'layer_norm ROWS,CHANNELS'");
    return std::move(jobs_);
  }

 private:
  void add_attention(bool backward, DType dtype) {
    for (const std::string& score_name : request_.scores) {
      const Score score = parse_score(score_name);
      std::map<std::int64_t, std::vector<std::int64_t>> lengths;  // by head size
      for (const auto& [b, h, l, d] : shapes_.attention) lengths[d].push_back(l);
      for (const auto& [b, h, l, d] : shapes_.attention) {
        if (d % base::head_size_step != 0 || d < base::smallest_head_size ||
            d > catalogue::largest_compiled_head_size(device_.info().toolchain))
          throw Error(fmt::format("head size {} cannot be tuned; it is a multiple of {} from {} to {}", d,
                                  base::head_size_step, base::smallest_head_size,
                                  catalogue::largest_compiled_head_size(device_.info().toolchain)));
        const AttentionWork work{backward, score, dtype, b, h, l, d};
        TuneJob job;
        job.key.kernel = backward ? "attention_backward" : "attention_forward";
        job.text = fmt::format("{} {} {} {},{},{},{}", job.key.kernel, name_of(dtype), score_name, b, h, l, d);
        job.key.score_class = class_of(score);
        job.key.head_size = head_sizes(lengths, catalogue::compiled_head_size(device_.info().toolchain, d));
        job.key.length = ranges_of(lengths[d], request_.spread)[l];
        job.workload = {.wanted = {.kernel = backward ? "attention_backward" : "attention_forward",
                                   .dtype = dtype,
                                   .score_class = class_of(score),
                                   .head_size = catalogue::compiled_head_size(device_.info().toolchain, d),
                                   .length = l},
                        .independent = b * h,
                        .rows = l};
        if (score != Score::softmax && score != Score::gelu) {
          AttentionWork gelu = work;
          gelu.score = Score::gelu;
          job.other = [gelu](const Device& device) { return make_bench(device, gelu); };
        }
        add(std::move(job), dtype, work.flops(), "GFLOP/s", work);
      }
    }
  }

  /// The head size itself, or with `spread` all from the next smaller one that is tuned too.
  tuning::Range head_sizes(const std::map<std::int64_t, std::vector<std::int64_t>>& tuned,
                           std::int64_t head_size) const {
    if (!request_.spread) return {head_size, head_size};
    const auto found = tuned.lower_bound(head_size);
    return {found == tuned.begin() ? 0 : std::prev(found)->first + 1, head_size};
  }

  void add_layer_norm(DType dtype) {
    if (shapes_.layer_norm.empty()) return;
    const LayerNormWork work{dtype, shapes_.layer_norm};
    TuneJob job;
    job.key.kernel = "layer_norm";
    job.text = fmt::format("layer_norm {}", name_of(dtype));
    job.workload = {.wanted = {.kernel = "layer_norm", .dtype = dtype}, .rows = shapes_.layer_norm.front().rows};
    add(std::move(job), dtype, work.bytes(), "GB/s", work);
  }

  /// The library's own shapes stand for products of any shape, and get one record. Those of a file stand for
  /// themselves, each N and K with all its M.
  void add_gemm(DType dtype) {
    const bool for_all = request_.spread || request_.shapes == "vit" || request_.shapes == "long";
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<GemmWork::Extents>> groups;
    for (const GemmWork::Extents& shape : shapes_.gemm)
      groups[for_all ? std::pair<std::int64_t, std::int64_t>() : std::pair(shape.n, shape.k)].push_back(shape);
    for (const auto& [extents, shapes] : groups) {
      const GemmWork work{dtype, shapes, true};
      const GemmWork::Extents& first = shapes.front();
      TuneJob job;
      job.key.kernel = "gemm";
      job.text = fmt::format("gemm {}", name_of(dtype));
      if (!for_all) {
        job.key.n = {first.n, first.n};
        job.key.k = {first.k, first.k};
        job.text += fmt::format(" N {}, K {}", first.n, first.k);
      }
      job.workload = {.wanted = {.kernel = "gemm", .dtype = dtype, .n = first.n, .k = first.k}, .rows = first.m};
      add(std::move(job), dtype, work.flops(), "GFLOP/s", work);
    }
  }

  void add_providers(DType dtype) {
    for (const GemmWork::Extents& shape : shapes_.gemm) {
      const GemmWork work{dtype, {shape}, false};
      TuneJob job;
      job.key.kernel = "gemm_provider";
      job.text = fmt::format("gemm_provider {} {},{},{}", name_of(dtype), shape.m, shape.n, shape.k);
      job.key.n = {shape.n, shape.n};
      job.key.k = {shape.k, shape.k};
      job.workload = {.wanted = {.kernel = "gemm_provider", .dtype = dtype, .n = shape.n, .k = shape.k},
                      .rows = shape.m};
      for (const GemmProvider provider : providers_for(dtype, shape)) {
        tuning::Record choice;
        choice.kernel = "gemm_provider";
        choice.providers = {std::string(name_of(provider))};
        choice.origin = "estimated: a candidate";
        job.choices.push_back(std::move(choice));
      }
      add(std::move(job), dtype, work.flops(), "GFLOP/s", work);
    }
  }

  /// Those that can serve such a product. Only the layout of the operands counts, so their memory is not filled.
  std::vector<GemmProvider> providers_for(DType dtype, const GemmWork::Extents& shape) const {
    DeviceTensors tensors(device_, "tuning");
    const Gemm product{.a = tensors.empty(dtype, {shape.m, shape.k}),
                       .b = tensors.empty(dtype, {shape.n, shape.k}).permute({1, 0}),
                       .c = tensors.empty(dtype, {shape.m, shape.n})};
    return gemm_providers(device_, product);
  }

  template <class Work>
  void add(TuneJob job, DType dtype, double amount, const char* unit, const Work& work) {
    job.key.dtypes = {dtype};
    job.work = amount;
    job.unit = unit;
    job.bench = [work](const Device& device) { return make_bench(device, work); };
    jobs_.push_back(std::move(job));
  }

  Device device_;
  const TuneRequest& request_;
  Shapes shapes_;
  std::vector<TuneJob> jobs_;
};

}  // namespace

std::vector<TuneJob> tune_jobs(const Device& device, const TuneRequest& request) {
  return JobMaker(device, request).make();
}

}  // namespace sylvit::tuner
