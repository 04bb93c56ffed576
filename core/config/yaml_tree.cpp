#include "core/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>

#include "core/error.h"

namespace tactus {
namespace {

bool one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// Far more than any configuration needs; stops alias bombs, whose copies grow exponentially.
constexpr size_t kMostNodes = 200000;
constexpr size_t kMostLevels = 100;

/// Listens to nothing: a syntax error is told before a complaint about what the broken text seems to hold.
class SyntaxCheck : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// Builds the tree from yaml-cpp's events rather than from YAML::Node, which drops the spelling of nulls and keeps
/// duplicates.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, std::string name, const YamlFail& fail)
      : text_(text), name_(std::move(name)), fail_(fail) {}

  YamlNode root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.text = null_text(mark.pos, anchor != 0);
    node.kind = node.text.empty() ? YamlNode::Kind::empty : YamlNode::Kind::scalar;
    add(mark, anchor, std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail_at(mark, "an alias inside the value that it names");
    if (count_ += size(it->second); count_ > kMostNodes) fail_at(mark, "aliases expand to more than 200000 values");
    place(mark, YamlNode(it->second));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.quoted = tag == "!";
    node.text = value;
    add(mark, anchor, std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

  [[noreturn]] void fail_at(const YAML::Mark& mark, const std::string& what) const {
    fail_(at(mark) + ": " + what);
    throw Error(what);
  }
  std::string at(const YAML::Mark& mark) const { return name_ + ":" + std::to_string(mark.line + 1); }

 private:
  struct Frame {
    YamlNode node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    YAML::Mark key_mark;
  };

  /// The parser tells nulls without their spelling. An absent value carries the mark of the token after it, which is
  /// punctuation or a key; a written one stands at its mark, after its anchor, and as a value has no colon behind it.
  std::string null_text(size_t i, bool anchored) const {
    if (anchored) i = text_.find_first_not_of(" \t\r\n", std::min(text_.find_first_of(" \t\r\n", i), text_.size()));
    if (i >= text_.size()) return {};
    const bool is_key = !frames_.empty() && frames_.back().node.kind == YamlNode::Kind::map && !frames_.back().has_key;
    for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
      if (text_.compare(i, word.size(), word) != 0) continue;
      size_t after = i + word.size();
      if (after < text_.size() && !one_of(text_[after], " \t\r\n,]}:#")) continue;
      after = text_.find_first_not_of(" \t", after);
      if (!is_key && after != std::string::npos && text_[after] == ':') return {};
      return std::string(word);
    }
    return {};
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") fail_at(mark, "the tag '" + tag + "' is not supported: remove it");
  }

  static size_t size(const YamlNode& node) {
    size_t n = 1;
    for (const YamlNode& item : node.items) n += size(item);
    for (const auto& entry : node.entries) n += size(entry.second);
    return n;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    check_tag(mark, tag);
    if (!frames_.empty() && frames_.back().node.kind == YamlNode::Kind::map && !frames_.back().has_key)
      fail_at(mark, "a key must be a word, not a list or a map");
    if (frames_.size() >= kMostLevels) fail_at(mark, "more than 100 levels of nesting");
    frames_.push_back({});
    frames_.back().node.kind = kind;
    frames_.back().mark = mark;
    frames_.back().anchor = anchor;
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(frame.mark, frame.anchor, std::move(frame.node));
  }

  void add(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode node) {
    if (++count_ > kMostNodes) fail_at(mark, "more than 200000 values");
    if (anchor) anchors_[anchor] = node;
    place(mark, std::move(node));
  }

  void place(const YAML::Mark& mark, YamlNode node) {
    if (frames_.empty()) {
      node.where = at(mark);
      root = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::list) {
      node.where = at(mark);
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      if (node.kind != YamlNode::Kind::scalar) fail_at(mark, "a key must be a word");
      if (const YamlNode* first = frame.node.find(node.text))
        fail_at(mark, "duplicate key '" + node.text + "', first given at " + first->where);
      frame.has_key = true;
      frame.key = node.text;
      frame.key_mark = mark;
    } else {
      node.where = at(frame.key_mark);
      frame.has_key = false;
      frame.node.entries.emplace_back(std::move(frame.key), std::move(node));
    }
  }

  const std::string& text_;
  std::string name_;
  const YamlFail& fail_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  size_t count_ = 0;
};

void write_scalar(const YamlNode& node, std::string& out) {
  if (node.kind == YamlNode::Kind::empty) {
    out += "~";
  } else if (node.quoted) {
    out += yaml_needs_quotes(node.text) ? yaml_quote(node.text) : node.text;
  } else {
    // Unquoted in the source: a number or a reserved word must stay so, other text may be quoted without changing what
    // it is.
    bool plain = !node.text.empty() && std::all_of(node.text.begin(), node.text.end(), [](unsigned char c) {
      return std::isalnum(c) || one_of(static_cast<char>(c), "_./+-~");
    });
    if (node.text[0] == '-') plain = plain && node.text.size() > 1 && node.text[1] != '-';
    out += plain ? node.text : yaml_quote(node.text);
  }
}

bool flat(const YamlNode& node) {
  return std::all_of(node.items.begin(), node.items.end(), [](const YamlNode& item) {
    return item.kind != YamlNode::Kind::map && (item.kind != YamlNode::Kind::list || flat(item));
  });
}

void write_flow(const YamlNode& node, std::string& out) {
  if (node.kind != YamlNode::Kind::list) return write_scalar(node, out);
  out += '[';
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (i) out += ", ";
    write_flow(node.items[i], out);
  }
  out += ']';
}

/// Writes what follows "key:" or "-", line end included.
void write_value(const YamlNode& node, int indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (node.kind == YamlNode::Kind::map && !node.entries.empty()) {
    out += '\n';
    for (const auto& [key, value] : node.entries) {
      out += pad + (yaml_needs_quotes(key) ? yaml_quote(key) : key) + ":";
      write_value(value, indent + 2, out);
    }
  } else if (node.kind == YamlNode::Kind::list && !flat(node)) {
    out += '\n';
    for (const YamlNode& item : node.items) {
      out += pad + "-";
      write_value(item, indent + 2, out);
    }
  } else {
    out += ' ';
    if (node.kind == YamlNode::Kind::map)
      out += "{}";
    else
      write_flow(node, out);
    out += '\n';
  }
}

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  for (const auto& entry : entries)
    if (entry.first == key) return &entry.second;
  return nullptr;
}
YamlNode* YamlNode::find(const std::string& key) { return const_cast<YamlNode*>(std::as_const(*this).find(key)); }

