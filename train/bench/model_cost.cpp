#include "train/bench/model_cost.h"

#include "kernels/conv1d.h"

namespace tactus {
namespace {

/// Products of one row with the weights of the decoder's attention: of query rows, and of key rows.
struct AttentionWeights {
  double query = 0, key = 0, expanded = 0;  ///< expanded: per key row that is expanded
};

AttentionWeights attention_weights(const AttentionOptions& o, double width) {
  const auto heads = static_cast<double>(o.heads);
  if (o.type == "mla" || o.type == "mtla") {
    const auto latent = static_cast<double>(o.kv_lora_rank), rope = static_cast<double>(o.qk_rope_head_dim);
    const auto nope = static_cast<double>(o.qk_nope_head_dim), value = static_cast<double>(o.v_head_dim);
    const auto low = static_cast<double>(o.q_lora_rank), q = heads * (nope + rope);
    AttentionWeights w;
    w.query = (o.q_lora_rank > 0 ? width * low + low * q : width * q) + heads * value * width;
    w.key = width * (latent + rope);
    if (o.type == "mtla") w.key += latent * static_cast<double>(o.hyper_dim > 0 ? o.hyper_dim : o.kv_lora_rank / 4);
    w.expanded = latent * heads * (nope + value);
    return w;
  }
  const auto dim = static_cast<double>(o.head_dim);
  const double kv = o.type == "mha" ? heads : o.type == "mqa" ? 1.0 : static_cast<double>(o.kv_heads);
  return {2 * width * heads * dim, 2 * width * kv * dim, 0};
}

}  // namespace

double training_flops(const SpeechModelOptions& model, int64_t vocabulary, const Batch& batch) {
  const auto width = static_cast<double>(model.width);
  const EncoderOptions& e = model.encoder;
  const DecoderOptions& d = model.decoder;
  const AttentionOptions& a = d.attention;
  const AttentionWeights weights = attention_weights(a, width);
  const auto stride = static_cast<double>(a.type == "mtla" ? a.stride : 1);
  const bool latent = weights.expanded > 0;
  const double score =
      static_cast<double>(a.heads) *
      static_cast<double>(latent ? a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim : 2 * a.head_dim);
  double products = 0;  // multiply-adds of a forward pass
  for (size_t i = 0; i < batch.frame_lengths.size(); ++i) {
    int64_t rows = batch.frame_lengths[i];
    auto in = static_cast<double>(model.feature_projection > 0 ? model.feature_projection : model.features);
    for (size_t k = 0; k < e.conv_kernels.size(); ++k) {
      const int64_t kernel = e.conv_kernels[k];
      const bool last = k + 1 == e.conv_kernels.size();
      const double out = last ? 2 * width : static_cast<double>(e.conv_channels);
      rows = conv1d_length(rows, kernel, 2, kernel / 2);
      products += static_cast<double>(rows * kernel) * in * out;
      in = out / 2;
    }
    const auto source = static_cast<double>(rows), target = static_cast<double>(batch.target_lengths[i]);
    const auto encoder_layers = static_cast<double>(e.layers), decoder_layers = static_cast<double>(d.layers);
    products +=
        encoder_layers * source * (4 * width * width + 2 * width * static_cast<double>(e.ffn_dim) + 2 * width * source);
    products += source * 2 * width * static_cast<double>(d.projector_dim);
    const double visible = (source + target / 2) / stride + (stride > 1 ? 0.5 : 0);  // columns of a query, on average
    products +=
        decoder_layers *
        (target * (weights.query + 2 * width * static_cast<double>(d.ffn_dim)) + (source + target) * weights.key +
         ((source + target) / stride + (stride > 1 ? target / 2 : 0)) * weights.expanded + target * visible * score);
    products += target * width * static_cast<double>(vocabulary);
  }
  return 3 * 2 * products;  // backward forms two products for each one of forward
}

}  // namespace tactus
