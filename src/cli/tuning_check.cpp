// sylvit tuning check: are the tuning tables sound?
#include <sylvit/error.hpp>
#include <sylvit/tuning.hpp>

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "cli/commands.hpp"
#include "terminal/print.hpp"
#include "tuning/check.hpp"
#include "tuning/overlay.hpp"
#include "tuning/table.hpp"

namespace sylvit::cli {

namespace {

/// The tables of every backend's folder of the overlay directory.
std::vector<tuning::TableFile> overlay_files() {
  std::vector<tuning::TableFile> files;
  const std::filesystem::path directory = tuning_overlay_directory();
  std::error_code failed;
  std::set<std::string> folders;
  if (!directory.empty())
    for (std::filesystem::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed))
      if (it->is_directory(failed)) folders.insert(it->path().filename().string());
  for (const std::string& folder : folders)
    for (tuning::TableFile& file : tuning::read_overlay(directory, folder)) files.push_back(std::move(file));
  return files;
}

void check(const std::vector<std::string>& paths) {
  // Tables can be checked where no device is usable, too; then only against what their families say.
  std::vector<DeviceInfo> devices;
  try {
    devices = list_devices();
  } catch (const Error&) {
  }
  std::erase_if(devices, [](const DeviceInfo& device) { return !device.usable; });
  std::vector<tuning::TableFile> files;
  if (paths.empty()) {
    files.assign(tuning::embedded().begin(), tuning::embedded().end());
    for (tuning::TableFile& file : overlay_files()) files.push_back(std::move(file));
  }
  for (const std::string& path : paths) files.push_back(tuning::read_table_file(path));
  std::vector<std::string> lines;
  std::size_t bad = 0;
  std::size_t records = 0;
  for (const tuning::TableFile& file : files) {
    const std::vector<tuning::Problem> problems = tuning::problems_of(file, devices);
    for (const tuning::Problem& problem : problems) lines.push_back(problem.text());
    bad += problems.empty() ? 0 : 1;
    records += file.records.size();
  }
  // What only the whole chain of a device shows, such as variants that are not compiled in.
  if (paths.empty())
    for (const DeviceInfo& device : devices)
      for (const tuning::Problem& problem : tuning::table_for(device).problems())
        if (std::ranges::none_of(lines, [&](const std::string& line) {
              return line.starts_with(tuning::Problem{problem.file, problem.record, problem.kernel, ""}.text());
            })) {
          lines.push_back(problem.text());
          ++bad;
        }
  for (const std::string& line : lines) terminal::print(stderr, "sylvit: {}\n", line);
  if (!lines.empty())
    throw Error(fmt::format("{} {} in {} of {} tables", lines.size(), lines.size() == 1 ? "problem" : "problems",
                            std::min(bad, files.size()), files.size()),
                "see above; while they are there, such records are skipped");
  terminal::print("{} tables with {} records are sound\n", files.size(), records);
}

}  // namespace

void add_tuning_check(CLI::App& tuning) {
  CLI::App* command = tuning.add_subcommand("check", "Check the tuning tables: those in the library and your own");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *paths, "Check only these files");
  command->callback([paths] { check(*paths); });
}

}  // namespace sylvit::cli
