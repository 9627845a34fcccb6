// sylvit compare as people call it, on a model small enough to take seconds.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <regex>
#include <sched.h>

#include "support.hpp"

using sylvit::test::CommandResult;
using sylvit::test::read_file;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;
using Json = nlohmann::ordered_json;

namespace {

const std::string small =
    " --width 64 --depth 2 --heads 2 --mlp 96 --patch 8 --image-size 32 --classes 7 --image-count 3 --seconds 0.01 "
    "--sweep 2 --batch 3 ";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Json report_in(const std::filesystem::path& directory) { return Json::parse(read_file(directory / "report.json")); }

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// That this process may run on.
std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

CommandResult compare(const std::string& arguments, const std::string& environment = "") {
  return run_sylvit("compare" + arguments, environment);
}

/// The program fails with one sentence that has these parts, and leaves no report behind.
void check_refused(const std::string& arguments, const std::filesystem::path& out,
                   std::initializer_list<std::string> parts, const std::string& environment = "", int exit_code = 1) {
  const CommandResult result = compare(arguments + " --out " + out.string(), environment);
  CAPTURE(arguments);
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  CHECK(std::count(result.errors.begin(), result.errors.end(), '\n') == 1);
  for (const std::string& part : parts) CHECK_MESSAGE(has(result.errors, part), part);
  std::error_code none;
  CHECK(!std::filesystem::exists(out / "report.json", none));
  CHECK(!std::filesystem::exists(out / "index.html", none));
}

}  // namespace

