#include "train/convert/official_weights.h"

#include <algorithm>
#include <set>

namespace tactus {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<int64_t> extents_of(const Shape& shape) {
  std::vector<int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i) extents.push_back(shape[i]);
  return extents;
}

/// A block of rows of our parameter: rows [begin, begin + count) are the rows of the official tensor `name`.
struct Rows {
  std::string name;
  int64_t begin, count;
};

/// Where the parts of one of our parameters are found in a checkpoint.
class Layout {
 public:
  Layout(ParameterStore& store, const Parameter& parameter) : store_(store), parameter_(parameter) {}

  /// Names and row ranges; one entry for all but the fused projection.
  std::vector<Rows> rows() const {
    const std::string& name = parameter_.name;
    const std::string end = name.substr(name.rfind('.') + 1);
    const std::string mark = "qkv." + end;
    if (!ends_with(name, mark)) return {{name, 0, height()}};
    const std::string module = name.substr(0, name.size() - mark.size());
    const int64_t q = other(module + "out_proj.weight").shape[1], kv = (height() - q) / 2;
    return {
        {module + "q_proj." + end, 0, q}, {module + "k_proj." + end, q, kv}, {module + "v_proj." + end, q + kv, kv}};
  }
  bool is_convolution() const {
    return parameter_.name.find("conv_layers.") != std::string::npos && ends_with(parameter_.name, ".weight");
  }
  int64_t convolution_number() const {
    return std::stoll(parameter_.name.substr(parameter_.name.rfind("conv_layers.") + 12));
  }
  /// For each row of the official tensor the row of ours; empty: the same.
  std::vector<int64_t> row_order() const {
    const std::string mark = "wkv_b.weight";
    if (!ends_with(parameter_.name, mark)) return {};
    const std::string module = parameter_.name.substr(0, parameter_.name.size() - mark.size());
    const int64_t latent = parameter_.shape[1], rope = other(module + "wkv_a.weight").shape[0] - latent;
    const Parameter* wq = store_.find(module + "wq.weight");
    const int64_t queries = (wq ? *wq : other(module + "wq_b.weight")).shape[0];
    const int64_t values = other(module + "wo.weight").shape[1], keys = height() - values;
    // Queries are heads x (nope + rope) wide and keys heads x nope: the rest counts the heads.
    const int64_t heads = (queries - keys) / rope, nope = keys / heads, value = values / heads;
    std::vector<int64_t> order;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < nope; ++i) order.push_back(h * nope + i);
      for (int64_t i = 0; i < value; ++i) order.push_back(keys + h * value + i);
    }
    return order;
  }
  int64_t height() const { return parameter_.shape[0]; }
  int64_t width() const { return parameter_.shape.elements() / std::max<int64_t>(height(), 1); }

 private:
  const Parameter& other(const std::string& name) const {
    const Parameter* p = store_.find(name);
    if (!p) throw Error("weights: " + parameter_.name + " has no neighbour " + name);
    return *p;
  }
  ParameterStore& store_;
  const Parameter& parameter_;
};

/// Calls f(ours, theirs) for each number: indices into our parameter and into one official tensor of `rows`.
template <class F>
void for_each_number(const Layout& layout, const Rows& rows, int64_t taps, F f) {
  const int64_t width = layout.width();
  if (layout.is_convolution()) {
    const int64_t in = width / taps;
    for (int64_t o = 0; o < rows.count; ++o) {
      for (int64_t c = 0; c < in; ++c) {
        for (int64_t k = 0; k < taps; ++k) f((rows.begin + o) * width + k * in + c, (o * in + c) * taps + k);
      }
    }
    return;
  }
  const std::vector<int64_t> order = layout.row_order();
  for (int64_t r = 0; r < rows.count; ++r) {
    const int64_t ours = rows.begin + (order.empty() ? r : order[static_cast<size_t>(r)]);
    for (int64_t c = 0; c < width; ++c) f(ours * width + c, r * width + c);
  }
}

std::vector<int64_t> official_shape(const Layout& layout, const Parameter& p, const Rows& rows, int64_t taps) {
  if (layout.is_convolution()) return {rows.count, layout.width() / taps, taps};
  std::vector<int64_t> shape = extents_of(p.shape);
  shape[0] = rows.count;
  return shape;
}

/// Taps of a convolution in a checkpoint; 1 for anything else.
int64_t taps_of(const Layout& layout, const std::string& name, const OfficialTensor& t) {
  if (!layout.is_convolution()) return 1;
  if (t.shape.size() != 3 || t.shape[2] < 1 || layout.width() % t.shape[2] != 0)
    throw DataError("weights: " + name + " is " + shape_text(t.shape) + ", expected [out, in, kernel]");
  return t.shape[2];
}

void check_left_over(ParameterStore& store, const OfficialTensors& tensors, const std::set<std::string>& used) {
  for (const auto& [name, tensor] : tensors) {
    if (used.count(name) || ends_with(name, ".version")) continue;
    const Parameter* tied = store.find(name);
    if (!tied) throw DataError("weights: the model has no place for " + name + " " + shape_text(tensor.shape));
    if (tensor.values != tensors.at(tied->name).values)
      throw DataError("weights: " + name + " differs from " + tied->name + ", to which the model ties it");
  }
}

}  // namespace

void official_to_ours(ParameterStore& store, const OfficialTensors& tensors) {
  std::set<std::string> used;
  for (Parameter* p : store.all()) {
    const Layout layout(store, *p);
    std::vector<double> values(static_cast<size_t>(p->shape.elements()));
    for (const Rows& rows : layout.rows()) {
      const auto found = tensors.find(rows.name);
      if (found == tensors.end()) throw DataError("weights: " + rows.name + " is missing");
      const OfficialTensor& t = found->second;
      const int64_t taps = taps_of(layout, rows.name, t);
      const std::vector<int64_t> expected = official_shape(layout, *p, rows, taps);
      if (t.shape != expected) {
        throw DataError("weights: " + rows.name + " is " + shape_text(t.shape) + ", expected " + shape_text(expected));
      }
      for_each_number(layout, rows, taps, [&](int64_t ours, int64_t theirs) {
        values[static_cast<size_t>(ours)] = t.values[static_cast<size_t>(theirs)];
      });
      used.insert(rows.name);
    }
    store.write(*p, values);
  }
  check_left_over(store, tensors, used);
}

OfficialTensors ours_to_official(ParameterStore& store, OfficialContent content,
                                 const std::vector<int64_t>& conv_kernels) {
  OfficialTensors tensors;
  for (const Parameter* p : store.all()) {
    const Layout layout(store, *p);
    const std::vector<double> values =
        content == OfficialContent::weights ? store.read(*p) : store.context().download_real(p->grad);
    int64_t taps = 1;
    if (layout.is_convolution()) {
      const size_t number = static_cast<size_t>(layout.convolution_number());
      if (number >= conv_kernels.size() || layout.width() % conv_kernels[number] != 0)
        throw Error("weights: " + p->name + " does not fit the kernels given");
      taps = conv_kernels[number];
    }
    for (const Rows& rows : layout.rows()) {
      OfficialTensor& t = tensors[rows.name];
      t.shape = official_shape(layout, *p, rows, taps);
      t.values.resize(static_cast<size_t>(rows.count * layout.width()));
      for_each_number(layout, rows, taps, [&](int64_t ours, int64_t theirs) {
        t.values[static_cast<size_t>(theirs)] = values[static_cast<size_t>(ours)];
      });
    }
  }
  return tensors;
}

}  // namespace tactus
