// The subcommands. Each adds itself to the command line in a file of its own; main.cpp lists them.
#pragma once

#include <CLI/CLI.hpp>

namespace sylvit::bench {}
namespace sylvit::options {}

namespace sylvit::cli {

using namespace bench;
using namespace options;

void add_devices(CLI::App& program);
void add_self_check(CLI::App& program);
void add_init(CLI::App& program);
void add_info(CLI::App& program);
void add_infer(CLI::App& program);
void add_tune(CLI::App& program);
void add_compare(CLI::App& program);
// Subcommands of run and of bench.
void add_run_attention(CLI::App& run);
void add_bench_attention(CLI::App& bench);
void add_bench_gemm(CLI::App& bench);
void add_run_vit(CLI::App& run);
void add_bench_vit(CLI::App& bench);
// Subcommands of data.
void add_data_show(CLI::App& data);
// Subcommands of tuning.
void add_tuning_show(CLI::App& tuning);
void add_tuning_check(CLI::App& tuning);

}  // namespace sylvit::cli
