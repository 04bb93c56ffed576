#include "train/checkpoint/model_file.h"

#include <algorithm>
#include <set>

#include "core/files/files.h"

namespace tactus {
namespace {

constexpr const char* kFormat = "tactus model";
constexpr int64_t kVersion = 1;

h5::File open_checked(const std::string& path) {
  h5::File file = h5::File::open(path);
  if (!file.has_attribute("/", "format") || file.attribute_string("/", "format") != kFormat) {
    throw DataError(path + ": not a model file of tactus");
  }
  const int64_t version = file.attribute_int("/", "version");
  if (version > kVersion) {
    throw DataError(path + ": written by a newer tactus (format " + std::to_string(version) +
                    ", this one reads up to " + std::to_string(kVersion) + ")");
  }
  return file;
}

void write_header(h5::File& file, const ModelInfo& info) {
  file.set_attribute("/", "format", std::string(kFormat));
  file.set_attribute("/", "version", kVersion);
  file.set_attribute("/", "update", info.update);
  file.set_attribute("/", "task", info.task);
  file.set_attribute("/", "dtype", info.dtype);
  file.write_string("/config", info.config_yaml);
  file.write_string("/feature_hash", info.feature_hash);
  file.make_group("/tokenizer");
  auto blob = [&](const std::string& name, const std::string& bytes) {
    file.write("/tokenizer/" + name, {static_cast<int64_t>(bytes.size())},
               reinterpret_cast<const uint8_t*>(bytes.data()));
  };
  blob("target", info.target_tokenizer);
  blob("source", info.source_tokenizer);
  file.make_group("/weights");
  if (!info.statistics) return;
  std::vector<double> values = info.statistics->sum;
  values.insert(values.end(), info.statistics->squares.begin(), info.statistics->squares.end());
  file.write("/statistics", {2, static_cast<int64_t>(info.statistics->sum.size())}, values.data());
  file.set_attribute("/statistics", "frames", info.statistics->frames);
}

void write_weight(h5::File& file, const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<double>& values, bool wide) {
  if (wide) {
    file.write("/weights/" + name, shape, values.data());
  } else {
    const std::vector<float> narrow(values.begin(), values.end());
    file.write("/weights/" + name, shape, narrow.data());
  }
}

std::vector<int64_t> extents(const Shape& shape) {
  std::vector<int64_t> e;
  for (int i = 0; i < shape.rank(); ++i) e.push_back(shape[i]);
  return e;
}

std::string text(const std::vector<int64_t>& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

}  // namespace

void write_model_file(const std::string& path, const ModelInfo& info, ParameterStore& store) {
  h5::File file = h5::File::create(path);
  write_header(file, info);
  for (Parameter* p : store.all())
    write_weight(file, p->name, extents(p->shape), store.read(*p), p->master.dtype() == DType::f64);
  file.close();
}

ModelInfo read_model_info(const std::string& path) {
  const h5::File file = open_checked(path);
  auto blob = [&](const std::string& name) {
    const std::vector<uint8_t> bytes = file.read<uint8_t>("/tokenizer/" + name);
    return std::string(bytes.begin(), bytes.end());
  };
  ModelInfo info;
  info.config_yaml = file.read_string("/config");
  info.feature_hash = file.read_string("/feature_hash");
  info.target_tokenizer = blob("target");
  info.source_tokenizer = blob("source");
  info.task = file.attribute_string("/", "task");
  info.dtype = file.attribute_string("/", "dtype");
  info.update = file.attribute_int("/", "update");
  if (file.exists("/statistics")) {
    const std::vector<double> values = file.read<double>("/statistics");
    const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
    info.statistics = {file.attribute_int("/statistics", "frames"), {values.begin(), middle}, {middle, values.end()}};
  }
  return info;
}

void read_model_weights(const std::string& path, ParameterStore& store) {
  const h5::File file = open_checked(path);
  const std::vector<std::string> names = file.list("/weights");
  std::set<std::string> left(names.begin(), names.end());
  for (Parameter* p : store.all()) {
    if (left.erase(p->name) == 0) throw DataError(path + ": holds no weights for '" + p->name + "'");
    const std::vector<int64_t> shape = file.shape("/weights/" + p->name);
    if (shape != extents(p->shape)) {
      throw DataError(path + ": '" + p->name + "' has shape " + text(shape) + ", the model needs " +
                      p->shape.to_string());
    }
    store.write(*p, file.read<double>("/weights/" + p->name));
  }
  if (!left.empty()) throw DataError(path + ": holds weights '" + *left.begin() + "' that the model does not have");
}

void average_model_files(const std::vector<std::string>& paths, const std::string& out) {
  if (paths.empty()) throw DataError("average: no model files were given");
  std::vector<h5::File> files;
  for (const std::string& path : paths) files.push_back(open_checked(path));
  AtomicFile target(out);
  {
    h5::File result = h5::File::create(target.temporary());
    ModelInfo info = read_model_info(paths.back());
    write_header(result, info);
    const std::vector<std::string> names = files.front().list("/weights");
    for (size_t i = 1; i < files.size(); ++i) {
      if (files[i].list("/weights") != names) throw DataError(paths[i] + ": not the same model as " + paths.front());
    }
    for (const std::string& name : names) {
      const std::string dataset = "/weights/" + name;
      const std::vector<int64_t> shape = files.front().shape(dataset);
      std::vector<double> mean;
      for (size_t i = 0; i < files.size(); ++i) {
        if (files[i].shape(dataset) != shape)
          throw DataError(paths[i] + ": '" + name + "' has another shape than in " + paths.front());
        const std::vector<double> values = files[i].read<double>(dataset);
        mean.resize(values.size(), 0.0);
        for (size_t k = 0; k < values.size(); ++k) mean[k] += values[k] / static_cast<double>(files.size());
      }
      write_weight(result, name, shape, mean, info.dtype == "f64");
    }
    result.close();
  }
  target.commit();
}

}  // namespace tactus
