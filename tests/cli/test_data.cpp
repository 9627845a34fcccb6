// sylvit data: what it prints, writes and refuses.
#include <sylvit/images.hpp>

#include <nlohmann/json.hpp>

#include "data/source_files.hpp"
#include "support.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

namespace fs = std::filesystem;

/// Two classes of `each` images, numbered from `first` on.
void write_set(const fs::path& folder, int first, int each = 3) {
  for (int i = 0; i < 2 * each; ++i)
    write_file(folder / (i < each ? "cat" : "dog") / (std::to_string(100 + i) + ".png"),
               png_of(numbered_image(first + i, 8 + i, 6)));
}

nlohmann::json json_of(const CommandResult& result) {
  CAPTURE(result.errors);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.output);
}

}  // namespace

TEST_SUITE("cli/data") {
  TEST_CASE("data show prints what a set holds") {
    const TemporaryDirectory directory;
    write_set(directory.path(), 0);
    const std::string source = directory.path().string();
    const CommandResult text = run_sylvit("data show " + source);
    CHECK(text.exit_code == 0);
    for (const char* part : {"a folder of classes", "images       6", "8 to 13 high, 6 wide, 3 channels",
                             "classes      2, of 3 images each", "cat", "dog", "fingerprint"}) {
      CAPTURE(part);
      CHECK(text.output.find(part) != std::string::npos);
    }
    const auto json = json_of(run_sylvit("data show --json " + source));
    CHECK(json["kind"] == "a folder of classes");
    CHECK(json["images"] == 6);
    CHECK(json["height"] == std::vector<int>{8, 13});
    CHECK(json["width"] == std::vector<int>{6, 6});
    CHECK(json["channels"] == 3);
    CHECK(json["classes"][1]["name"] == "dog");
    CHECK(json["classes"][1]["images"] == 3);
    CHECK(json["unreadable"].empty());
    CHECK(json["fingerprint"].get<std::string>().size() == 16);
    CHECK(json == json_of(run_sylvit("data show --all --json " + source)));
  }

  TEST_CASE("data show writes a sheet with a row for each class") {
    const TemporaryDirectory directory;
    write_set(directory.path() / "set", 0);
    const fs::path file = directory.path() / "sheet.png";
    const CommandResult result =
        run_sylvit("data show " + (directory.path() / "set").string() + " --sheet " + file.string());
    CHECK(result.exit_code == 0);
    const Image sheet = read_image(file);
    // Cells of 96 pixels with 2 between them, 16 in a row; an image of 6 x 8 is in the middle of the first.
    CHECK(sheet.height == 2 * 98 + 2);
    CHECK(sheet.width == 16 * 98 + 2);
    const Image first = numbered_image(0, 8, 6);
    for (std::int64_t y = 0; y < 8; ++y)
      for (std::int64_t x = 0; x < 18; ++x)
        REQUIRE(sheet.pixels[static_cast<std::size_t>(((2 + 44 + y) * sheet.width + 2 + 45) * 3 + x)] ==
                first.pixels[static_cast<std::size_t>(y * 18 + x)]);
    CHECK(sheet.pixels[0] == 160);
    const CommandResult refused = run_sylvit("data show " + (directory.path() / "set").string() + " --sheet " +
                                             (directory.path() / "no" / "s.png").string());
    CHECK(refused.exit_code == 1);
    CHECK(refused.errors.find("s.png") != std::string::npos);
  }

  TEST_CASE("data show refuses images that are in both of two sets") {
    const TemporaryDirectory directory;
    const fs::path train = directory.path() / "set" / "train";
    const fs::path test = directory.path() / "set" / "test";
    write_set(train, 0, 60);
    write_set(test, 120, 60);  // numbered_image() repeats after 256
    const std::string command = "data show " + (directory.path() / "set").string() + ":train --against " +
                                (directory.path() / "set").string() + ":test";
    CommandResult result = run_sylvit(command);
    CHECK(result.exit_code == 0);
    CHECK(result.errors.empty());
    CHECK(result.output.find("0 images are in") != std::string::npos);

    fs::copy_file(train / "dog" / "170.png", test / "cat" / "copy.png");
    result = run_sylvit(command);
    CHECK(result.exit_code == 0);
    CHECK(result.errors.find("dog/170.png is the same as") != std::string::npos);
    CHECK(result.errors.find("warning: 1 images of") != std::string::npos);

    fs::copy_file(train / "dog" / "171.png", test / "cat" / "another.png");
    result = run_sylvit(command + " --json");
    CHECK(result.exit_code == 1);
    CHECK(result.errors.find("2 images of") != std::string::npos);
    CHECK(result.errors.find("cannot be tested with") != std::string::npos);
    CHECK(nlohmann::json::parse(result.output)["against"]["same"] == 2);
  }

  TEST_CASE("data show names images that cannot be read, and sources that are none") {
    const TemporaryDirectory directory;
    write_set(directory.path() / "set", 0);
    const std::string source = (directory.path() / "set").string();
    const std::string good = read_file(directory.path() / "set" / "dog" / "104.png");
    write_file(directory.path() / "set" / "dog" / "104.png", good.substr(0, good.size() - 30));
    CHECK(run_sylvit("data show " + source).exit_code == 0);  // its beginning is as it should be
    const CommandResult result = run_sylvit("data show --all --json " + source);
    CHECK(result.exit_code == 1);
    CHECK(result.errors.find("dog/104.png is corrupt") != std::string::npos);
    CHECK(result.errors.find("1 of 6 images") != std::string::npos);
    CHECK(nlohmann::json::parse(result.output)["unreadable"].size() == 1);

    const auto refused = [&](const std::string& arguments, int code, const std::string& sentence) {
      const CommandResult answer = run_sylvit("data " + arguments);
      CAPTURE(answer.errors);
      CHECK(answer.exit_code == code);
      CHECK(answer.errors.find(sentence) != std::string::npos);
    };
    refused("show " + source + "/dog", 1, "did you mean");
    refused("show /nonexistent", 1, "there is no /nonexistent");
    refused("show", 2, "source");
    refused("show --sheet", 2, "sheet");
    refused("", 2, "subcommand");
    fs::remove_all(directory.path() / "set" / "dog");
    refused("show " + source, 1, "one class only");
  }
}
