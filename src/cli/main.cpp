// The program: reads the command line, runs one subcommand, and turns every failure into one sentence and an exit code:
// 0 done, 1 it failed, 2 the command line was wrong.
#include <sylvit/version.hpp>

#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "terminal/print.hpp"

namespace {

/// The exit code, when all that was printed has arrived.
int finished(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  sylvit::terminal::print(stderr, "sylvit: cannot write to standard output\n");
  return 1;
}

/// Help and refusals of the command line, which have line ends of their own and words of the user.
void print_lines(std::FILE* file, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) sylvit::terminal::print(file, "{}\n", line);
}

/// The exit code for what the command line's reader threw: also when --help was asked for.
int explained(const CLI::App& program, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = program.exit(error, out, err);
  print_lines(stdout, out.str());
  print_lines(stderr, err.str());
  return code == 0 ? finished(0) : 2;
}

int out_of_memory() {
  sylvit::terminal::print(stderr, "sylvit: this machine has not enough memory for that\n");
  return 1;
}

/// What is said of a wrong command line, with the innermost command that was understood.
std::string refusal(const CLI::App* app, const CLI::Error& error) {
  std::string command = app->get_name();
  for (auto chosen = app->get_subcommands(); !chosen.empty(); chosen = chosen.front()->get_subcommands())
    command += " " + chosen.front()->get_name();
  std::string what = error.what();
  // CLI11 speaks of what is missing before it speaks of a word that it does not know.
  const std::vector<std::string> unknown = app->remaining(true);
  if (error.get_name() == "RequiredError" && !unknown.empty())
    what = fmt::format("there is no {} '{}'", unknown.front().starts_with('-') ? "option" : "command", unknown.front());
  return fmt::format("sylvit: {}; see '{} --help'\n", what, command);
}

}  // namespace

int main(int count, char** words) try {
  CLI::App program{"sylvit: attention variants and Vision Transformers from one SYCL source", "sylvit"};
  program.set_version_flag("--version", std::string("sylvit ") + sylvit::version);
  program.require_subcommand(1);
  program.failure_message(refusal);
  sylvit::cli::add_devices(program);
  sylvit::cli::add_self_check(program);
  sylvit::cli::add_init(program);
  sylvit::cli::add_info(program);
  sylvit::cli::add_infer(program);
  sylvit::cli::add_tune(program);
  sylvit::cli::add_compare(program);
  CLI::App* run = program.add_subcommand("run", "Compute from a file to a file");
  run->require_subcommand(1);
  sylvit::cli::add_run_attention(*run);
  sylvit::cli::add_run_vit(*run);
  CLI::App* bench = program.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  sylvit::cli::add_bench_attention(*bench);
  sylvit::cli::add_bench_gemm(*bench);
  sylvit::cli::add_bench_vit(*bench);
  CLI::App* data = program.add_subcommand("data", "Look at labelled images");
  data->require_subcommand(1);
  sylvit::cli::add_data_show(*data);
  CLI::App* tuning = program.add_subcommand("tuning", "Look at the tuning tables");
  tuning->require_subcommand(1);
  sylvit::cli::add_tuning_show(*tuning);
  sylvit::cli::add_tuning_check(*tuning);
  try {
    program.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return explained(program, error);
  }
  return finished(0);
} catch (const std::bad_alloc&) {
  return out_of_memory();
} catch (const std::length_error&) {  // of a container that is to hold more than an address space does
  return out_of_memory();
} catch (const std::exception& error) {
  sylvit::terminal::print(stderr, "sylvit: {}\n", error.what());
  return 1;
}
