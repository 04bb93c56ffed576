// Names shared by the reader and the writer of corpora.
#pragma once

#include <cstdint>

namespace tactus::corpus_format {

inline constexpr const char* kName = "tactus-corpus";
inline constexpr int64_t kVersion = 2;
inline constexpr const char* kTokenizerGroup = "tokenizer";
inline constexpr const char* kTargetTokenizer = "tokenizer/target";
inline constexpr const char* kSourceTokenizer = "tokenizer/source";
inline constexpr const char* kExtraGroup = "extra";

}  // namespace tactus::corpus_format
