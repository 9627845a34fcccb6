// sylvit tune: finds the fastest tile numbers for this device and keeps them in the user's overlay directory.
#include <sylvit/error.hpp>
#include <sylvit/tuning.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fmt/chrono.h>
#include <set>

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "options/numbers.hpp"
#include "options/words.hpp"
#include "terminal/print.hpp"
#include "tuner/jobs.hpp"
#include "tuner/search.hpp"
#include "tuner/table_writer.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  tuner::TuneRequest request;
  double budget = 600;
  std::size_t candidates = 0;
  bool resume = false;
  std::string device;
  std::string output;
};

volatile std::sig_atomic_t interrupted = 0;
volatile std::time_t interrupted_at = 0;

/// Ctrl-C ends the work after the run that is on its way; a second one ends the program. One that comes at once is the
/// same, sent to the program and to its group, as timeout(1) does.
void interrupt(int signal) {
  const std::time_t now = std::time(nullptr);
  if (interrupted != 0 && now > interrupted_at + 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  if (interrupted == 0) interrupted_at = now;
  interrupted = 1;
}

class CatchInterrupt {
 public:
  CatchInterrupt() {
    struct sigaction action {};
    action.sa_handler = interrupt;
    sigaction(SIGINT, &action, &before_);
  }
  ~CatchInterrupt() {
    // After an interruption the program ends; the same signal sent to its group may still be on its way.
    if (interrupted == 0) sigaction(SIGINT, &before_, nullptr);
  }
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  struct sigaction before_ {};
};

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

/// What is worth trying, the most promising first: what serves other cases, what is a step away from the record in use,
/// and what the device allows.
std::vector<tuning::Record> candidates_of(const tuner::TuneJob& job, const tuning::Table& table,
                                          const tuning::Record& used, const DeviceInfo& device) {
  if (!job.choices.empty()) return job.choices;
  const tuner::Machine machine = tuner::Machine::of(device);
  std::vector<tuning::Record> result;
  std::set<tuning::TileNumbers> seen{tuner::effective_numbers(used, job.workload)};
  const auto add = [&](const tuning::Record& record) {
    if (seen.insert(tuner::effective_numbers(record, job.workload)).second) result.push_back(record);
  };
  const bool ahead_of_time = device.toolchain != Toolchain::rtc;
  if (ahead_of_time) {
    // What is compiled in, and nothing else.
    for (const tuning::Record* record : table.candidates_for(job.workload.wanted))
      if (record->runs_up_to >= job.workload.wanted.head_size && record->length.holds(job.workload.wanted.length))
        add(*record);
    return result;
  }
  for (const tuning::Record& record : table.records())
    if (record.kernel == used.kernel && tuner::is_plausible(record, machine, job.workload)) add(record);
  for (const tuning::Record& record : tuner::neighbours_of(used, machine, job.workload)) add(record);
  for (const tuning::Record& record : tuner::candidates_for(machine, job.workload)) add(record);
  return result;
}

/// The overlay's record for a job.
tuning::Record record_of(const tuner::TuneJob& job, const tuner::SearchResult& result, const DeviceInfo& device) {
  tuning::Record record = job.key;
  record.numbers = result.best.numbers;
  record.providers = result.best.providers;
  // All keys in one block: it serves no more of them than that.
  if (const auto resident = record.numbers.find("resident");
      resident != record.numbers.end() && resident->second == 1) {
    const std::int64_t most = record.number("key_block");
    record.length.most = record.length.most == 0 ? most : std::min(record.length.most, most);
  }
  record.origin = fmt::format(
      "measured: {} at {:.1f} {}, {}, of {} candidates ({}, {}, driver {}, {})", job.text, job.speed(result.best_ms),
      job.unit,
      result.improved ? fmt::format("{:.1f} before", job.speed(result.used_ms)) : "the record in use stays the fastest",
      result.tried + 1, device.name, name_of(device.toolchain), device.driver, today());
  return record;
}

/// The record that serves the job now.
tuning::Record used_record(const tuner::TuneJob& job, const tuning::Table& table) {
  if (const tuning::Record* used = table.match(job.workload.wanted)) return *used;
  if (job.choices.empty()) return table.find(job.workload.wanted);  // says that there is none
  tuning::Record first = job.choices.front();
  first.file = "the first provider";
  return first;
}

class Tuner {
 public:
  explicit Tuner(const Options& options)
      : options_(options),
        device_(Device::open(options.device)),
        table_(options.output.empty() ? tuning_overlay_directory() : std::filesystem::path(options.output),
               device_.info()),
        jobs_(tuner::tune_jobs(device_, options.request)) {}

  void run() {
    if (options_.resume) std::erase_if(jobs_, [&](const tuner::TuneJob& job) { return table_.has(job); });
    terminal::print("tuning {} ({}) in {:.0f} s: {} cases\n", device_.name(), name_of(device_.info().toolchain),
                    options_.budget, jobs_.size());
    Progress progress("cases", jobs_.size());
    for (std::size_t i = 0; i < jobs_.size() && interrupted == 0; ++i) {
      const double left = options_.budget - seconds();
      if (left <= 0) break;
      tune(jobs_[i], left / static_cast<double>(jobs_.size() - i), progress);
    }
    progress.clear();
    const std::string where = "what was found is in " + table_.path().string();
    if (interrupted != 0)
      throw Error(fmt::format("interrupted after {} of {} cases", done_, jobs_.size()),
                  done_ > 0 ? where + "; --resume goes on" : "--resume goes on");
    if (done_ < jobs_.size())
      throw Error(fmt::format("the budget was enough for {} of {} cases", done_, jobs_.size()),
                  done_ > 0 ? where + "; --resume goes on" : "give a larger --budget");
    if (done_ > 0) terminal::print("{} of {} cases are faster now; {}\n", improved_, done_, where);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void tune(const tuner::TuneJob& job, double budget, Progress& progress) {
    const tuning::Table& table = tuning::table_for(device_);
    const tuning::Record used = used_record(job, table);
    std::vector<tuning::Record> candidates = candidates_of(job, table, used, device_.info());
    if (options_.candidates > 0 && candidates.size() > options_.candidates) candidates.resize(options_.candidates);
    tuner::SearchOptions search;
    search.seconds = budget;
    search.stop = [] { return interrupted != 0; };
    search.progress = [&](std::size_t tried, double best_ms, double used_ms) {
      progress.advance(0, fmt::format("{}: {} of {} tried, best {:.1f} {}, in use {:.1f}", job.text, tried,
                                      candidates.size(), job.speed(best_ms), job.unit, job.speed(used_ms)));
    };
    tuner::SearchResult result = tuner::search(*job.bench(device_), used, candidates, search);
    if (!result.finished) return;
    if (result.improved && job.other && !tuner::keeps_up(*job.other(device_), used, result.best)) {
      result.remarks.push_back("the fastest is slow with gelu, which its record would serve, too");
      result.improved = false;
      result.best = used;
    }
    const tuning::Record found = record_of(job, result, device_.info());
    table_.put(found);
    // What comes after uses it already: providers are compared with the tiles that were just found.
    if (result.improved) device_ = device_.with_tuning(std::make_shared<const tuning::Table>(table.with(found)));
    ++done_;
    progress.clear();
    if (result.improved) {
      ++improved_;
      terminal::print("  {:<42} {:>7.1f} -> {:.1f} {} ({:+.1f} %), best of {} of {}\n", job.text,
                      job.speed(result.used_ms), job.speed(result.best_ms), job.unit,
                      100 * (result.used_ms / result.best_ms - 1), result.tried + 1, candidates.size() + 1);
    } else {
      terminal::print("  {:<42} {:>7.1f} {}, stays; {} of {} tried\n", job.text, job.speed(result.used_ms), job.unit,
                      result.tried, candidates.size());
    }
    for (const std::string& remark : result.remarks) terminal::print("    {}\n", remark);
    std::fflush(stdout);
    progress.advance(1);
  }

  const Options& options_;
  Device device_;
  tuner::TuneTable table_;
  std::vector<tuner::TuneJob> jobs_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t done_ = 0;
  std::size_t improved_ = 0;
};

void tune(const Options& options) {
  if (options.output.empty() && tuning_overlay_directory().empty())
    throw Error("there is no directory to write the table to", "set SYLVIT_TUNING_DIR, or give --output");
  const CatchInterrupt catch_interrupt;
  Tuner(options).run();
}

}  // namespace

void add_tune(CLI::App& program) {
  CLI::App* command = program.add_subcommand("tune", "Find the fastest tile numbers for a device");
  auto options = std::make_shared<Options>();
  tuner::TuneRequest& request = options->request;
  command
      ->add_option("--kernel", request.kernels,
                   "attention_forward, attention_backward, layer_norm, gemm, gemm_provider (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(request.kernels));
  command->add_option("--shapes", request.shapes, "vit, long, or a file with lines such as 'attention 8,6,197,64'")
      ->capture_default_str();
  command->add_option("--dtype", request.dtypes, "Storage types: f32, bf16, f16 (default: f32)")
      ->delimiter(',')
      ->check(storage_type_word);
  command->add_option("--score", request.scores, "Scores, the first of a class stands for it (default: relu, softmax)")
      ->delimiter(',')
      ->check(score_word);
  command->add_flag("--spread", request.spread,
                    "Let records serve head sizes and lengths around the measured ones too, for a table to ship");
  command->add_option("--budget", options->budget, "Seconds for all of it")
      ->check(positive_number)
      ->capture_default_str();
  command
      ->add_option("--candidates", options->candidates,
                   "Try at most so many for each case, the most promising (default: what the budget allows)")
      ->check(unsigned_number);
  command->add_flag("--resume", options->resume, "Leave out what is in the table already");
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->add_option("--output", options->output, "Directory of the table (default: the overlay directory)");
  command->callback([options] { tune(*options); });
}

}  // namespace sylvit::cli
