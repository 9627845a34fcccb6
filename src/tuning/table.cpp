#include "tuning/table.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <shared_mutex>

#include "base/head_sizes.hpp"
#include "runtime/embedded.hpp"
#include "tuning/overlay.hpp"
#include "tuning/record_check.hpp"

namespace sylvit::tuning {

namespace {

std::string folder_of(std::string_view name) { return std::string(name.substr(0, name.find('/'))); }

std::string known_files() {
  std::string names;
  for (const TableFile& file : embedded()) names += (names.empty() ? "" : ", ") + file.name;
  return names;
}

const TableFile* embedded_file(std::string_view name) {
  const auto found = std::ranges::find(embedded(), name, &TableFile::name);
  return found == embedded().end() ? nullptr : &*found;
}

/// What decides about a device's table beside the device.
constexpr std::array settings = {"SYLVIT_TUNING_TABLE", "SYLVIT_TUNING_DIR", "XDG_CONFIG_HOME", "HOME"};

/// A variable that is set to nothing means something else than one that is not there (see tuning_overlay_directory).
std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view("\0", 1) : std::string_view(value);
}

/// Is it the same to the tables?
bool alike(const DeviceInfo& a, const DeviceInfo& b) {
  return a.name == b.name && a.toolchain == b.toolchain && a.backend == b.backend && a.type == b.type &&
         a.architecture == b.architecture && a.local_memory_bytes == b.local_memory_bytes &&
         a.max_work_group == b.max_work_group && a.compute_units == b.compute_units &&
         a.sub_group_sizes == b.sub_group_sizes;
}

#if defined(SYLVIT_TUNING_VARIANTS)
constexpr bool wide_variants = true;
#else
constexpr bool wide_variants = false;
#endif

}  // namespace

Table::Table(std::string name, std::span<const TableFile* const> files) : name_(std::move(name)) {
  for (const TableFile* file : files) {
    links_.push_back({file->name, ""});
    records_.insert(records_.end(), file->records.begin(), file->records.end());
  }
}

Table Table::parse(std::string_view name, std::string_view json) {
  const TableFile file = read_table(std::string(name), folder_of(name), json);
  if (!file.problems.empty()) {
    const Problem& first = file.problems.front();
    throw Error("the tuning table " + first.file +
                (first.record > 0 ? ", record " + std::to_string(first.record) : "") +
                " cannot be used: " + first.reason);
  }
  const std::array files{&file};
  return {std::string(name), files};
}

/// Compiled ahead of time, a library holds what its embedded files lead to; an overlay can only choose among that.
bool Table::usable(const Record& record, const Case& wanted) const {
  if (record.runs_up_to < wanted.head_size) return false;
  if (!ahead_of_time_ || !record.overlay || record.numbers.empty()) return true;
  return std::ranges::any_of(candidates_for(wanted), [&](const Record* compiled) {
    return !compiled->overlay && compiled->numbers == record.numbers;
  });
}

const Record* Table::match(const Case& wanted) const {
  const Record* second_best = nullptr;
  for (const Record& record : records_) {
    if (!record.fits(wanted)) continue;
    if (usable(record, wanted)) return &record;
    if (second_best == nullptr && !record.overlay) second_best = &record;
  }
  return second_best;
}

const Record& Table::find(const Case& wanted) const {
  const Record* found = match(wanted);
  if (found == nullptr)
    throw Error("the tuning table " + name_ + " has no record for " + std::string(wanted.kernel) + " with " +
                std::string(name_of(wanted.dtype)) + ", head size " + std::to_string(wanted.head_size) +
                " and length " + std::to_string(wanted.length));
  return *found;
}

std::vector<const Record*> Table::candidates_for(const Case& wanted) const {
  std::vector<const Record*> result;
  Case any_head_size = wanted;
  for (const Record& record : records_) {
    if (wide_variants) any_head_size.head_size = std::max(record.head_size.least, std::int64_t{1});
    if (!record.fits_some_length(any_head_size)) continue;
    result.push_back(&record);
    const bool last = !record.overlay && record.length.unlimited() && record.m.unlimited() && record.n.unlimited() &&
                      record.k.unlimited();
    if (last && !wide_variants) break;
  }
  return result;
}

