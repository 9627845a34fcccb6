// The fields of report.json, once for reading and for writing: a function a struct, over anything that takes
// field(key, member), and of fields that reports of the first schema have not, or have under another name,
// field.since_2(key, member) and field.renamed_in_2(key, old key, member).
#pragma once

#include "report/report.hpp"

namespace sylvit::report {

template <class Fields>
void describe(Fields& field, Errors& errors) {
  field("max", errors.max);
  field("l2", errors.l2);
  field("cosine_distance", errors.cosine_distance);
  field("p50", errors.p50);
  field("p90", errors.p90);
  field("p99", errors.p99);
  field("p999", errors.p999);
}

template <class Fields>
void describe(Fields& field, NamedErrors& named) {
  field("name", named.name);
  describe(field, named.errors);
}

template <class Fields>
void describe(Fields& field, Accuracy& accuracy) {
  field("judged", accuracy.judged);
  field("logits", accuracy.logits);
  field("top1_agreement", accuracy.top1_agreement);
  field("loss", accuracy.loss);
  field("reference_loss", accuracy.reference_loss);
  field("layers", accuracy.layers);
  field("first_outside", accuracy.first_outside);
  field("first_outside_error", accuracy.first_outside_error);
}

template <class Fields>
void describe(Fields& field, Gradients& gradients) {
  field("model", gradients.model);
  field("loss", gradients.loss);
  field("reference_loss", gradients.reference_loss);
  field("parameters", gradients.parameters);
}

template <class Fields>
void describe(Fields& field, Timing& timing) {
  field("median", timing.median);
  field("best", timing.best);
  field("p25", timing.p25);
  field("p75", timing.p75);
  field("count", timing.count);
  field.since_2("samples", timing.samples);
}

template <class Fields>
void describe(Fields& field, Speed& speed) {
  field("pass", speed.pass);
  field("batch", speed.batch);
  field("ms", speed.ms);
  field.since_2("turns", speed.turns);
  field("images_per_s", speed.images_per_s);
  field("gflops", speed.gflops);
  field("compute_share", speed.compute_share);
  field("bandwidth_share", speed.bandwidth_share);
  field("peak_bytes", speed.peak_bytes);
}

template <class Fields>
void describe(Fields& field, LayerTime& layer) {
  field("layer", layer.layer);
  field("times", layer.times);
  field("ms", layer.ms);
  field("flops", layer.flops);
  field("bytes", layer.bytes);
}

template <class Fields>
void describe(Fields& field, EngineUse& use) {
  field("pass", use.pass);
  field("layer", use.layer);
  field("engine", use.engine);
  field("kernels", use.kernels);
}

template <class Fields>
void describe(Fields& field, Result& result) {
  field("device", result.device);
  field("model", result.model);
  field("dtype", result.dtype);
  field("error", result.error);
  field("failed_in", result.failed_in);
  field("tolerance", result.tolerance);
  field("accuracy", result.accuracy);
  field("gradients", result.gradients);
  field("speeds", result.speeds);
  field("layers", result.layers);
  field("layers_batch", result.layers_batch);
  field.since_2("engines", result.engines);
  field("top1", result.top1);
  field("logits", result.logits);
}

template <class Fields>
void describe(Fields& field, YardstickRate& yardstick) {
  field("dtype", yardstick.dtype);
  field("gflops", yardstick.gflops);
  field("provider", yardstick.provider);
}

template <class Fields>
void describe(Fields& field, TuningUse& use) {
  field("kernel", use.kernel);
  field("case", use.what);
  field("file", use.file);
  field("record", use.record);
  field("estimated", use.estimated);
  field("numbers", use.numbers);
  field("origin", use.origin);
}

template <class Fields>
void describe(Fields& field, DeviceReport& device) {
  field("index", device.index);
  field("name", device.name);
  field("vendor", device.vendor);
  field("backend", device.backend);
  field("type", device.type);
  field("driver", device.driver);
  field("architecture", device.architecture);
  field("error", device.error);
  field("memory_bytes", device.memory_bytes);
  field("local_memory_bytes", device.local_memory_bytes);
  field("compute_units", device.compute_units);
  field("sub_group_sizes", device.sub_group_sizes);
  field("estimated", device.estimated);
  field("tuning_table", device.tuning_table);
  field("tuning_note", device.tuning_note);
  field("tuning", device.tuning);
  field("kernels", device.kernels);
  field("kernels_seconds", device.kernels_seconds);
  field.renamed_in_2("yardsticks", "ceilings", device.yardsticks);
  field("bandwidth_gbs", device.bandwidth_gbs);
}

template <class Fields>
void describe(Fields& field, ModelReport& model) {
  field("name", model.name);
  field("score", model.score);
  field("label", model.label);
  field("description", model.description);
  field("parameters", model.parameters);
  field("forward_flops", model.forward_flops);
  field("weights", model.weights);
  field("weights_fingerprint", model.weights_fingerprint);
  field("images", model.images);
  field("images_fingerprint", model.images_fingerprint);
  field("image_count", model.image_count);
}

template <class Fields>
void describe(Fields& field, NamedText& named) {
  field("name", named.name);
  field("text", named.text);
}

template <class Fields>
void describe(Fields& field, Run& run) {
  field("date", run.date);
  field("command", run.command);
  field("version", run.version);
  field.since_2("commit", run.commit);
  field("toolchain", run.toolchain);
  field("compiler", run.compiler);
  field.since_2("machine", run.machine);
  field("host", run.host);
  field("system", run.system);
  field.since_2("environment", run.environment);
  field.since_2("packages", run.packages);
  field("cores", run.cores);
  field("cold", run.cold);
  field("batch", run.batch);
  field("seconds", run.seconds);
  field("devices", run.devices);
  field("models", run.models);
  field("results", run.results);
}

template <class Fields>
void describe(Fields& field, Pair& pair) {
  field("run_a", pair.run_a);
  field("result_a", pair.result_a);
  field("run_b", pair.run_b);
  field("result_b", pair.result_b);
  field("logits", pair.logits);
  field("top1_agreement", pair.top1_agreement);
  field("layers", pair.layers);
}

template <class Fields>
void describe(Fields& field, Change& change) {
  field("device", change.device);
  field("model", change.model);
  field("dtype", change.dtype);
  field("what", change.what);
  field("before", change.before);
  field("now", change.now);
  field("ratio", change.ratio);
  field("low", change.low);
  field("high", change.high);
  field("verdict", change.verdict);
  field("regression", change.regression);
}

template <class Fields>
void describe(Fields& field, Baseline& baseline) {
  field("file", baseline.file);
  field("slowdown_limit", baseline.slowdown_limit);
  field("error_limit", baseline.error_limit);
  field("compared", baseline.compared);
  field("changes", baseline.changes);
}

template <class Fields>
void describe(Fields& field, Report& report) {
  field("runs", report.runs);
  field("pairs", report.pairs);
  field.since_2("baseline", report.baseline);
}

}  // namespace sylvit::report