namespace {

/// The beginning of a long text, for messages; whole UTF-8 characters.
std::string shortened(const std::string& text) {
  constexpr size_t kLongest = 120;
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::empty:
      return "nothing";
    case Kind::scalar:
      return quoted ? "the quoted text " + yaml_quote(shortened(text)) : "'" + shortened(text) + "'";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
  }
  return {};
}

YamlNode parse_yaml(const std::string& text, const std::string& name, const YamlFail& fail) {
  // The parser counts positions after a byte order mark.
  std::string body = text.compare(0, 3, "\xEF\xBB\xBF") == 0 ? text.substr(3) : text;
  // yaml-cpp accepts a quoted text that the end of the file cuts off after a line end, but not one cut by an end
  // marker.
  body += body.empty() || body.back() == '\n' ? "...\n" : "\n...\n";
  TreeBuilder builder(body, name, fail);
  try {
    std::istringstream check(body), stream(body);
    SyntaxCheck nothing;
    YAML::Parser checker(check), parser(stream);
    if (checker.HandleNextDocument(nothing) && checker.HandleNextDocument(nothing))
      fail(name + ": holds a second document; only one is allowed");
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& e) {
    std::string what = e.msg;
    if (what.find("in scalar") != std::string::npos) what = "a quoted text has no end";
    if (text.find('\t') != std::string::npos && what.find("illegal") != std::string::npos)
      what += " (indent with spaces, not tabs)";
    YAML::Mark mark = e.mark;  // of what never ends: behind the last line
    const size_t end = text.find_last_not_of("\r\n");
    mark.line = std::min<int>(mark.line, std::count(text.begin(), text.begin() + (end == text.npos ? 0 : end), '\n'));
    fail((e.mark.is_null() ? name : builder.at(mark)) + ": YAML syntax error: " + what);
  }
  if (builder.root.where.empty()) builder.root.where = name + ":1";
  return std::move(builder.root);
}

bool yaml_needs_quotes(const std::string& text) {
  if (text.empty() || !(std::isalpha(static_cast<unsigned char>(text[0])) || one_of(text[0], "_/"))) {
    // Anything that begins like a number, a sign, a dot or an indicator; "..", "./x" included for simplicity.
    return true;
  }
  for (unsigned char c : text)
    if (!std::isalnum(c) && !one_of(static_cast<char>(c), "_./+-")) return true;
  std::string lower;
  for (unsigned char c : text) lower += static_cast<char>(std::tolower(c));
  // Truth values and nulls of YAML 1.1 and 1.2.
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
    if (lower == word) return true;
  return false;
}

std::string yaml_quote(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (c < 0x20 || c == 0x7f) {
          const char* digits = "0123456789abcdef";
          out += std::string("\\x") + digits[c >> 4] + digits[c & 15];
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  return out + '"';
}

std::string format_double(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

std::string write_yaml(const YamlNode& node) {
  std::string out;
  if (node.kind == YamlNode::Kind::empty || (node.kind == YamlNode::Kind::map && node.entries.empty())) return "{}\n";
  write_value(node, 0, out);
  return out.substr(1);  // a value begins with what separates it from its key
}

}  // namespace tactus
