// What the law suites share: cases over every registered mechanism, inputs, and comparison.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "layers/attention/attention.h"

namespace tactus::laws {

/// Two sets of widths: even ones, and odd ones with a low-rank query.
enum class Widths { even, odd };

struct Case {
  std::string type;
  int64_t stride;
  Widths widths;
  Device device;
  DType dtype;
};

inline AttentionOptions options_of(const Case& c) {
  AttentionOptions o;
  o.type = c.type;
  o.stride = c.stride;
  const bool even = c.widths == Widths::even;
  o.heads = even ? 4 : 3;
  o.kv_heads = even ? 2 : 1;
  o.head_dim = even ? 8 : 6;
  o.q_lora_rank = even ? 0 : 9;
  o.kv_lora_rank = even ? 16 : 10;
  o.qk_nope_head_dim = even ? 8 : 5;
  o.qk_rope_head_dim = even ? 4 : 6;
  o.v_head_dim = even ? 8 : 7;
  return o;
}

inline std::vector<Case> cases(Device device, const std::vector<int64_t>& strides) {
  std::vector<Case> out;
  const std::vector<DType> types =
      device == Device::cpu ? std::vector<DType>{DType::f64, DType::f32} : std::vector<DType>{DType::f32, DType::bf16};
  for (const std::string& type : attention_types()) {
    for (int64_t stride : strides) {
      for (Widths w : {Widths::even, Widths::odd}) {
        for (DType d : types) out.push_back({type, stride, w, device, d});
      }
    }
  }
  return out;
}

inline std::string name_of(const Case& c) {
  return c.type + "_s" + std::to_string(c.stride) + (c.widths == Widths::even ? "_even_" : "_odd_") +
         to_string(c.dtype);
}

inline std::string case_name(const ::testing::TestParamInfo<Case>& info) { return name_of(info.param); }
inline void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

/// The one context of a device; on the CPU with two threads, so that threading is part of what is tested.
inline const Context& shared_context(Device device) {
  static const Context cpu = Context::cpu(2);
  if (device == Device::cpu) return cpu;
  static const Context cuda = Context::cuda();
  return cuda;
}
inline Context fresh_context(Device device) { return device == Device::cpu ? Context::cpu(1) : Context::cuda(); }

class LawSuite : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().device == Device::cpu || Context::cuda_available()) return;
    if (std::getenv("TACTUS_REQUIRE_GPU")) FAIL() << "no CUDA device";
    GTEST_SKIP() << "no CUDA device";
  }
  DType dtype() const { return GetParam().dtype; }
  /// One of four numbers: for f64, f32 on the CPU, f32 on CUDA, bf16.
  double pick(double f64, double f32, double cuda_f32, double bf16) const {
    if (dtype() == DType::f64) return f64;
    if (dtype() == DType::bf16) return bf16;
    return GetParam().device == Device::cpu ? f32 : cuda_f32;
  }
};

inline std::vector<double> normals(int64_t n, uint64_t seed, double deviation = 1) {
  Rng rng(mix_key(0x6c617773, seed));
  std::vector<double> v(static_cast<size_t>(n));
  for (double& x : v) x = deviation * rng.normal();
  return v;
}

/// max|a - b| / max(max|b|, 1e-3); infinite for NaN and other sizes.
inline double error_of(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double off = 0, top = 1e-3;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return HUGE_VAL;
    off = std::max(off, std::abs(a[i] - b[i]));
    top = std::max(top, std::abs(b[i]));
  }
  return off / top;
}

inline std::vector<double> rows_of(const std::vector<double>& v, int64_t begin, int64_t end, int64_t width) {
  return {v.begin() + begin * width, v.begin() + end * width};
}
inline void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
inline int64_t sum_of(const std::vector<int64_t>& v) {
  int64_t n = 0;
  for (int64_t x : v) n += x;
  return n;
}

/// One attention module with random weights.
class Mechanism {
 public:
  static constexpr int64_t kWidth = 24;
  Mechanism(const Context& ctx, const Case& c, double dropout = 0) : ctx_(ctx), dtype_(c.dtype) {
    AttentionOptions o = options_of(c);
    o.dropout = dropout;
    attention_ = make_attention(o, Scope(store_, "attention"), kWidth);
    store_.allocate(ctx, c.dtype, true);
    store_.initialise(11);
  }
  const Attention& operator*() const { return *attention_; }
  const Attention* operator->() const { return attention_.get(); }
  ParameterStore& store() { return store_; }
  Tensor upload(const std::vector<double>& rows) const {
    return ctx_.upload_real(rows, {static_cast<int64_t>(rows.size()) / kWidth, kWidth}, dtype_);
  }

 private:
  Context ctx_;
  DType dtype_;
  ParameterStore store_;
  std::unique_ptr<Attention> attention_;
};

/// Incremental use of a mechanism: the hypotheses of some utterances, each with the length of its sequence.
class Decoding {
 public:
  Decoding(const Context& ctx, const Mechanism& m, DType dtype, const std::vector<int64_t>& prompt_lengths,
           const std::vector<double>& prompt_rows, int64_t max_rows, int64_t max_new)
      : ctx_(ctx), mechanism_(m), tape_(ctx, false), tables_(ctx), pass_{tape_, tables_}, lengths_(prompt_lengths) {
    const Segments segments(ctx, prompt_lengths);
    std::vector<int32_t> positions;
    for (int64_t n : prompt_lengths) {
      for (int64_t t = 0; t < n; ++t) positions.push_back(static_cast<int32_t>(t));
    }
    cache_ = m->new_cache(ctx, dtype, segments, max_rows, max_new);
    m->prefill(pass_, tape_.constant(m.upload(prompt_rows)), segments, ctx.upload(positions), *cache_);
  }
  /// Outputs of all hypotheses for one more row of each.
  std::vector<double> step(const std::vector<double>& rows) {
    std::vector<int32_t> positions;
    for (int64_t& n : lengths_) positions.push_back(static_cast<int32_t>(n++));
    const Var x = tape_.constant(mechanism_.upload(rows));
    return ctx_.download_real(mechanism_->step(pass_, x, ctx_.upload(positions), *cache_).value());
  }
  void reorder(const std::vector<int32_t>& parents) {
    std::vector<int64_t> next;
    for (int32_t p : parents) next.push_back(lengths_.at(static_cast<size_t>(p)));
    lengths_ = next;
    cache_->reorder(parents);
  }
  AttentionCache& cache() { return *cache_; }
  std::vector<int64_t>& lengths() { return lengths_; }

 private:
  Context ctx_;
  const Mechanism& mechanism_;
  Tape tape_;
  Tables tables_;
  Pass pass_;
  std::vector<int64_t> lengths_;
  std::unique_ptr<AttentionCache> cache_;
};

}  // namespace tactus::laws
