// Wrong command lines, of every subcommand: exit code 2, one sentence with the program's name, nothing on standard
// output. What is right by itself and fails for a file that is not there leaves with 1.
#include <algorithm>
#include <regex>
#include <sstream>

#include "support.hpp"

using sylvit::test::CommandResult;
using sylvit::test::run_sylvit;

namespace {

struct Command {
  std::string words;     ///< the subcommand
  std::string complete;  ///< what it cannot do without
};

const std::vector<Command> commands{{"devices", ""},
                                    {"self-check", ""},
                                    {"init", " --output /nonexistent/w"},
                                    {"info", " /nonexistent/w"},
                                    {"infer", " /nonexistent/x.jpg --seed 1"},
                                    {"tune", " --shapes /nonexistent/shapes"},
                                    {"compare", " --baseline /nonexistent/report.json"},
                                    {"run attention", " --input /nonexistent/in --output /nonexistent/out"},
                                    {"run vit", " --input /nonexistent/in --output /nonexistent/out --seed 1"},
                                    {"bench attention", ""},
                                    {"bench gemm", ""},
                                    {"bench vit", ""},
                                    {"data show", " /nonexistent/set"},
                                    {"tuning show", ""},
                                    {"tuning check", " /nonexistent/table.json"}};

void check_sentence(const std::string& line, int exit_code, std::initializer_list<std::string> parts) {
  const CommandResult result = run_sylvit(line);
  CAPTURE(line);
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  CHECK(result.output.empty());
  CHECK(result.errors.starts_with("sylvit: "));
  CHECK(std::ranges::count(result.errors, '\n') == 1);
  for (const std::string& part : parts) CHECK(result.errors.find(part) != std::string::npos);
}

void check_wrong(const std::string& line, const std::string& part = "") { check_sentence(line, 2, {part, " --help'"}); }

/// An option of a subcommand, as its help has it.
struct Option {
  std::string name;
  std::string type;  ///< INT, UINT, FLOAT or TEXT; nothing for a flag
  bool list = false;
  bool choice = false;  ///< the help has its words in braces
};

std::vector<Option> options_of(const Command& command) {
  const CommandResult help = run_sylvit(command.words + " --help");
  REQUIRE(help.exit_code == 0);
  std::vector<Option> options;
  std::istringstream lines(help.output);
  const std::regex form("^  (--[a-z-]+)(?: (INT|UINT|FLOAT|TEXT)(\\S*)( \\.\\.\\.| x )?)?.*");
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, form))
      options.push_back({match[1], match[2], match[4].matched, match[3].str().find('{') != std::string::npos});
  return options;
}

}  // namespace

