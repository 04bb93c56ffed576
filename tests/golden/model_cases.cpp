// Whole speech models: every sentence alone, all of them packed, one token at a time, and beam search.
#include <cmath>

#include "layers/models/speech_model.h"
#include "tests/golden/check.h"
#include "train/search/beam_search.h"

namespace tactus::golden {
namespace {

/// Why a model cannot be built; "" when it can.
std::string unsupported(const Node& m) {
  if (m.text("encoder_kind") != "transformer") return m.text("encoder_kind") + " encoder";
  if (m.integer("encoder_prenorm") != 1 || m.integer("encoder_final_norm") != 1) return "encoder norms";
  if (m.text("activation") != "relu" || m.text("encoder_activation") != "relu") return "activation";
  if (m.real("intent_weight") != 1) return "intent weight";
  if (m.text("ctc_target") == "without_first") return "CTC target";
  if (m.integer("conv_stride") != 2) return "stride of the convolutions";
  if (m.real("embed_scale") != std::sqrt(m.real("embed_dim"))) return "scale of the embedding";
  if (m.text("sinusoid_layout") != "halves" || m.integer("sinusoid_first_position") != 2) return "encoder positions";
  if (m.text("rope_layout") != "interleaved" || m.real("ln_eps") != 1e-5) return "rotation layout or norm eps";
  return "";
}

SpeechModelOptions options_of(const Node& m) {
  SpeechModelOptions o;
  o.width = m.integer("embed_dim");
  o.features = m.integer("feat_dim");
  o.encoder.layers = m.integer("encoder_layers");
  o.encoder.heads = m.integer("encoder_heads");
  o.encoder.ffn_dim = m.integer("encoder_ffn_dim");
  o.encoder.conv_channels = m.integer("conv_channels");
  o.encoder.conv_kernels = m.integers("conv_kernels");
  o.encoder.dropout = o.encoder.attention_dropout = o.encoder.activation_dropout = 0;
  o.decoder.layers = m.integer("decoder_layers");
  o.decoder.ffn_dim = m.integer("ffn_dim");
  o.decoder.projector_dim = m.integer("projector_hidden");
  o.decoder.tied_embeddings = m.integer("tied_embeddings") != 0;
  o.decoder.final_norm = m.integer("decoder_final_norm") != 0;
  o.decoder.dropout = o.decoder.activation_dropout = 0;
  AttentionOptions& a = o.decoder.attention;
  a.type = m.text("attention");
  a.heads = m.integer("heads");
  a.kv_heads = m.integer("kv_heads");
  a.head_dim = m.integer("head_dim");
  a.stride = m.integer("stride");
  a.q_lora_rank = m.integer("q_lora_rank");
  a.kv_lora_rank = m.integer("kv_lora_rank");
  a.qk_nope_head_dim = m.integer("qk_nope_head_dim");
  a.qk_rope_head_dim = m.integer("qk_rope_head_dim");
  a.v_head_dim = m.integer("v_head_dim");
  a.hyper_dim = m.integer("hyper_dim");
  a.rope_theta = m.real("rope_theta");
  return o;
}

struct Sentence {
  Node node;
  Array src, enc_out, logits;
  std::vector<int32_t> prev, tgt;
};

/// A model with its weights, and how its loss is made.
struct Model {
  Model(const Setting& s, const Node& m)
      : setting(s), node(m), kernels(m.integers("conv_kernels")), vocabulary(m.integer("vocab")) {
    loss.label_smoothing = m.real("label_smoothing");
    loss.ctc_weight = m.real("ctc_weight");
    loss.ctc_blank = m.integer("ctc_blank");
    loss.ctc_zero_infinity = m.integer("ctc_zero_infinity") != 0;
    network = std::make_unique<SpeechModel>(options_of(m), store, vocabulary, loss.ctc_weight > 0 ? vocabulary : 0);
    store.allocate(s.ctx, s.dtype, true);
    official_to_ours(store, m.weights());
  }
  SpeechBatch batch(const std::vector<Sentence>& sentences) const;

