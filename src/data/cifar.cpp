// The binary files of CIFAR-10 and CIFAR-100: records of labels and 32 x 32 pixels, in planes of red, green and blue.
#include <sylvit/error.hpp>

#include "data/array_images.hpp"
#include "data/mapped_file.hpp"

namespace sylvit::data {

Source open_cifar(const CifarFiles& files) {
  const ImageLayout layout{.height = 32, .width = 32, .channels = 3, .planes = true};
  const std::size_t record = files.label_bytes + 3 * 32 * 32;
  Source source{.kind = "CIFAR's binary files"};
  std::vector<ImageRun> runs;
  std::vector<std::shared_ptr<const void>> owners;
  for (const std::filesystem::path& path : files.batches) {
    const MappedFile file = map_file(path, "a file of CIFAR");
    if (file.bytes.size() % record != 0)
      throw Error(path.string() + " has " + std::to_string(file.bytes.size()) + " bytes, which is no multiple of the " +
                  std::to_string(record) + " of a record");
    const std::size_t count = file.bytes.size() / record;
    for (std::size_t i = 0; i < count; ++i)
      source.labels.add(std::to_integer<std::int64_t>(file.bytes[i * record + files.label_bytes - 1]), path.string());
    runs.push_back({path.string(), file.bytes.data() + files.label_bytes, static_cast<std::int64_t>(count), record});
    owners.push_back(file.owner);
  }
  std::error_code ignored;
  if (std::filesystem::exists(files.names, ignored)) source.classes = read_lines(files.names);
  source.images = std::make_unique<ArrayImages>(layout, std::move(runs), std::move(owners));
  return source;
}

}  // namespace sylvit::data
