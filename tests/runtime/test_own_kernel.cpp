#include <sylvit/own_kernel.hpp>

#include <fstream>
#include <numeric>
#include <sys/stat.h>

#include "support.hpp"

using namespace sylvit;
using test::check_error;
using test::device;

namespace {

struct ScaleArguments {
  const float* in;
  float* out;
  float factor;
  std::int64_t count;
};

#if defined(SYLVIT_TOOLCHAIN_RTC)

/// out = factor · in
const char* const scale_text = R"(
  struct Scale {
    struct Arguments { const float* in; float* out; float factor; std::int64_t count; };
    static void run(const Arguments& a, const sycl::nd_item<3>& item, float*) {
      for (std::int64_t i = item.get_global_linear_id(); i < a.count; i += item.get_global_range().size())
        a.out[i] = a.factor * a.in[i];
    }
  };
)";

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

/// `count` floats on the device.
class OnDevice {
 public:
  OnDevice(const Device& on, const std::vector<float>& values)
      : device_(on), memory_(on, values.size() * sizeof(float), "a test"), count_(values.size()) {
    on.queue().copy(values.data(), memory_.as<float>(), count_).wait();
  }
  float* data() const { return memory_.as<float>(); }
  std::vector<float> read() const {
    device_.wait();
    std::vector<float> values(count_);
    device_.queue().copy(memory_.as<float>(), values.data(), count_).wait();
    return values;
  }

 private:
  Device device_;
  Memory memory_;
  std::size_t count_;
};

std::vector<float> scaled(const OwnKernel<ScaleArguments>& kernel, const Device& on, float factor,
                          const Grid& grid = {.groups = {1, 1, 4}, .work_items = {1, 1, 8}}) {
  const std::vector<float> values = ramp(100);
  const OnDevice in(on, values), out(on, std::vector<float>(values.size()));
  kernel.launch(on, grid, {in.data(), out.data(), factor, static_cast<std::int64_t>(values.size())});
  return out.read();
}

std::vector<float> times(float factor) {
  std::vector<float> values = ramp(100);
  for (float& value : values) value *= factor;
  return values;
}

std::string what_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::ptrdiff_t entries_of(const std::filesystem::path& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
}

#endif

}  // namespace