std::string Table::why_not(const Record& record, const Case& wanted) const {
  const Record* chosen = match(wanted);
  if (&record == chosen) return {};
  if (std::string reason = record.mismatch(wanted); !reason.empty()) return reason;
  if (record.runs_up_to < wanted.head_size)
    return record.runs_up_to == Record::runs_never
               ? "the device cannot run it"
               : "the device can run it up to head size " + std::to_string(record.runs_up_to) + " only";
  if (!usable(record, wanted)) return "this library was compiled without its variant";
  return "an earlier record fits too";
}

Table Table::with(Record record) const {
  Table result = *this;
  record.file = "candidate";
  record.runs_up_to = Record::runs_always;
  result.records_.insert(result.records_.begin(), std::move(record));
  return result;
}

std::span<const TableFile> embedded() {
  static const std::vector<TableFile> files = [] {
    std::vector<TableFile> result;
    for (const EmbeddedFile& file : embedded_tables()) {
      const std::string name(file.name.substr(0, file.name.rfind(".json")));
      result.push_back(read_table(name, folder_of(name), file.content));
      if (!result.back().problems.empty())
        throw Error("an embedded tuning table cannot be used: " + result.back().problems.front().text());
    }
    return result;
  }();
  return files;
}

Table embedded_table(std::string_view name, std::string_view backend) {
  const TableFile* first = embedded_file(name);
  if (first == nullptr)
    throw Error("'" + std::string(name) + "' is not a tuning table", "the tables are: " + known_files());
  std::vector<const TableFile*> files{first};
  const std::string folder = backend.empty() ? folder_of(name) : std::string(backend);
  if (!first->family.is_default())
    if (const TableFile* rest = embedded_file(folder + "/default"); rest != nullptr) files.push_back(rest);
  return {std::string(name), files};
}

/// Puts the chain of a device together.
class ChainMaker {
 public:
  explicit ChainMaker(const DeviceInfo& device) : device_(device), backend_(backend_of(device)) {
    table_.ahead_of_time_ = device.toolchain != Toolchain::rtc;
  }

  Table forced(const std::string& name) {
    const Table chain = embedded_table(name);
    for (const Link& link : chain.links()) add(*embedded_file(link.file), "asked for by SYLVIT_TUNING_TABLE");
    table_.name_ = name;
    return std::move(table_);
  }

  Table own(const std::filesystem::path& overlay) {
    add_overlay(overlay);
    bool known = add_embedded([&](const Family& family) { return family.names(device_); }, "device name");
    known = add_embedded([&](const Family& family) { return family.has_architecture_of(device_); },
                         "architecture " + device_.architecture) ||
            known;
    if (!known) add_nearest();
    const TableFile* rest = embedded_file(backend_ + "/default");
    if (rest == nullptr) throw Error("the tuning table " + backend_ + "/default is not in this library");
    add(*rest, "default of the backend");
    if (table_.ahead_of_time_) leave_out_what_is_not_compiled();
    return std::move(table_);
  }

 private:
  void add(const TableFile& file, std::string why, bool overlay = false) {
    table_.links_.push_back({file.name, std::move(why)});
    if (!overlay && table_.name_.empty()) table_.name_ = file.name;
    const Limits limits = Limits::of(device_);
    for (Record record : file.records) {
      record.overlay = overlay;
      if (const std::string flaw = flaw_of(record); !flaw.empty()) {
        leave_out(record, flaw, overlay);
        continue;
      }
      record.runs_up_to = largest_runnable_head_size(record, limits);
      if (record.runs_up_to == 0 && overlay) {
        leave_out(record, obstacle_of(record, limits, base::smallest_head_size), overlay);
        continue;
      }
      if (record.runs_up_to == 0) record.runs_up_to = Record::runs_never;
      table_.records_.push_back(std::move(record));
    }
  }

  void leave_out(const Record& record, const std::string& reason, bool overlay) {
    if (overlay) table_.problems_.push_back({record.file, record.position, record.kernel, reason});
  }

  void leave_out_what_is_not_compiled() {
    std::erase_if(table_.records_, [&](const Record& record) {
      const auto is_it = [&](const Record& other) {
        return !other.overlay && other.kernel == record.kernel && other.numbers == record.numbers;
      };
      if (!record.overlay || record.numbers.empty() || std::ranges::any_of(table_.records_, is_it)) return false;
      leave_out(record, "this library was compiled ahead of time, without its variant", true);
      return true;
    });
  }

