#include "tuner/table_writer.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cctype>

#include "tuning/overlay.hpp"
#include "tuning/table.hpp"

namespace sylvit::tuner {

namespace {

/// A file name made of a device's name.
std::string slug_of(const std::string& name) {
  std::string slug;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0)
      slug += static_cast<char>(std::tolower(letter));
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "device" : slug.substr(0, 80);
}

bool same_but_length(const tuning::Record& a, const tuning::Record& b) {
  return a.kernel == b.kernel && a.dtypes == b.dtypes && a.score_class == b.score_class && a.head_size == b.head_size &&
         a.m == b.m && a.n == b.n && a.k == b.k;
}

/// Where a record for several lengths comes from: as many of the sentences as people read, and once on what machine.
std::string joined(const std::string& first, const std::string& second) {
  constexpr std::size_t enough = 800;
  const std::string rest = "; and lengths beyond";
  if (first.ends_with(rest)) return first;
  if (first.size() + second.size() > enough) return first + rest;
  const std::size_t machine = first.rfind(" (");
  const bool same = machine != std::string::npos && second.ends_with(first.substr(machine));
  return (same ? first.substr(0, machine) : first) + "; " + second;
}

}  // namespace

TuneTable::TuneTable(const std::filesystem::path& directory, const DeviceInfo& device)
    : path_(directory / tuning::backend_of(device) / (slug_of(device.name) + ".json")),
      description_("made by sylvit tune on " + device.name) {
  if (std::filesystem::exists(path_)) {
    file_ = tuning::read_table_file(path_);
    if (!file_.problems.empty())
      throw Error("the tuning table cannot be added to: " + file_.problems.front().text(),
                  "repair it ('sylvit tuning check') or remove it");
  }
  file_.family = {};
  file_.family.backends = {std::string(tuning::backend_of(device))};
  file_.family.devices = {device.name};
}

bool TuneTable::has(const TuneJob& job) const {
  // Lengths may have been merged, so a record for more of them counts; products of other extents were not measured.
  return std::ranges::any_of(file_.records, [&](const tuning::Record& record) {
    return record.fits(job.workload.wanted) && record.n == job.key.n && record.k == job.key.k;
  });
}

void TuneTable::put(const tuning::Record& record) {
  std::erase_if(file_.records,
                [&](const tuning::Record& old) { return same_but_length(old, record) && old.length == record.length; });
  // Behind those of its kernel that are for one product each: it would serve these, too.
  auto place = file_.records.begin();
  if (record.n.unlimited())
    for (auto old = file_.records.begin(); old != file_.records.end(); ++old)
      if (old->kernel == record.kernel && !old->n.unlimited()) place = old + 1;
  file_.records.insert(place, record);
  merge_lengths();
  tuning::write_table_file(path_, file_, description_);
}

/// Neighbouring ranges of lengths with the same numbers become one.
void TuneTable::merge_lengths() {
  for (std::size_t i = 0; i < file_.records.size(); ++i)
    for (std::size_t j = 0; j < file_.records.size(); ++j) {
      tuning::Record& one = file_.records[i];
      const tuning::Record& next = file_.records[j];
      if (i == j || !same_but_length(one, next) || one.numbers != next.numbers || one.providers != next.providers ||
          one.length.most == 0 || one.length.most + 1 != next.length.least)
        continue;
      one.length.most = next.length.most;
      one.origin = joined(one.origin, next.origin);
      file_.records.erase(file_.records.begin() + static_cast<std::ptrdiff_t>(j));
      return merge_lengths();
    }
}

}  // namespace sylvit::tuner