TEST_SUITE("runtime/own_kernel") {
#if !defined(SYLVIT_TOOLCHAIN_RTC)
  TEST_CASE("a library without run-time compiler says what to do instead") {
    check_error([] { OwnKernel<ScaleArguments>("Scale", KernelSource("struct Scale {};")); },
                {"no run-time compiler", "submit the kernel to the queue directly"});
  }
#else
  TEST_CASE("an application's kernel runs with its arguments") {
    const OwnKernel<ScaleArguments> scale("Scale", KernelSource(scale_text));
    CHECK(scaled(scale, device(), 2) == times(2));
    CHECK(scaled(scale, device(), -0.5F) == times(-0.5F));
    CHECK(scaled(scale, device(), 3, {.groups = {2, 3, 1}, .work_items = {2, 1, 4}}) == times(3));
  }

  TEST_CASE("it follows the given events, and nothing runs without work-groups") {
    const OwnKernel<ScaleArguments> scale("Scale", KernelSource(scale_text));
    const sycl::queue unordered(device().queue().get_context(), device().queue().get_device());
    const Device on(unordered);
    const OnDevice data(on, ramp(100));
    sycl::event last;
    for (int i = 0; i < 20; ++i)
      last = scale.launch(on, {.work_items = {1, 1, 8}}, {data.data(), data.data(), i % 2 == 0 ? 4.0F : 0.25F, 100},
                          {&last, 1});
    last = scale.launch(on, {.groups = {1, 0, 1}}, {nullptr, nullptr, 0, 100}, {&last, 1});
    last.wait();
    CHECK(data.read() == ramp(100));
  }

  TEST_CASE("local memory, sub-groups and work-groups of several axes are there") {
    struct SumArguments {
      const float* in;
      float* sums;
      std::int32_t* sub_group;
    };
    // Every work-group adds up its 8 x 8 numbers, by halves, and notes the sub-group size.
    const OwnKernel<SumArguments> sum("sums::Tree<8>", KernelSource(R"(
      namespace sums {
      template <int side>
      struct Tree {
        struct Arguments { const float* in; float* sums; std::int32_t* sub_group; };
        static void run(const Arguments& a, const sycl::nd_item<3>& item, float* local) {
          const auto me = item.get_local_linear_id();
          const auto group = item.get_group_linear_id();
          local[me] = a.in[group * side * side + item.get_local_id(1) * side + item.get_local_id(2)];
          for (int half = side * side / 2; half > 0; half /= 2) {
            sycl::group_barrier(item.get_group());
            if (me < half) local[me] += local[me + half];
          }
          if (me == 0) a.sums[group] = local[0];
          if (me == 0) *a.sub_group = static_cast<std::int32_t>(item.get_sub_group().get_max_local_range()[0]);
        }
      };
      })"),
                                      {.sub_group_size = 16, .local_memory = true});
    const OnDevice in(device(), ramp(256)), sums(device(), std::vector<float>(4)), sub_group(device(), {0.0F});
    sum.launch(device(), {.groups = {2, 1, 2}, .work_items = {1, 8, 8}, .local_floats = 64},
               {in.data(), sums.data(), reinterpret_cast<std::int32_t*>(sub_group.data())});
    CHECK(sums.read() == std::vector<float>{2080, 6176, 10272, 14368});
    CHECK(std::bit_cast<std::int32_t>(sub_group.read()[0]) == 16);
  }

  TEST_CASE("kernels of one name and different text are different kernels") {
    std::string text = scale_text;
    text.replace(text.find("a.factor * a.in[i]"), 18, "a.factor + a.in[i]");
    const OwnKernel<ScaleArguments> multiply("Scale", KernelSource(scale_text)), add("Scale", KernelSource(text));
    own_kernels_prepare(device(), {multiply, add});
    CHECK(scaled(multiply, device(), 2) == times(2));
    CHECK(scaled(add, device(), 2)[0] == 3);
  }

  TEST_CASE("a source is read from a file, with what it includes") {
    const test::TemporaryDirectory directory;
    std::filesystem::create_directories(directory.path() / "parts");
    const auto write = [&](const char* name, const char* text) { std::ofstream(directory.path() / name) << text; };
    write("scale.hpp",
          "#include <sycl/atomic_ref.hpp>\n#include \"parts/arguments.hpp\"\n"
          "struct Scale {\n  using Arguments = ScaleArguments;\n"
          "  static void run(const Arguments& a, const sycl::nd_item<3>& item, float*) {\n"
          "    if (item.get_global_linear_id() == 0)\n"
          "      for (int i = 0; i < a.count; ++i) a.out[i] = twice(a.factor) * a.in[i];\n  }\n};\n");
    write("parts/arguments.hpp",
          "#pragma once\n#include \"twice.hpp\"\n#include <sylvit/float16.hpp>\n"
          "struct ScaleArguments { const float* in; float* out; float factor; long count; };\n");
    write("parts/twice.hpp", "inline float twice(float x) { return 2 * x; }\n");
    const auto result = [&] {
      return scaled({"Scale", KernelSource::read(directory.path() / "scale.hpp")}, device(), 3);
    };
    CHECK(result() == times(6));
    // What it includes is a part of it.
    write("parts/twice.hpp", "inline float twice(float x) { return 4 * x; }\n");
    CHECK(result() == times(12));
    std::filesystem::remove(directory.path() / "parts" / "twice.hpp");
    check_error(result, {"includes \"twice.hpp\"", "not among its headers"});
    check_error([&] { KernelSource::read(directory.path() / "none.hpp"); }, {"there is no kernel source", "none.hpp"});
    check_error([&] { KernelSource::read(directory.path()); }, {"is not a file"});
    // What is no file is not opened: that would wait for somebody to write.
    const std::filesystem::path pipe = directory.path() / "pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    check_error([&] { KernelSource::read(pipe); }, {"pipe is not a file"});
  }

  TEST_CASE("only the given headers are included, wherever others may lie") {
    const std::string text = std::string("#include \"more.hpp\"\n") + scale_text;
    check_error([&] { KernelSource{text}; }, {"includes \"more.hpp\"", "not among its headers"});
    check_error([] { KernelSource("#include \"/etc/hostname\"\n"); }, {"/etc/hostname", "outside of its folder"});
    check_error([] { KernelSource(" # include \"a/../../b.hpp\"\n"); }, {"a/../../b.hpp", "outside of its folder"});
    const OwnKernel<ScaleArguments> scale("Scale", KernelSource(text, {{"more.hpp", "#define MORE 1"}}));
    CHECK(scaled(scale, device(), 2) == times(2));
  }

  TEST_CASE("what does not compile is one error with the lines of the compiler's log") {
    const auto said = [](const std::string& text) {
      return what_of([&] { scaled({"Scale", KernelSource(text)}, device(), 1); });
    };
    std::string text = scale_text;
    text.replace(text.find("a.factor * a.in[i]"), 18, "a.factr * a.in[i] + unknown(i)");
    const std::string sentence = said(text);
    CAPTURE(sentence);
    CHECK(sentence.starts_with("the kernel Scale does not compile:\n"));
    CHECK(sentence.find("kernels:6:22: error: no member named 'factr'") != std::string::npos);
    CHECK(sentence.find("unknown") != std::string::npos);
    CHECK(sentence.find("sylvit-embedded") == std::string::npos);
    CHECK(sentence.find(device().name()) != std::string::npos);
    // The kernel that is missing, its arguments that are, and those of another size.
    CHECK(said("struct Other {};").find("Scale") != std::string::npos);
    CHECK(said("struct Scale {};").find("Arguments") != std::string::npos);
    const std::string size = said(
        "struct Scale { struct Arguments { float* out; }; "
        "static void run(const Arguments&, const sycl::nd_item<3>&, float*) {} };");
    CHECK(size.find("Scale::Arguments is not as large as the struct that the application launches it with") !=
          std::string::npos);
    // The device is none the worse for it.
    CHECK(scaled({"Scale", KernelSource(scale_text)}, device(), 2) == times(2));
  }

  TEST_CASE("what cannot be a kernel or its launch is refused") {
    const KernelSource source(scale_text);
    const auto named = [&](const std::string& name) { return OwnKernel<ScaleArguments>(name, source); };
    check_error([&] { named(""); }, {"cannot be called \"\""});
    check_error([&] { named("1st"); }, {"cannot be called \"1st\""});
    check_error([&] { named("Scale; int x"); }, {"cannot be called"});
    check_error([] { KernelSource(" \n\t"); }, {"is empty"});
    check_error([&] { OwnKernel<ScaleArguments>("Scale", source, {.sub_group_size = -1}); }, {"sub-groups of -1"});

    const OwnKernel<ScaleArguments> plain = named("Scale");
    const OwnKernel<ScaleArguments> local("Scale", source, {.local_memory = true});
    const std::size_t most = device().info().max_work_group;
    check_error([&] { plain.launch(device(), {.local_floats = 8}, {}); }, {"Scale uses no local memory", "8 floats"});
    check_error([&] { local.launch(device(), {}, {}); }, {"Scale uses local memory", "0 floats"});
    check_error(
        [&] {
          plain.launch(device(), {.work_items = {1, 2, most}}, {});
        },
        {"work-groups of " + std::to_string(2 * most), "launch it with what the device has"});
    check_error([&] { local.launch(device(), {.local_floats = device().info().local_memory_bytes}, {}); },
                {"floats of local memory", std::to_string(device().info().local_memory_bytes)});
    check_error([&] { OwnKernel<ScaleArguments>("Scale", source, {.sub_group_size = 7}).prepare(device()); },
                {"sub-groups of 7", "give it one of those"});
  }

  TEST_CASE("a built kernel is kept where the library's are, under its text") {
    const test::TemporaryDirectory directory;
    const test::Setting setting("SYLVIT_CACHE_DIR", directory.path().string());
    const auto run = [](const std::string& text) { return scaled({"Scale", KernelSource(text)}, Device::open(), 2); };
    // Texts that nobody else has: within a process, a kernel is built once.
    std::string text(scale_text);
    text.append("// kept\n");
    run(text);
    const std::ptrdiff_t entries = entries_of(directory.path());
    CHECK(entries == 1);
    CHECK(run(text) == times(2));
    CHECK(entries_of(directory.path()) == entries);
    text.append("// another text\n");
    run(text);
    CHECK(entries_of(directory.path()) == entries + 1);
  }
#endif
}
