#include "train/checkpoint/state_file.h"

namespace tactus {
namespace {

constexpr const char* kFormat = "tactus state";

/// The integer counters of a state by name: one list for writing and reading.
template <class State, class F>
void each_counter(State& s, F f) {
  f("update", s.update);
  f("epoch", s.epoch);
  f("next_batch", s.next_batch);
  f("skipped", s.skipped);
  f("skipped_in_row", s.skipped_in_row);
  f("validations_without_gain", s.validations_without_gain);
  f("validated_update", s.validated_update);
  f("frames", s.frames);
  f("threads", s.threads);
  f("sum_tokens", s.sums.tokens);
  f("sum_frames", s.sums.frames);
  f("sum_updates", s.sums.updates);
  f("sum_ctc_infeasible", s.sums.ctc_infeasible);
}
template <class State, class F>
void each_real(State& s, F f) {
  f("seconds", s.seconds);
  f("sum_loss", s.sums.loss);
  f("sum_nll", s.sums.nll);
  f("sum_ctc", s.sums.ctc);
  f("sum_norm", s.sums.norm);
  f("sum_correct", s.sums.correct);
}

Tensor part(const Tensor& flat, const Parameter& p) { return flat.slice(p.offset, p.offset + p.shape.elements()); }

h5::File open_state(const std::string& path) {
  h5::File file = h5::File::open(path);
  if (!file.has_attribute("/", "format") || file.attribute_string("/", "format") != kFormat) {
    throw DataError(path + ": not a training state of tactus");
  }
  return file;
}

}  // namespace

void write_state_file(const std::string& path, const TrainState& state, ParameterStore& store,
                      const Optimiser& optimiser) {
  h5::File file = h5::File::create(path);
  file.set_attribute("/", "format", std::string(kFormat));
  each_counter(state, [&](const char* name, int64_t value) { file.set_attribute("/", name, value); });
  each_real(state, [&](const char* name, double value) { file.set_attribute("/", name, value); });
  file.write_string("/corpus_fingerprint", state.corpus_fingerprint);
  std::vector<int64_t> updates;
  std::vector<double> metrics;
  for (const ScoredCheckpoint& b : state.best) updates.push_back(b.update), metrics.push_back(b.metric);
  file.write("/best_updates", {static_cast<int64_t>(updates.size())}, updates.data());
  file.write("/best_metrics", {static_cast<int64_t>(metrics.size())}, metrics.data());
  const Context& ctx = store.context();
  for (const auto& [group, flat] :
       {std::pair{"first_moment", &optimiser.first_moment()}, {"second_moment", &optimiser.second_moment()}}) {
    file.make_group(std::string("/") + group);
    for (Parameter* p : store.all()) {
      const std::string name = std::string("/") + group + "/" + p->name;
      const Tensor t = part(*flat, *p);
      if (t.dtype() == DType::f64) {
        file.write(name, {t.elements()}, ctx.download<double>(t).data());
      } else {
        file.write(name, {t.elements()}, ctx.download<float>(t).data());
      }
    }
  }
  file.close();
}

TrainState read_state_counters(const std::string& path) {
  const h5::File file = open_state(path);
  TrainState state;
  each_counter(state, [&](const char* name, int64_t& value) {
    value = file.attribute_int("/", name);
    if (value < 0) throw DataError(path + ": " + name + " is " + std::to_string(value) + ", it cannot be negative");
  });
  each_real(state, [&](const char* name, double& value) { value = file.attribute_real("/", name); });
  state.corpus_fingerprint = file.read_string("/corpus_fingerprint");
  const std::vector<int64_t> updates = file.read<int64_t>("/best_updates");
  const std::vector<double> metrics = file.read<double>("/best_metrics");
  if (metrics.size() != updates.size()) {
    throw DataError(path + ": " + std::to_string(updates.size()) + " best updates with " +
                    std::to_string(metrics.size()) + " scores");
  }
  for (size_t i = 0; i < updates.size(); ++i) state.best.push_back({updates[i], metrics[i]});
  return state;
}

TrainState read_state_file(const std::string& path, ParameterStore& store, const Optimiser& optimiser) {
  TrainState state = read_state_counters(path);
  const h5::File file = open_state(path);
  const Context& ctx = store.context();
  for (const auto& [group, flat] :
       {std::pair{"first_moment", &optimiser.first_moment()}, {"second_moment", &optimiser.second_moment()}}) {
    for (Parameter* p : store.all()) {
      const std::string name = std::string("/") + group + "/" + p->name;
      const std::vector<double> values = file.read<double>(name);
      const Tensor t = part(*flat, *p);
      if (static_cast<int64_t>(values.size()) != t.elements()) {
        throw DataError(path + ": moments of '" + p->name + "' have " + std::to_string(values.size()) +
                        " values, not " + std::to_string(t.elements()));
      }
      ctx.copy(t, ctx.upload_real(values, t.shape(), t.dtype(), MemoryTag::workspace));
    }
  }
  return state;
}

}  // namespace tactus
