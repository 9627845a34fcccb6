// The table of an open device, whose user hears of overlay records that cannot be used.
#include <map>

#include "tuning/table.hpp"

namespace sylvit::tuning {

const Table& table_for(const Device& device) {
  const Table& table = table_for(device.info());
  // Of a candidate's table, the one that it is made of has told.
  if (table.problems().empty() || device.info().tuning) return table;
  // One sentence a file, and the device says each only once.
  std::map<std::string, std::size_t> counts;
  for (const Problem& problem : table.problems()) ++counts[problem.file];
  for (const Problem& problem : table.problems()) {
    std::size_t& count = counts[problem.file];
    if (count == 0) continue;
    const std::string more = count > 1 ? ", and " + std::to_string(count - 1) + " more" : "";
    device.warn("a tuning table is not used as it stands: " + problem.text() + more +
                "; the next record that fits is used ('sylvit tuning check' names all)");
    count = 0;
  }
  return table;
}

}  // namespace sylvit::tuning