  const Setting& setting;
  const Node& node;
  std::vector<int64_t> kernels;
  int64_t vocabulary;
  LossOptions loss;
  ParameterStore store;
  std::unique_ptr<SpeechModel> network;
};

SpeechBatch Model::batch(const std::vector<Sentence>& sentences) const {
  const Context& ctx = setting.ctx;
  std::vector<double> features;
  std::vector<int32_t> prev, tgt;
  std::vector<int64_t> frames, lengths;
  for (const Sentence& s : sentences) {
    features.insert(features.end(), s.src.values.begin(), s.src.values.end());
    prev.insert(prev.end(), s.prev.begin(), s.prev.end());
    tgt.insert(tgt.end(), s.tgt.begin(), s.tgt.end());
    frames.push_back(s.src.dim(0));
    lengths.push_back(static_cast<int64_t>(s.tgt.size()));
  }
  SpeechBatch b;
  b.frames = Segments(ctx, frames);
  b.features = setting.upload(features, {b.frames.rows(), sentences.front().src.dim(1)});
  b.inputs = TokenIndex::make(ctx, prev, vocabulary);
  b.targets = ctx.upload(tgt);
  b.tokens = Segments(ctx, lengths);
  b.ctc = b.tokens;
  b.ctc_labels = b.targets;
  b.ctc_label_host = tgt;
  return b;
}

/// Loss, states, logits and gradients of `sentences` as one batch. `expected` holds loss and d.* of the batch.
void check_loss(Model& model, const std::vector<Sentence>& sentences, const Node& expected, Report& report) {
  const Context& ctx = model.setting.ctx;
  const std::string name = expected.path();
  const SpeechBatch batch = model.batch(sentences);
  Tape tape(ctx);
  Tables tables(ctx);
  Pass pass{tape, tables, true};
  const Var features = tape.leaf(batch.features);
  const SpeechModel::Encoded encoded = model.network->encode(pass, features, batch.frames);
  const std::vector<double> logits = ctx.download_real(model.network->logits(pass, batch, encoded).value());
  const SpeechLoss loss = model.network->loss(pass, batch, encoded, model.loss);

  report.value(name + "/loss", ctx.download_real(loss.total.value()), expected.array("loss").values);
  if (expected.has("ls_loss"))
    report.value(name + "/ls_loss", ctx.download_real(loss.smoothed), expected.array("ls_loss").values);
  if (expected.has("ctc_loss"))
    report.value(name + "/ctc_loss", ctx.download_real(loss.ctc), expected.array("ctc_loss").values);
  std::vector<double> enc_want, logits_want;
  for (const Sentence& s : sentences) {
    enc_want.insert(enc_want.end(), s.enc_out.values.begin(), s.enc_out.values.end());
    logits_want.insert(logits_want.end(), s.logits.values.begin(), s.logits.values.end());
  }
  report.value(name + "/enc_out", ctx.download_real(encoded.states.value()), enc_want);
  report.value(name + "/logits", logits, logits_want);

  const std::map<std::string, Array> want = expected.prefixed("d.");
  if (want.empty()) return;
  model.store.zero_grad();
  tape.backward(loss.total);
  Gradients gradients(report, name, true);
  gradients.add_all(ours_to_official(model.store, OfficialContent::gradients, model.kernels), want, "src");
  if (const auto src = want.find("src"); src != want.end())
    gradients.add("src", ctx.download_real(features.grad()), src->second.values);
  gradients.finish();
}

/// Teacher-forced, one token at a time through the caches.
void check_steps(Model& model, const Sentence& s, Report& report) {
  const Context& ctx = model.setting.ctx;
  Tape tape(ctx, false);
  Tables tables(ctx);
  Pass pass{tape, tables};
  const SpeechBatch batch = model.batch({s});
  const SpeechModel::Encoded encoded = model.network->encode(pass, batch.features, batch.frames);
  const PromptDecoder& decoder = model.network->decoder();
  DecoderState state = decoder.start(pass, encoded.prompt, encoded.segments, 1, static_cast<int64_t>(s.prev.size()));
  std::vector<double> logits;
  for (int32_t token : s.prev) {
    const Var row = decoder.step(pass, TokenIndex::make(ctx, {token}, model.vocabulary), state);
    const std::vector<double> values = ctx.download_real(row.value());
    logits.insert(logits.end(), values.begin(), values.end());
  }
  report.value(s.node.path() + "/logits_incr", logits, s.node.array("logits_incr").values);
}

void check_hypotheses(const std::vector<Hypothesis>& got, const Node& beam, const std::string& name, Report& report) {
  const double tolerance = report.tolerances().search_scores;
  const std::vector<Node> want = beam.groups();
  report.truth(name + ": " + std::to_string(got.size()) + " hypotheses, expected " + std::to_string(want.size()),
               got.size() == want.size());
  for (size_t j = 0; j < std::min(got.size(), want.size()); ++j) {
    const Node hypothesis = beam.child("hyp" + std::to_string(j));
    const std::string each = name + "/" + hypothesis.name();
    report.truth(each + ": other tokens", got[j].tokens == hypothesis.tokens("tokens"));
    report.special(each + "/score", {got[j].score}, hypothesis.array("score").values, tolerance);
    report.special(each + "/pos_scores", got[j].scores, hypothesis.array("pos_scores").values, tolerance);
  }
}

/// Beam search of `sentences` as one batch, with the settings of the case `beam` of each of them.
void check_search(Model& model, const std::vector<Sentence>& sentences, const std::string& beam, Report& report) {
  const Node first = sentences.front().node.child(beam);
  SearchOptions o;
  o.beam = first.integer("beam");
  o.length_penalty = first.real("lenpen");
  o.temperature = first.real("temperature");
  o.min_length = first.integer("min_len");
  o.max_length_ratio = first.real("max_len_a");
  o.max_length = first.integer("max_len_b");
  const SearchVocabulary vocabulary{static_cast<int32_t>(model.node.integer("decoder_start")),
                                    static_cast<int32_t>(model.node.integer("eos")),
                                    static_cast<int32_t>(model.node.integer("pad"))};
  const Context& ctx = model.setting.ctx;
  Tape tape(ctx, false);
  Tables tables(ctx);
  Pass pass{tape, tables};
  const SpeechBatch batch = model.batch(sentences);
  const SpeechModel::Encoded encoded = model.network->encode(pass, batch.features, batch.frames);
  const auto hypotheses = beam_search(model.network->decoder(), pass, encoded.prompt, encoded.segments,
                                      batch.frames.lengths(), o, vocabulary);
  for (size_t i = 0; i < sentences.size(); ++i) {
    const Node node = sentences[i].node.child(beam);
    check_hypotheses(hypotheses[i], node, node.path() + (sentences.size() > 1 ? " packed" : ""), report);
  }
}

bool same_search(const Node& a, const Node& b) {
  for (const char* name : {"beam", "min_len", "max_len_b"}) {
    if (a.integer(name) != b.integer(name)) return false;
  }
  for (const char* name : {"lenpen", "temperature", "max_len_a"}) {
    if (a.real(name) != b.real(name)) return false;
  }
  return true;
}

void check_searches(Model& model, const std::vector<Sentence>& sentences, Report& report) {
  if (report.tolerances().search_scores == 0) {
    report.skip("beams", "no gate in this type");
    return;
  }
  std::set<std::string> names;
  for (const Sentence& s : sentences) {
    for (const Node& c : s.node.cases()) {
      if (c.text("case") != "beam") continue;
      check_search(model, {s}, c.name(), report);
      names.insert(c.name());
    }
  }
  for (const std::string& name : names) {
    std::vector<Sentence> together;
    for (const Sentence& s : sentences) {
      if (!s.node.has(name)) continue;
      if (together.empty() || same_search(together.front().node.child(name), s.node.child(name))) together.push_back(s);
    }
    check_search(model, together, name, report);
  }
}

}  // namespace

void check_model(const Setting& setting, const Node& object, Report& report) {
  if (const std::string why = unsupported(object); !why.empty()) {
    report.skip(object.path(), why);
    return;
  }
  Model model(setting, object);
  std::vector<Sentence> sentences;
  std::vector<Node> sums;
  for (const Node& c : object.cases()) {
    if (c.text("case") == "sentence") {
      sentences.push_back(
          {c, c.array("src"), c.array("enc_out"), c.array("logits"), c.tokens("prev"), c.tokens("tgt")});
    } else if (c.text("case") == "sum") {
      sums.push_back(c);
    } else {
      report.skip(c.path(), "case " + c.text("case"));
    }
  }
  for (const Sentence& s : sentences) {
    report.begin_case();
    check_loss(model, {s}, s.node, report);
    check_steps(model, s, report);
  }
  for (const Node& sum : sums) {
    report.begin_case();
    check_loss(model, sentences, sum, report);
  }
  if (!sentences.empty()) check_searches(model, sentences, report);
}

}  // namespace tactus::golden
