#include "core/parameters.h"

#include <algorithm>

namespace tactus {
namespace {

Tensor window(const Tensor& flat, int64_t offset, const Shape& shape) {
  return flat.slice(offset, offset + shape.elements()).view(shape);
}

std::vector<double> draw(const Parameter& p, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(p.shape.elements()), p.init.kind == Init::Kind::ones ? 1.0 : 0.0);
  Rng rng(mix_key(mix_key(seed, 0x1217), hash_path(p.name)));
  if (p.init.kind == Init::Kind::uniform) {
    for (double& v : values) v = p.init.scale * (2 * rng.uniform() - 1);
  } else if (p.init.kind == Init::Kind::normal) {
    for (double& v : values) v = p.init.scale * rng.normal();
    if (p.init.zero_row >= 0) {
      const int64_t width = p.shape[p.shape.rank() - 1];
      std::fill_n(values.begin() + p.init.zero_row * width, width, 0.0);
    }
  }
  return values;
}

}  // namespace

Parameter& ParameterStore::add(const std::string& name, Shape shape, Init init) {
  if (size_ > 0) throw Error("parameter '" + name + "' added after the buffers were made");
  Parameter& p = parameters_.emplace_back();
  p.name = name;
  p.shape = shape;
  p.init = init;
  alias(name, p);
  return p;
}

void ParameterStore::alias(const std::string& name, Parameter& parameter) {
  if (!names_.emplace(name, &parameter).second) throw Error("two parameters are called '" + name + "'");
}

void ParameterStore::allocate(const Context& ctx, DType compute, bool training) {
  ctx_ = ctx;
  compute_ = compute;
  const DType acc = accumulator_of(compute);
  // 64 elements of 4 bytes are 256 bytes; in bf16 the working copy is then aligned to 128, enough for any vector load.
  constexpr int64_t kAlign = 64;
  for (auto p = parameters_.rbegin(); p != parameters_.rend(); ++p) {
    p->offset = size_;
    size_ += (p->shape.elements() + kAlign - 1) / kAlign * kAlign;
  }
  value_ = ctx.zeros({size_}, compute, MemoryTag::weights);
  master_ = compute == acc || !training ? value_ : ctx.zeros({size_}, acc, MemoryTag::optimiser);
  if (training) grad_ = ctx.zeros({size_}, acc, MemoryTag::gradients);
  for (Parameter& p : parameters_) {
    p.value = window(value_, p.offset, p.shape);
    p.master = window(master_, p.offset, p.shape);
    if (training) p.grad = window(grad_, p.offset, p.shape);
  }
}

void ParameterStore::initialise(uint64_t seed) {
  for (Parameter& p : parameters_) write(p, draw(p, seed));
}

Parameter* ParameterStore::find(const std::string& name) {
  auto it = names_.find(name);
  return it == names_.end() ? nullptr : it->second;
}

std::vector<Parameter*> ParameterStore::all() {
  std::vector<Parameter*> out;
  for (Parameter& p : parameters_) out.push_back(&p);
  return out;
}

int64_t ParameterStore::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.shape.elements();
  return n;
}

std::vector<double> ParameterStore::read(const Parameter& parameter) const {
  return ctx_->download_real(parameter.master);
}

void ParameterStore::write(Parameter& parameter, const std::vector<double>& values) {
  if (static_cast<int64_t>(values.size()) != parameter.shape.elements()) {
    throw DataError("parameter '" + parameter.name + "' has shape " + parameter.shape.to_string() + " but " +
                    std::to_string(values.size()) + " values were given");
  }
  ctx_->copy(parameter.master,
             ctx_->upload_real(values, parameter.shape, parameter.master.dtype(), MemoryTag::workspace));
  if (!parameter.value.shares_storage(parameter.master)) {
    ctx_->copy(parameter.value, ctx_->upload_real(values, parameter.shape, compute_, MemoryTag::workspace));
  }
}

void ParameterStore::refresh_working_copy() {
  for (Parameter& p : parameters_) {
    if (!p.value.shares_storage(p.master)) write(p, read(p));
  }
}

void ParameterStore::zero_grad() { ctx_->fill_zero(grad_); }

}  // namespace tactus
