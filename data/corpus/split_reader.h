// Builds a CorpusSplit over a mapped corpus file.
#pragma once

#include <memory>
#include <string>

#include "data/corpus/corpus.h"

namespace tactus {

/// Checks everything that is used to index later: a damaged table is a DataError here, or where its row is read.
class SplitReader {
 public:
  SplitReader(const h5::File& file, std::shared_ptr<const FileDescriptor> raw, std::shared_ptr<const MappedFile> map,
              const FeatureOptions& features, const std::string& store);
  std::shared_ptr<const CorpusSplit> read(const std::string& name, int64_t target_vocabulary,
                                          int64_t source_vocabulary) const;

 private:
  const int64_t* offsets(const std::string& name, int64_t rows) const;
  TextColumn text(const std::string& name, int64_t rows) const;
  TokenColumn tokens(const std::string& name, int64_t rows, int64_t vocabulary) const;
  void read_frames_table(CorpusSplit& split, const std::string& name) const;

  const h5::File& file_;
  std::shared_ptr<const FileDescriptor> raw_;
  std::shared_ptr<const MappedFile> map_;
  const FeatureOptions& features_;
  std::string store_;
};

}  // namespace tactus
