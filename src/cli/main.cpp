// The program: reads the command line, runs one subcommand, and turns every failure into one sentence and an exit code:
// 0 done, 1 it failed, 2 the command line was wrong.
#include <sylvit/version.hpp>

#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <iostream>
#include <new>
#include <stdexcept>

#include "cli/commands.hpp"

namespace {

/// The exit code, when all that was printed has arrived.
int finished(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  fmt::print(stderr, "sylvit: cannot write to standard output\n");
  return 1;
}

int out_of_memory() {
  fmt::print(stderr, "sylvit: this machine has not enough memory for that\n");
  return 1;
}

}  // namespace

int main(int count, char** words) try {
  CLI::App program{"sylvit: attention variants and Vision Transformers from one SYCL source", "sylvit"};
  program.set_version_flag("--version", std::string("sylvit ") + sylvit::version);
  program.require_subcommand(1);
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
    return program.exit(error) == 0 ? finished(0) : 2;
  }
  return finished(0);
} catch (const std::bad_alloc&) {
  return out_of_memory();
} catch (const std::length_error&) {  // of a container that is to hold more than an address space does
  return out_of_memory();
} catch (const std::exception& error) {
  fmt::print(stderr, "sylvit: {}\n", error.what());
  return 1;
}