TEST_SUITE("compare/compare") {
  TEST_CASE("a run writes a page and a report with everything in it") {
    const TemporaryDirectory directory;
    const std::filesystem::path out = directory.path() / "deep" / "report";
    const CommandResult result = compare(small + "--dtypes f32,bf16 --machine 'the desk' --out " + out.string(),
                                         "env -u OCL_ICD_FILENAMES SYLVIT_GEMM=builtin OMP_NUM_THREADS=2 UNRELATED=1");
    CAPTURE(result.errors);
    REQUIRE(result.exit_code == 0);
    CHECK(has(result.output, "width 64, depth 2, MLP 96, patch 8, 2 heads relu/L"));
    CHECK(has(result.output, "times as fast as softmax ("));
    CHECK(has(result.output, "2 of 2 images"));
    CHECK(has(result.output, "\nproducts by builtin\n"));
    CHECK(has(result.output, "All 4 combinations"));
    CHECK(has(result.output, "Weights: random, seed 0. Images: 3 synthetic."));
    // Three files and nothing else, not even a temporary one.
    CHECK(std::distance(std::filesystem::directory_iterator(out), std::filesystem::directory_iterator()) == 3);
    const std::string csv = read_file(out / "report.csv");
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);

    const Json report = report_in(out);
    CHECK(report["kind"] == "sylvit compare");
    const Json& run = report["runs"][0];
    CHECK(has(run["command"].get<std::string>(), "compare --width 64"));
    CHECK(run["devices"][0]["bandwidth_gbs"].get<double>() > 0);
    CHECK(run["machine"] == "the desk");
    CHECK(std::regex_match(run["commit"].get<std::string>(), std::regex("unknown|[0-9a-f]{12,}(-dirty)?")));
    const auto named = [](const Json& list, const std::string& name) -> std::string {
      for (const Json& one : list)
        if (one["name"] == name) return one["text"];
      return "none";
    };
    CHECK(named(run["environment"], "SYLVIT_GEMM") == "builtin");
    CHECK(named(run["environment"], "OMP_NUM_THREADS") == "2");
    CHECK(named(run["environment"], "UNRELATED") == "none");
    CHECK(named(run["environment"], "PATH") == "none");
    CHECK(named(run["environment"], "OCL_ICD_FILENAMES") == "none");  // which the program sets for itself
    CHECK(!run["packages"].empty());
#if defined(SYLVIT_TOOLCHAIN_RTC)
    CHECK(has(named(run["packages"], "intel-sycl-rt"), "."));
    CHECK(has(named(run["packages"], "intel-opencl-rt"), "."));
#endif
    CHECK(run["devices"][0]["yardsticks"].size() == 2);
    CHECK(run["devices"][0]["kernels"].get<int>() > 20);
    CHECK(run["devices"][0]["kernels_seconds"].get<double>() > 0);
    CHECK(!run["devices"][0]["tuning"].empty());
    REQUIRE(run["results"].size() == 4);
    for (const Json& one : run["results"]) {
      const bool exact = one["dtype"] == "f32";
      CAPTURE(one["dtype"]);
      CHECK(one["error"] == "");
      const Json& accuracy = one["accuracy"];
      CHECK(accuracy["judged"] == 2);
      CHECK(accuracy["logits"]["l2"].get<double>() < (exact ? 1e-5 : 0.05));
      // Rounding to bf16 shows: the outputs are not those of f32.
      CHECK(accuracy["logits"]["l2"].get<double>() > (exact ? 0 : 1e-4));
      CHECK(accuracy["first_outside"] == "");
      CHECK(std::abs(accuracy["loss"].get<double>() - accuracy["reference_loss"].get<double>()) < (exact ? 1e-4 : 0.1));
      // patches, embedding, 7 a block, norm, head
      REQUIRE(accuracy["layers"].size() == 2 + 2 * 7 + 2);
      CHECK(accuracy["layers"][4]["name"] == "blocks.0.attn");
      for (const Json& layer : accuracy["layers"]) CHECK(layer["l2"].get<double>() < (exact ? 1e-5 : 0.05));
      CHECK(one["gradients"]["parameters"].size() > 20);
      for (const Json& parameter : one["gradients"]["parameters"]) {
        CAPTURE(parameter["name"]);
        CHECK(parameter["l2"].get<double>() < (exact ? 1e-4 : 0.1));
      }
      CHECK(one["top1"].size() == 3);
      CHECK(one["logits"].size() == 2 * 7);
      // Inference over 2 and 3 images, training over 3.
      REQUIRE(one["speeds"].size() == 3);
      for (const Json& speed : one["speeds"]) {
        // As many as an interval of 95 % wants, of every round.
        CHECK(speed["ms"]["count"].get<std::size_t>() >= 6);
        CHECK(speed["ms"]["samples"].size() == speed["ms"]["count"].get<std::size_t>());
        CHECK(speed["turns"].get<int>() >= 1);
        CHECK(speed["ms"]["best"].get<double>() <= speed["ms"]["median"].get<double>());
        CHECK(speed["images_per_s"].get<double>() > 0);
        CHECK(speed["compute_share"].get<double>() > 0);
        CHECK(speed["bandwidth_share"].get<double>() > 0);
        CHECK(speed["peak_bytes"].get<double>() > 0);
      }
      CHECK(one["layers"].size() > 10);
      // Who computed the products, forward and backward, is what was asked for.
      const auto engine_of = [&](const std::string& pass, const std::string& layer) -> std::string {
        for (const Json& use : one["engines"])
          if (use["pass"] == pass && use["layer"] == layer) return use["engine"];
        return "none";
      };
      CHECK(engine_of("forward", "blocks.*.mlp.fc1") == "builtin");
      CHECK(engine_of("backward", "blocks.*.mlp.fc1.weight gradient") == "builtin");
      CHECK(engine_of("backward", "head.weight gradient") == "builtin");
      CHECK(has(engine_of("forward", "blocks.*.attn"), "AttentionForward"));
      CHECK(has(engine_of("backward", "blocks.*.attn gradient"), "AttentionBackward"));
      for (const Json& use : one["engines"]) CHECK(!use["kernels"].empty());
    }
    // All types and scores took turns.
    CHECK(run["results"][0]["speeds"][0]["turns"] == run["results"][3]["speeds"][0]["turns"]);
    CHECK(run["results"][0]["speeds"][0]["turns"] != run["results"][0]["speeds"][1]["turns"]);
    // Two models, and of each the two types beside each other, layer by layer.
    REQUIRE(report["pairs"].size() == 2);
    CHECK(report["pairs"][0]["layers"].size() >= 18);

    const std::string page = read_file(out / "index.html");
    CHECK(has(page, "SYLVIT_GEMM=builtin"));
    for (const char* part : {"Summary", "Roofline", "Error per layer", "Batch sizes", "Throughput", "--width 64"})
      CHECK_MESSAGE(has(page, part), part);
    for (const char* part : {"<script", "http://", "https://", "src=", "@import", "url("})
      CHECK_MESSAGE(!has(page, part), part);

    // The same again over what is there, with a tolerance that nothing keeps: the first such layer is named.
    const CommandResult strict = compare(small +
                                         "--dtypes f32 --scores relu --forward-only --gradients none "
                                         "--tolerance f32=1e-12 --out " +
                                         out.string());
    CAPTURE(strict.errors);
    REQUIRE(strict.exit_code == 0);
    CHECK(has(strict.output, "beyond the tolerance"));
    const Json again = report_in(out);
    CHECK(again["runs"][0]["results"][0]["accuracy"]["first_outside"] == "embedding");
    CHECK(again["runs"][0]["results"][0]["gradients"].is_null());
    CHECK(has(read_file(out / "index.html"), "Beyond the tolerance"));
  }

  TEST_CASE("weights and images of files") {
    const TemporaryDirectory directory;
    const std::filesystem::path out = directory.path() / "report";
    const std::string sizes = " --width 64 --depth 2 --heads 2 --mlp 96 --patch 8 --image-size 32 --classes 7 ";
    const std::string weights = directory.path() / "w.safetensors";
    REQUIRE(run_sylvit("init" + sizes + "--score relu --seed 5 --output " + weights).exit_code == 0);
    const std::string unscored = "--dtypes f32 --seconds 0 --sweep 1 --batch 1 --forward-only --gradients none ";
    const std::string quick = "--scores relu " + unscored;
    const std::string photos = (sylvit::test::image_directory() / "baseline.jpg").string() + " " +
                               (sylvit::test::image_directory() / "rgb8.png").string();
    const CommandResult result =
        compare(sizes + quick + "--weights " + weights + " --out " + out.string() + " --images " + photos);
    CAPTURE(result.errors);
    REQUIRE(result.exit_code == 0);
    const Json of_files = report_in(out)["runs"][0]["models"][0];
    CHECK(of_files["weights"] == weights);
    CHECK(of_files["images"] == "2 image files");
    // The seed alone gives the same weights, and so the same fingerprint; another seed another.
    REQUIRE(compare(sizes + quick + "--seed 5 --out " + out.string()).exit_code == 0);
    const Json of_seed = report_in(out)["runs"][0]["models"][0];
    CHECK(of_seed["weights_fingerprint"] == of_files["weights_fingerprint"]);
    CHECK(of_seed["images_fingerprint"] != of_files["images_fingerprint"]);

    // The file tells model and score; another score is for who insists.
    const CommandResult untold = compare(" " + unscored + "--weights " + weights + " --out " + out.string());
    CAPTURE(untold.errors);
    REQUIRE(untold.exit_code == 0);
    CHECK(untold.errors.find("w.safetensors is for relu, and no other score is compared") != std::string::npos);
    const Json models = report_in(out)["runs"][0]["models"];
    REQUIRE(models.size() == 1);
    CHECK(models[0]["score"] == "relu");
    CHECK(models[0]["name"] == of_files["name"]);
    std::filesystem::remove_all(out);
    check_refused(" --scores softmax " + unscored + "--weights " + weights, out,
                  {"--score softmax contradicts", "written for relu", "--override"});
    const std::string other = " --width 64 --depth 2 --heads 2 --mlp 80 --patch 8 --image-size 32 --classes 7 ";
    check_refused(other + quick + "--override --weights " + weights, out,
                  {"w.safetensors", "fc1.weight", "[96, 64]", "[80, 64]"});
    check_refused(sizes + quick + "--images /nonexistent.png", out, {"nonexistent.png"});
    check_refused(sizes + quick + "--images " + weights, out, {"w.safetensors", "images"});
  }

  TEST_CASE("two processes on a core each, as if on two machines, become one report") {
    const TemporaryDirectory directory;
    const auto pinned = [&](const std::string& name, int core) {
      const std::string out = directory.path() / name;
      return std::async(std::launch::async, [core, out] {
        return compare(small + "--dtypes f32 --forward-only --gradients none --out " + out,
                       "taskset -c " + std::to_string(core));
      });
    };
    const std::vector<int> cores = usable_cores();
    auto first = pinned("a", cores.front());
    auto second = pinned("b", cores.back());
    CHECK(first.get().exit_code == 0);
    CHECK(second.get().exit_code == 0);
    const std::string files =
        (directory.path() / "a" / "report.json").string() + " " + (directory.path() / "b" / "report.json").string();
    const std::filesystem::path out = directory.path() / "merged";
    const CommandResult result = compare(" --merge " + files + " --out " + out.string());
    CAPTURE(result.errors);
    REQUIRE(result.exit_code == 0);
    // Both were the same machine.
    CHECK(has(result.output, ", run 2: "));
    const Json report = report_in(out);
    REQUIRE(report["runs"].size() == 2);
    for (const Json& run : report["runs"]) CHECK(run["cores"] == 1);
    // One device type and two scores in each: a pair for each score, and the same bits on both "machines".
    REQUIRE(report["pairs"].size() == 2);
    for (const Json& pair : report["pairs"]) {
      CHECK(pair["run_a"] == 1);
      CHECK(pair["run_b"] == 0);
      CHECK(pair["logits"]["l2"] == 0);
      CHECK(pair["top1_agreement"] == 1);
    }
    CHECK(has(read_file(out / "index.html"), "run 2"));

    // A merged report can be merged, and is a baseline. Against itself nothing has changed.
    const std::string merged = (out / "report.json").string();
    CHECK(compare(" --merge " + merged + " --baseline " + merged + " --out " + (directory.path() / "x").string())
              .exit_code == 0);

    // A baseline that was ten times as fast, and more accurate.
    Json faster = report;
    for (Json& run : faster["runs"])
      for (Json& one : run["results"])
        for (Json& speed : one["speeds"]) {
          // Far enough apart for any machine: the slowest of the samples would be the fastest now.
          Json& ms = speed["ms"];
          const double median = ms["median"];
          const auto [fastest, slowest] = std::ranges::minmax(ms["samples"].get<std::vector<double>>());
          const double factor = std::max(10.0, 2 * slowest / fastest);
          ms["median"] = median / factor;
          for (Json& sample : ms["samples"]) sample = sample.get<double>() / factor;
        }
    write(directory.path() / "faster.json", faster.dump());
    const std::string against = " --merge " + merged + " --out " + (directory.path() / "y").string() + " --baseline ";
    const CommandResult slower = compare(against + (directory.path() / "faster.json").string());
    CHECK(slower.exit_code == 1);
    CHECK(has(slower.errors, "times the baseline's"));
    // A sentence for each of 2 runs, 2 scores and 2 batch sizes, and one for all.
    CHECK(std::count(slower.errors.begin(), slower.errors.end(), '\n') == 9);
    // The report is there all the same, with the baseline in it.
    const std::string beside = read_file(directory.path() / "y" / "index.html");
    CHECK(has(beside, "Beside the baseline"));
    CHECK(has(beside, "slower, beyond the limit"));
    CHECK(report_in(directory.path() / "y")["baseline"]["compared"] == 4);
    CHECK(std::filesystem::exists(directory.path() / "y" / "index.html"));
    CHECK(compare(against + (directory.path() / "faster.json").string() + " --max-slowdown 1e9").exit_code == 0);
    Json exact = report;
    exact["runs"][0]["results"][0]["accuracy"]["logits"]["l2"] = -0.5;
    write(directory.path() / "exact.json", exact.dump());
    const CommandResult worse = compare(against + (directory.path() / "exact.json").string());
    CHECK(worse.exit_code == 1);
    CHECK(has(worse.errors, "relative error"));
    CHECK(compare(against + (directory.path() / "exact.json").string() + " --max-error 0.6").exit_code == 0);

    // A report of a stranger, whose names would clear the screen.
    Json steering = report;
    for (Json& run : steering["runs"]) {
      run["devices"][0]["name"] = "\x1b[2J\u202ecard";
      run["results"][0]["accuracy"]["first_outside"] = "\x1b]0;layer\x07";
      run["results"][0]["accuracy"]["first_outside_error"] = 1;
    }
    write(directory.path() / "steering.json", steering.dump());
    const CommandResult harmless = compare(" --merge " + (directory.path() / "steering.json").string() + " --out " +
                                           (directory.path() / "z").string());
    CHECK(harmless.exit_code == 0);
    CHECK(has(harmless.output, R"(\x1b[2J\xe2\x80\xaecard)"));
    CHECK(has(harmless.output, R"(\x1b]0;layer\x07)"));
    CHECK(!has(harmless.output, "\x1b"));
    CHECK(!has(harmless.output, "\u202e"));
  }

  TEST_CASE("what cannot work is said in one sentence, before anything is measured") {
    const TemporaryDirectory directory;
    const std::filesystem::path out = directory.path() / "report";
#if !defined(SYLVIT_TOOLCHAIN_ACPP)  // which always shows its CPU device
    check_refused(small, out, {"no SYCL device was found", "ONEAPI_DEVICE_SELECTOR"},
                  "ONEAPI_DEVICE_SELECTOR=level_zero:gpu");
#endif
    check_refused(small + "--devices nonesuch", out, {"nonesuch"});
    write(directory.path() / "file", "x");
    check_refused(small, directory.path() / "file" / "report", {"cannot write", "file/report", "--out"});
    check_refused(small, "/proc/report", {"cannot write", "/proc/report"});
    check_refused(small + "--dtypes f64", out, {"f64"}, "", 2);
    check_refused(small + "--scores reluu", out, {"reluu", "relu"}, "", 2);
    check_refused(small + "--models S/61", out, {"S/61", "known models"}, "", 2);
    check_refused(" --batch 0", out, {"--batch: ", "not 0"}, "", 2);
    check_refused(small + "--sweep 4,-1", out, {"--sweep", "-1"}, "", 2);
    check_refused(small + "--judged 0", out, {"--judged"}, "", 2);
    check_refused(" --image-count 10000000000000", out, {"not enough memory"});
    check_refused(" --image-count 1000000000000000000", out, {"64 bits"});
    check_refused(small + "--tolerance f32", out, {"--tolerance: 'f32'", "f32=1e-4"}, "", 2);
    check_refused(small + "--baseline /nonexistent.json", out, {"/nonexistent.json"});
    check_refused(" --merge /nonexistent.json", out, {"/nonexistent.json", "does not exist"});
    write(directory.path() / "bad.json", "{\"kind\": \"sylvit compare\", \"schema\": 1, \"runs\": [");
    check_refused(" --merge " + (directory.path() / "bad.json").string(), out, {"bad.json", "damaged"});
    write(directory.path() / "new.json", R"({"kind": "sylvit compare", "schema": 3})");
    check_refused(" --merge " + (directory.path() / "new.json").string(), out, {"new.json", "schema 3", "up to 2"});
  }

  TEST_CASE("a combination that fails is in the report, and the exit code says so") {
    const TemporaryDirectory directory;
    // More images than any memory holds fail when the speed is measured; what came before is there.
    const CommandResult result = compare(
        " --width 64 --depth 1 --heads 2 --mlp 96 --patch 8 --image-size 32 --classes 7 "
        "--scores relu --dtypes f32 --gradients none --forward-only --seconds 0 "
        "--batch 1 --sweep 100000000 --out " +
        directory.path().string());
    CAPTURE(result.errors);
    CHECK(result.exit_code == 1);
    CHECK(has(result.errors, "cannot allocate"));
    CHECK(has(result.errors, "1 combination of device, model and type failed"));
    const Json one = report_in(directory.path())["runs"][0]["results"][0];
    CHECK(one["failed_in"] == "forward speed");
    CHECK(one["accuracy"]["logits"]["l2"].get<double>() < 1e-5);
    CHECK(has(read_file(directory.path() / "index.html"), "Failed: "));
  }
}
