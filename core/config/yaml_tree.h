// YAML text as a tree that remembers where each value was written. Config and Json are built on it.
//
// Values keep the text as typed: whether 1e3 or n is a number, a truth value or a word is decided by who reads it, not
// here.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tactus {

struct YamlNode {
  enum class Kind { empty, scalar, list, map };
  Kind kind = Kind::empty;
  bool quoted = false;                                    ///< a scalar in quotes or a block: certainly a string
  std::string text;                                       ///< of a scalar, without quotes
  std::vector<YamlNode> items;                            ///< of a list
  std::vector<std::pair<std::string, YamlNode>> entries;  ///< of a map, in file order, keys unique
  std::string where;  ///< "file:line" of the key (of the value in lists and at the root)

  const YamlNode* find(const std::string& key) const;
  YamlNode* find(const std::string& key);
  /// "the list [1, 2]", "the text 'abc'", ...: for messages.
  std::string describe() const;
};

/// Called with "file:line: what is wrong"; must throw.
using YamlFail = std::function<void(const std::string& message)>;

/// Parses one document. Syntax errors, duplicate keys, tags, keys that are no scalars, anchors inside themselves and a
/// second document are failures. Empty text gives an empty node.
YamlNode parse_yaml(const std::string& text, const std::string& name, const YamlFail& fail);

/// True where `text` unquoted would be read by common YAML readers as something else than this string.
bool yaml_needs_quotes(const std::string& text);
/// Double-quoted with escapes, on one line.
std::string yaml_quote(const std::string& text);
/// Shortest decimal that reads back equal, with a point, also before an exponent (YAML 1.1 needs it); ".inf", "-.inf",
/// ".nan".
std::string format_double(double value);
/// The tree as block YAML, lists of scalars in brackets. Reading it gives the same tree.
std::string write_yaml(const YamlNode& node);

}  // namespace tactus
