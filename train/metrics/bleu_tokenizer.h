// Tokenizers that BLEU is defined over. `13a` is the tokenization of NIST's mteval-v13a.pl in the form in which
// sacreBLEU applies it (Post 2018, "A Call for Clarity in Reporting BLEU Scores"); `none` takes the text as tokenized
// already; `char` makes every character a token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tactus {

enum class BleuTokenizer { k13a, kNone, kChar };

/// "13a", "none" or "char"; anything else is a ConfigError that lists them.
BleuTokenizer bleu_tokenizer(std::string_view name);
const char* bleu_tokenizer_name(BleuTokenizer tokenizer);

/// Tokens of one segment. Input must be valid UTF-8.
std::vector<std::string> bleu_tokenize(std::string_view segment, BleuTokenizer tokenizer);

}  // namespace tactus