TEST_SUITE("cli/command_lines") {
  TEST_CASE("every command refuses what it does not know, and every option what it cannot be") {
    for (const Command& command : commands) {
      const std::string line = command.words + command.complete;
      check_wrong(line + " --no-such-option", "--no-such-option");
      const std::vector<Option> options = options_of(command);
      CAPTURE(command.words);
      if (command.words != "tuning check") CHECK(!options.empty());
      for (const Option& option : options) {
        if (option.type.empty()) {
          check_wrong(line + " " + option.name + "=maybe", option.name);
          continue;
        }
        check_wrong(line + " " + option.name, option.name);
        if (command.complete.find(option.name + " ") == std::string::npos && !option.list)
          check_wrong(line + " " + option.name + " 1 " + option.name + " 1", option.name);
        if (option.type != "TEXT")
          for (const char* no_number : {"nan", "99999999999999999999999e999"})
            check_wrong(line + " " + option.name + " " + no_number, option.name);
        // Words that only the library knows. What names devices and files is judged when it is used.
        const bool word = option.name == "--score" || option.name == "--scores" || option.name == "--model" ||
                          option.name == "--models" || option.name == "--dtype" || option.name == "--dtypes" ||
                          option.name == "--result" || option.name == "--provider" || option.name == "--kernel";
        if (option.choice || word) check_wrong(line + " " + option.name + " nonsense", "nonsense");
        if (word && option.list) check_wrong(line + " " + option.name + " f32,nonsense", "");
      }
    }
  }

  TEST_CASE("no command, half a command, a command too many") {
    check_wrong("", "subcommand");
    check_wrong("no-such-command", "no command 'no-such-command'");
    check_wrong("--no-such-option", "no option '--no-such-option'");
    for (const char* half : {"run", "bench", "data", "tuning"}) {
      check_wrong(half, "subcommand");
      check_wrong(std::string(half) + " sideways", "no command 'sideways'");
    }
    check_wrong("devices extra", "extra");
    check_wrong("bench attention extra", "extra");
    check_wrong("init", "--output is required");
    check_wrong("info", "file is required");
    check_wrong("data show", "source is required");
    check_wrong("infer", "images is required");
    check_wrong("run attention --input x", "--output is required");
    check_wrong("run vit --output x", "--input is required");
  }

  TEST_CASE("numbers that an option cannot take") {
    for (const char* command : {"bench attention", "bench vit", "compare", "run attention --input x --output y",
                                "run vit --input x --output y --seed 1", "init --output x"})
      for (const char* wrong : {" --alpha -0.1", " --alpha 2.5", " --divisor 0", " --divisor -1", " --divisor 1e-60"})
        check_wrong(command + std::string(wrong), "--");
    for (const char* wrong : {"bench attention --shape 1,2,3",
                              "bench attention --shape 1,2,3,64,5",
                              "bench attention --shape 1,2,0,64",
                              "bench attention --shape 1,1,8,20",
                              "bench attention --shape 1,1,010,64",
                              "bench attention --scale inf",
                              "bench attention --alpha 0.5,3",
                              "bench gemm --shape 1,2",
                              "bench gemm --shape 1,2,-3",
                              "bench vit --batch 0",
                              "bench vit --epsilon 0",
                              "tuning show --head-size 20",
                              "tuning show --length 0",
                              "tune --budget 0",
                              "tune --candidates -1",
                              "infer x.jpg --seed -1",
                              "infer x.jpg --seed 1 --top 0",
                              "infer x.jpg --seed 1 --std 1,0,1",
                              "compare --sweep 1,0",
                              "compare --batch 0",
                              "compare --judged 0",
                              "compare --image-count 0",
                              "compare --tolerance f32",
                              "compare --tolerance f32=0",
                              "compare --tolerance f8=1",
                              "compare --max-slowdown 0",
                              "compare --max-error -1",
                              "compare --alpha 1,3"})
      check_wrong(wrong, "--");
  }

  TEST_CASE("options that contradict each other, and models that cannot be") {
    check_wrong("infer x.jpg", "--weights or --seed");
    check_wrong("run vit --input x --output y --seed 1 --weights w", "excludes");
    check_wrong("infer x.jpg --seed 1 --weights w", "excludes");
    check_wrong("run vit --input x --output y --seed 1 --recompute", "--recompute requires --backward");
    check_wrong("bench vit --recompute", "--recompute");
    check_wrong("bench vit --turns --seconds 1", "excludes");
    check_wrong("bench vit --turns --score softmax,relu", "--turns");
    check_wrong("compare --merge a.json --devices cpu", "--devices");
    check_wrong("compare --merge a.json --seed 1", "--seed");
    for (const char* command : {"init --output x", "bench vit", "infer x.jpg --seed 1", "compare --devices cpu"}) {
      check_wrong(command + std::string(" --width 100 --heads 3"), "multiple of the number of heads");
      check_wrong(command + std::string(" --depth 0"), "depth");
      check_wrong(command + std::string(" --image-size 30"), "whole patches");
    }
    check_wrong("init --output x --head-alpha", "softmax has no alpha");
    check_wrong("bench vit --score relu,softmax --head-alpha", "softmax has no alpha");
    check_wrong("infer x.jpg --seed 1 --channels 1", "1 channels");
  }

  TEST_CASE("a file that is not there is no wrong command line") {
    for (const char* line :
         {"info /nonexistent/w", "infer /nonexistent/x.jpg --weights /nonexistent/w",
          "run attention --input /nonexistent/in --output /nonexistent/out",
          "tune --output /tmp --shapes /nonexistent/shapes",
          "run vit --input /nonexistent/in --output /nonexistent/out --seed 1", "compare --merge /nonexistent/a.json",
          "compare --baseline /nonexistent/a.json", "compare --weights /nonexistent/w",
          "init --model Ti/16 --depth 1 --output /nonexistent/w"})
      check_sentence(line, 1, {"/nonexistent/"});
    check_sentence("bench attention --device nonsense", 1, {"'nonsense'"});
  }
}
