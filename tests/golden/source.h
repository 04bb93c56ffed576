// Reading of reference files: groups with attributes, arrays, and the official weights of an object.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/files/h5.h"
#include "train/convert/official_weights.h"

namespace tactus::golden {

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;
  int64_t elements() const { return static_cast<int64_t>(values.size()); }
  /// Extent `i`; scalars have extent 1 in every axis.
  int64_t dim(size_t i) const { return i < shape.size() ? shape[i] : 1; }
  /// Values of entries [begin, end) of a row-major view with `width` numbers an entry.
  std::vector<double> part(int64_t begin, int64_t end, int64_t width) const {
    return {values.begin() + begin * width, values.begin() + end * width};
  }
};

/// A group of an open file.
class Node {
 public:
  Node(h5::File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  /// Last component of the path.
  std::string name() const { return path_.substr(path_.rfind('/') + 1); }
  bool has(const std::string& member) const { return file_.exists(join(member)); }
  bool has_attribute(const std::string& name) const { return file_.has_attribute(path_, name); }
  int64_t integer(const std::string& name) const { return file_.attribute_int(path_, name); }
  int64_t integer(const std::string& name, int64_t otherwise) const {
    return has_attribute(name) ? integer(name) : otherwise;
  }
  double real(const std::string& name) const { return file_.attribute_real(path_, name); }
  /// "" where there is none.
  std::string text(const std::string& name) const {
    return has_attribute(name) ? file_.attribute_string(path_, name) : "";
  }
  std::vector<int64_t> integers(const std::string& name) const {
    std::vector<int64_t> out;
    for (double v : file_.attribute_list(path_, name)) out.push_back(static_cast<int64_t>(v));
    return out;
  }

  Node child(const std::string& member) const { return {file_, join(member)}; }
  Node sibling(const std::string& member) const { return {file_, path_.substr(0, path_.rfind('/') + 1) + member}; }
  std::vector<Node> groups() const {
    std::vector<Node> out;
    for (const std::string& m : file_.list(path_)) {
      if (file_.kind(join(m)) == h5::ObjectKind::group) out.push_back(child(m));
    }
    return out;
  }
  /// Groups with the attribute `case`.
  std::vector<Node> cases() const {
    std::vector<Node> out;
    for (Node& g : groups()) {
      if (g.has_attribute("case")) out.push_back(g);
    }
    return out;
  }
  std::vector<std::string> arrays() const {
    std::vector<std::string> out;
    for (const std::string& m : file_.list(path_)) {
      if (file_.kind(join(m)) == h5::ObjectKind::dataset) out.push_back(m);
    }
    return out;
  }
  Array array(const std::string& member) const { return {file_.shape(join(member)), file_.read<double>(join(member))}; }
  std::vector<int32_t> tokens(const std::string& member) const { return file_.read<int32_t>(join(member)); }
  double scalar(const std::string& member) const { return array(member).values.at(0); }
  /// Arrays whose name begins with `prefix`, under the rest of their name.
  std::map<std::string, Array> prefixed(const std::string& prefix) const {
    std::map<std::string, Array> out;
    for (const std::string& m : arrays()) {
      if (m.rfind(prefix, 0) == 0) out[m.substr(prefix.size())] = array(m);
    }
    return out;
  }
  OfficialTensors weights() const {
    OfficialTensors out;
    for (auto& [name, a] : prefixed("w.")) out[name] = {a.shape, a.values};
    return out;
  }

 private:
  std::string join(const std::string& member) const { return (path_ == "/" ? "" : path_) + "/" + member; }
  h5::File file_;
  std::string path_;
};

}  // namespace tactus::golden
