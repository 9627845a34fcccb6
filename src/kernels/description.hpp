// How a kernel describes itself to the host, which never instantiates it:
//
//     struct LossConfig {                                   its tile numbers, and beside them
//       static constexpr const char* name = …, *record = …  its own name, and what tuning tables call its records
//       members(visit)                                      visit(name, pointer) for each member, as they are declared
//       valid(), work_items(), local_floats(),              the last two where it has any
//       sub_group_size()
//       by_type = false                                     optional: its records serve every type
//       host_number                                         optional: a number of the record that only the host needs
//       search(tries)                                       optional: tries(name, step, values…), what the tuner tries
//     };
//     struct LossMeanKernel : Description<LossConfig, LossMeanArguments, Parameters::none> {
//       static constexpr const char *header = …, *functor = …, *arguments = …;
//       local_floats(config)                                where it takes local memory
//       work_items(config)                                  where these differ from the configuration's
//     };
//
// catalogue/catalogue.hpp lists the descriptions. From there a record becomes a configuration, a type as text, and what
// its launch asks of a device.
#pragma once

namespace sylvit::kernels {

/// What stands before the configuration among the functor's template arguments.
enum class Parameters {
  none,
  type,             ///< <T>, a storage type
  two_types,        ///< <From, To>, different storage types
  type_parameters,  ///< <T, P>: P is T or f32
  logits_gradient,  ///< <L, G>: L is G or f32
  gelu_type,        ///< <Gelu or GeluTanh, T>
  score_type,       ///< <Score, T>
  product           ///< <T, C, form>: C is T or f32
};

/// What a number must be a multiple of, so that tiles divide it.
enum class Step { one, rows, width };

/// The base of every description.
template <class ConfigOf, class ArgumentsOf, Parameters parameters_of>
struct Description {
  using Config = ConfigOf;
  using Arguments = ArgumentsOf;
  static constexpr Parameters parameters = parameters_of;
};

/// Tiles whose lanes are one sub-group; a single work-item is none.
constexpr int sub_group_of_lanes(int lanes) { return lanes > 1 ? lanes : 0; }

}  // namespace sylvit::kernels
