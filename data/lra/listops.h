// ListOps (Nangia and Bowman 2018) in the long form of the Long Range Arena (Tay et al. 2021): nested operations on
// digits, whose value is a digit.
//
//   node(depth):  a digit 0..9 where depth has reached max_depth; else with probability 3/4 a digit, with 1/4 one of
//                 MIN, MAX, MED, SM with n ~ uniform{2..max_args} nodes of the next depth. The root has depth 1.
//   value:        MIN, MAX; SM: sum modulo 10; MED: median, the integer part of the mean of the two middle values for
//                 even n.
//   length:       number of tokens, where digits, operators and closing brackets count one each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"

namespace tactus {

struct ListOpsOptions {
  int64_t train = 96000, valid = 2000, test = 2000;
  int64_t min_length = 500, max_length = 2000;  ///< both exclusive, as in the released set
  int64_t max_depth = 10, max_args = 10;
  int64_t seed = 1;
  int64_t threads = 0;
  void visit(ConfigVisitor& v);
};

/// Tokens of a tree in prefix order: 0..9 the digits, then the operators and the closing bracket.
using ListOpsTokens = std::vector<uint8_t>;
enum ListOpsToken : uint8_t { kListOpsMin = 10, kListOpsMax, kListOpsMed, kListOpsSum, kListOpsClose };

/// Tree number `candidate` of the seed; none when its length is outside the limits. A pure function of its arguments.
std::optional<ListOpsTokens> draw_listops(const ListOpsOptions& options, int64_t candidate);

/// DataError when the tokens are not one whole tree.
int listops_value(std::span<const uint8_t> tokens);

/// "[MAX 2 9 ]": words separated by single spaces.
std::string listops_words(std::span<const uint8_t> tokens);
/// The form of the released files: "( ( ( [MAX 2 ) 9 ) ] )". The tokens must be one whole tree.
std::string listops_source(std::span<const uint8_t> tokens);
/// Tokens of either form, parentheses dropped. DataError beginning with `where` for any other word.
ListOpsTokens parse_listops(std::string_view text, const std::string& where);

/// Writes basic_train.tsv, basic_val.tsv and basic_test.tsv (header "Source<tab>Target", then one tree a line) and
/// listops.yaml, the options, to `folder`. All trees differ; the splits are cut from one stream, in that order.
/// ConfigError when the limits leave too few trees.
void generate_listops(const ListOpsOptions& options, const std::string& folder);

}  // namespace tactus
