// The table of what `tactus bench kernels` measures. A case is a name and a function that makes the arguments of one
// launch; time, rates and errors follow from it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/rng.h"
#include "core/segments.h"

namespace tactus {

/// One launch: its arguments are captured, ready to be launched again and again.
struct KernelLaunch {
  std::function<void()> launch;
  std::vector<Tensor> outputs;  ///< floating point; compared with the CPU
  std::string shape;
  double bytes = 0;  ///< either these ...
  double flops = 0;  ///< ... or these
};

struct KernelExtents {
  int64_t rows = 0;    ///< of a batch
  int64_t square = 0;  ///< of the large matrix product
  int64_t copied = 0;  ///< values of the large copy
};

/// Makes arguments. Values come from a fixed generator and fit bf16, so that a case has the same ones on any device in
/// any type. The second and later sets of arguments are copies of the first.
class KernelData {
 public:
  KernelData(const Context& ctx, DType dtype, KernelExtents extents);

  const Context& ctx() const { return ctx_; }
  DType dtype() const { return dtype_; }
  DType accumulator_type() const { return accumulator_of(dtype_); }
  int64_t rows() const { return extents_.rows; }
  int64_t square() const { return extents_.square; }
  int64_t copied() const { return extents_.copied; }

  Tensor normal(Shape shape, double deviation = 1) { return draw(shape, dtype_, deviation, false); }
  Tensor accumulator(Shape shape) { return draw(shape, accumulator_type(), 1, false); }
  /// Magnitudes of normal numbers, 0.1 at least.
  Tensor positive(Shape shape) { return draw(shape, accumulator_type(), 1, true); }
  /// Zeros, for outputs.
  Tensor output(Shape shape) {
    return keep(shape, dtype_, [&] { return ctx_.zeros(shape, dtype_); });
  }
  Tensor sums(Shape shape) {
    return keep(shape, accumulator_type(), [&] { return ctx_.zeros(shape, accumulator_type()); });
  }
  Tensor integers(const std::vector<int32_t>& values);
  /// n host integers below `bound`, each time the same.
  static std::vector<int32_t> draws(int64_t n, int64_t bound);

  /// Utterances of about 155 frames, `rows` in all.
  Segments utterances() const;
  /// As many sequences as `prompts` has, of about 28 tokens.
  Segments sentences(const Segments& prompts) const;

  /// f.operator()<Backend, T>() for this device and type.
  template <class F>
  std::function<void()> launcher(F f) const {
    return [ctx = ctx_, dtype = dtype_, f] { dispatch(ctx, dtype, f); };
  }

  /// Bytes of the arguments made since the last call of next_set.
  int64_t set_bytes() const { return set_bytes_; }
  void next_set();

 private:
  Tensor draw(Shape shape, DType dtype, double deviation, bool positive);
  Tensor keep(Shape shape, DType dtype, const std::function<Tensor()>& make);
  const Context& ctx_;
  DType dtype_;
  KernelExtents extents_;
  std::vector<Tensor> first_;
  size_t next_ = 0;
  bool copying_ = false;
  int64_t set_bytes_ = 0;
};

double bytes_of(std::initializer_list<Tensor> tensors);
/// "10000 x 512"
std::string extents_text(std::initializer_list<int64_t> extents);

struct KernelCase {
  std::string name;
  std::function<KernelLaunch(KernelData&)> make;
};

/// The ceilings: a large copy, a large matrix product.
KernelLaunch copy_ceiling(KernelData& d);
KernelLaunch gemm_ceiling(KernelData& d);

void add_row_kernels(std::vector<KernelCase>& cases);    ///< layer_norm, dropout, pointwise, rope, layer_mix
void add_index_kernels(std::vector<KernelCase>& cases);  ///< embedding, gather_rows, unfold, decoding without attention
void add_dense_kernels(std::vector<KernelCase>& cases);  ///< gemm, sums, adam, casts
void add_loss_kernels(std::vector<KernelCase>& cases);   ///< cross_entropy, ctc
void add_attention_kernels(std::vector<KernelCase>& cases);  ///< attention, gate_sum

}  // namespace tactus
