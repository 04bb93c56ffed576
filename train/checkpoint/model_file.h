// The model file of a checkpoint: weights, the resolved configuration, tokenizers and hashes; everything that decoding
// needs. HDF5:
//
//   /                  attributes: format ("tactus model"), version, update, task, compute type of training
//   /config            resolved YAML
//   /feature_hash      of the corpus
//   /statistics        f64 [2, width]: sums and sums of squares of frames, attribute frames; for data.cmvn: global alone
//   /tokenizer/target, /tokenizer/source
//                      tokenizers as they are stored in corpora (source only where CTC uses it)
//   /weights/NAME      f32 (f64 for f64 runs): masters, in the parameter's shape
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/files/h5.h"
#include "core/parameters.h"
#include "data/batches/normalise.h"

namespace tactus {

struct ModelInfo {
  std::string config_yaml, feature_hash, target_tokenizer, source_tokenizer;
  std::string task = "speech_translation";
  std::string dtype = "f32";
  int64_t update = 0;
  std::optional<FeatureMoments> statistics;  ///< of the features, for global normalisation
};

/// Writes the file at exactly `path` (the caller gives it its final name).
void write_model_file(const std::string& path, const ModelInfo& info, ParameterStore& store);
/// DataError when the file is damaged, cut short or of another kind.
ModelInfo read_model_info(const std::string& path);
/// Fills `store`. DataError names the first parameter that is missing, unexpected or has another shape.
void read_model_weights(const std::string& path, ParameterStore& store);
/// Element-wise mean of the weights of several model files of one model, in double; info of the last one. Written to
/// `out` atomically.
void average_model_files(const std::vector<std::string>& paths, const std::string& out);

}  // namespace tactus