  /// Files that name the device, then those of its architecture, then those for the whole backend.
  void add_overlay(const std::filesystem::path& directory) {
    const std::vector<TableFile> files = read_overlay(directory, backend_);
    for (const TableFile& file : files)
      table_.problems_.insert(table_.problems_.end(), file.problems.begin(), file.problems.end());
    const auto add_those = [&](auto&& wanted) {
      for (const TableFile& file : files)
        if (!file.records.empty() && file.family.serves(backend_) && wanted(file.family)) add(file, "overlay", true);
    };
    add_those([&](const Family& family) { return family.names(device_); });
    add_those([&](const Family& family) { return !family.names(device_) && family.has_architecture_of(device_); });
    add_those([&](const Family& family) { return family.is_default(); });
  }

  template <class Wanted>
  bool add_embedded(const Wanted& wanted, const std::string& why) {
    bool found = false;
    for (const TableFile& file : embedded()) {
      const auto is_there = [&](const Link& link) { return link.file == file.name; };
      if (!file.family.serves(backend_) || !wanted(file.family) || std::ranges::any_of(table_.links_, is_there))
        continue;
      add(file, why);
      found = true;
    }
    return found;
  }

  void add_nearest() {
    const TableFile* nearest = nullptr;
    double least = 0;
    for (const TableFile& file : embedded()) {
      if (!file.family.serves(backend_) || file.family.is_default()) continue;
      const double distance = file.family.distance(device_);
      if (distance < 0 || (nearest != nullptr && distance >= least)) continue;
      nearest = &file;
      least = distance;
    }
    if (nearest == nullptr) return;
    const std::string what =
        device_.architecture.empty() ? "a device of unknown architecture" : "architecture " + device_.architecture;
    table_.note_ = "no table is for " + what + ": " + nearest->name +
                   " is used, whose devices are the most alike in sub-groups, local memory and compute units";
    add(*nearest, "nearest family");
  }

  const DeviceInfo& device_;
  std::string backend_;
  Table table_;
};

const Table& table_for(const DeviceInfo& device) {
  if (device.tuning) return *device.tuning;
  // Asked for with every launch, so that finding what is there allocates nothing. Entries are never removed: callers
  // hold on to the tables.
  struct Entry {
    DeviceInfo device;
    std::array<std::string, settings.size()> values;
    Table table;
  };
  static std::deque<Entry> entries;
  static std::shared_mutex mutex;
  std::array<std::string_view, settings.size()> values;
  std::ranges::transform(settings, values.begin(), setting);
  const auto find = [&]() -> const Table* {
    for (const Entry& entry : entries)
      if (std::ranges::equal(entry.values, values) && alike(entry.device, device)) return &entry.table;
    return nullptr;
  };
  {
    const std::shared_lock lock(mutex);
    if (const Table* found = find(); found != nullptr) return *found;
  }
  const std::unique_lock lock(mutex);
  if (const Table* found = find(); found != nullptr) return *found;
  const std::string_view forced = std::getenv(settings.front()) == nullptr ? "" : values.front();
  if (!forced.empty() && embedded_file(forced) == nullptr)
    throw Error("SYLVIT_TUNING_TABLE='" + std::string(forced) + "' is not a tuning table",
                "the tables are: " + known_files());
  ChainMaker maker(device);
  Entry entry{device, {}, forced.empty() ? maker.own(tuning_overlay_directory()) : maker.forced(std::string(forced))};
  std::ranges::copy(values, entry.values.begin());
  return entries.emplace_back(std::move(entry)).table;
}

}  // namespace sylvit::tuning

namespace sylvit {

TuningChoice tuning_choice(const DeviceInfo& device, const TuningCase& wanted) {
  const tuning::Record& record = tuning::table_for(device).find(wanted);
  return {record.file, record.position, record.numbers, record.providers, record.origin, record.estimated()};
}

std::vector<std::string> tuning_files(const DeviceInfo& device) {
  std::vector<std::string> files;
  for (const tuning::Link& link : tuning::table_for(device).links()) files.push_back(link.file);
  return files;
}

}  // namespace sylvit
