#include "tests/ops/kernel_runs.h"

#include <algorithm>
#include <cmath>

#include "kernels/adam.h"
#include "kernels/decode/attention_decode.h"
#include "kernels/gemm.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"

namespace tactus::testing_ops {
namespace {

/// Random inputs of one run on one device.
struct Data {
  const Context& ctx;
  DType dtype;
  Rng rng;
  Tensor normal(Shape shape, double deviation = 1) {
    return ctx.upload_real(rounded_normals(rng, shape.elements(), deviation), shape, dtype);
  }
  Tensor accumulator(Shape shape, double deviation = 1) {
    return ctx.upload_real(rounded_normals(rng, shape.elements(), deviation), shape, accumulator_of(dtype));
  }
};

/// Four steps, of which the third has an infinite loss and must change nothing but the gradients, which become zero.
KernelResult adam(const Context& ctx, DType dtype) {
  constexpr int64_t n = 5003;
  Data d{ctx, dtype, Rng(21)};
  const Tensor master = d.accumulator({n}), m = ctx.zeros({n}, master.dtype()), v = ctx.zeros({n}, master.dtype());
  const Tensor working = ctx.zeros({n}, dtype);
  const Tensor coefficient = ctx.zeros({1}, master.dtype());
  AdamOptions options{0.02, 0.9, 0.98, 1e-8, 0.01, 1, 0.25, true};
  KernelResult result;
  std::vector<double> before;
  for (; options.step <= 4; ++options.step) {
    const Tensor grad = d.accumulator({n});
    dispatch(ctx, dtype, [&]<class D, class T>() {
      using A = acc_t<T>;
      const Tensor scalars = ctx.upload(std::vector<double>{options.step == 3 ? HUGE_VAL : 1.0, 0.0});
      double* loss = scalars.data<double>();
      squared_norm_to<D, A>(ctx, n, grad.data<const A>(), loss + 1);
      adam_coefficient<D, A>(ctx, loss + 1, loss, 7, options.step == 2 ? 0 : 3, coefficient.data<A>());
      if (options.step != 3) result.real.push_back(ctx.download_real(coefficient));
      adam_step<D, T>(ctx, n, options, coefficient.data<const A>(), master.data<A>(), m.data<A>(), v.data<A>(),
                      grad.data<A>(), working.data<T>());
    });
    const std::vector<double> cleared = ctx.download_real(grad), after = ctx.download_real(master);
    const auto zeros = static_cast<int32_t>(std::count(cleared.begin(), cleared.end(), 0.0));
    result.exact.push_back({zeros, options.step == 3 && after == before ? 1 : 0});
    before = after;
  }
  for (const Tensor& t : {master, m, v, working}) result.real.push_back(ctx.download_real(t));
  return result;
}

KernelResult sums(const Context& ctx, DType dtype, int64_t n) {
  Data d{ctx, dtype, Rng(22)};
  const Tensor x = d.accumulator({n}), out = ctx.zeros({1}, x.dtype());
  double square = 0;
  dispatch(ctx, dtype, [&]<class D, class T>() {
    using A = acc_t<T>;
    reduce_sum<D, A>(ctx, n, x.data<const A>(), out.data<A>());
    square = squared_norm<D, A>(ctx, n, x.data<const A>());
  });
  return {{ctx.download_real(out), {square}}, {}};
}

struct Decode {
  int heads, kv_heads, d_key, d_value;
  bool latent;  ///< v is the first columns of k
};

KernelResult decode(const Context& ctx, DType dtype, const Decode& s) {
  Data d{ctx, dtype, Rng(23)};
  constexpr int64_t rows = 5, max_tail = 7, shared = 9;
  const Tensor offsets = ctx.upload(std::vector<int32_t>{0, 4, 4, 9});
  const Tensor utterance = ctx.upload(std::vector<int32_t>{0, 2, 2, 1, 1});
  const Tensor length = ctx.upload(std::vector<int32_t>{1, 7, 0, 3, 0});  // the last one sees no slot at all
  const Tensor q = d.normal({rows, s.heads * s.d_key}), out = ctx.zeros({rows, s.heads * s.d_value}, dtype);
  const int64_t k_cols = s.kv_heads * s.d_key, v_cols = s.kv_heads * s.d_value;
  const Tensor shared_k = d.normal({shared, k_cols}), shared_v = d.normal({shared, v_cols});
  const Tensor tail_k = d.normal({rows * max_tail, k_cols}), tail_v = d.normal({rows * max_tail, v_cols});
  dispatch(ctx, dtype, [&]<class D, class T>() {
    auto values = [&](const Tensor& k, const Tensor& v) {
      return s.latent ? k.mat<const T>().columns(0, v_cols) : v.mat<const T>();
    };
    const DecodeCache<T> cache{shared_k.mat<const T>(),       values(shared_k, shared_v),
                               offsets.data<const int32_t>(), utterance.data<const int32_t>(),
                               tail_k.mat<const T>(),         values(tail_k, tail_v),
                               length.data<const int32_t>(),  max_tail};
    attention_decode<D, T>(ctx, {s.heads, s.kv_heads, s.d_key, s.d_value, 0.3}, cache, q.mat<const T>(), out.mat<T>());
  });
  return {{ctx.download_real(out)}, {}};
}

KernelResult append(const Context& ctx, DType dtype) {
  Data d{ctx, dtype, Rng(24)};
  const Tensor tail = ctx.zeros({3 * 4, 5}, dtype), lengths = ctx.upload(std::vector<int32_t>{0, 3, 1});
  const Tensor x = d.normal({3, 5});
  dispatch(ctx, dtype, [&]<class D, class T>() {
    tail_append<D, T>(ctx, x.mat<const T>(), lengths.data<const int32_t>(), 4, tail.mat<T>());
  });
  return {{ctx.download_real(tail)}, {ctx.download<int32_t>(lengths)}};
}

/// Six steps of four hypotheses at different chunk phases.
KernelResult chunks(const Context& ctx, DType dtype, int stride) {
  Data d{ctx, dtype, Rng(25)};
  constexpr int64_t rows = 4, r = 6, h = 3, key = 2, max_tail = 8;
  const std::vector<int32_t> first{0, 4, 5, 7};
  std::vector<int32_t> begun;
  for (int32_t p : first) begun.push_back(p % stride ? 1 : 0);  // an open chunk comes with its slot
  const Tensor positions = ctx.upload(first), lengths = ctx.upload(begun), code = d.normal({14, h});
  const Tensor live = d.accumulator({rows, r}), tail = ctx.zeros({rows * max_tail, r + key}, dtype);
  for (int step = 0; step < 6; ++step) {
    const Tensor c = d.normal({rows, r}), p = d.normal({rows, h}), k_rope = d.normal({rows, key});
    dispatch(ctx, dtype, [&]<class D, class T>() {
      mtla_append<D, T>(ctx, stride, c.mat<const T>(), p.mat<const T>(), code.mat<const T>(), k_rope.mat<const T>(),
                        positions.data<const int32_t>(), lengths.data<int32_t>(), max_tail, live.mat<acc_t<T>>(),
                        tail.mat<T>());
      add_to_all<D>(ctx, rows, 1, positions.data<int32_t>());
    });
  }
  return {{ctx.download_real(live), ctx.download_real(tail)},
          {ctx.download<int32_t>(lengths), ctx.download<int32_t>(positions)}};
}

KernelResult reorder(const Context& ctx, DType dtype) {
  Data d{ctx, dtype, Rng(26)};
  constexpr int64_t rows = 4, max_tail = 5;
  const Tensor x = d.normal({rows * max_tail, 9}), y = ctx.zeros({rows * max_tail, 9}, dtype);
  const Tensor parent = ctx.upload(std::vector<int32_t>{2, 2, 0, 3}),
               lengths = ctx.upload(std::vector<int32_t>{1, 2, 5, 0});
  dispatch(ctx, dtype, [&]<class D, class T>() {
    tail_reorder<D, T>(ctx, x.mat<const T>(), parent.data<const int32_t>(), lengths.data<const int32_t>(), rows,
                       max_tail, y.mat<T>());
  });
  return {{ctx.download_real(y)}, {}};
}

struct TopK {
  int64_t rows, vocabulary;
  int k, forbidden, eos;
  bool allow_eos, only_eos;
  double temperature = 1;
};

KernelResult topk(const Context& ctx, DType dtype, const TopK& s) {
  Data d{ctx, dtype, Rng(27)};
  const Tensor logits = d.normal({s.rows, s.vocabulary}, 2);  // rounding to bf16 makes ties
  const Tensor values = ctx.zeros({s.rows, s.k}, accumulator_of(dtype)), tokens = ctx.zeros({s.rows, s.k}, DType::i32);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    topk_log_softmax<D, T>(ctx, logits.mat<const T>(), s.temperature, s.k, s.forbidden, s.eos, s.allow_eos, s.only_eos,
                           values.data<acc_t<T>>(), tokens.data<int32_t>());
  });
  return {{ctx.download_real(values)}, {ctx.download<int32_t>(tokens)}};
}

KernelResult casts(const Context& ctx, DType dtype) {
  Data d{ctx, dtype, Rng(28)};
  constexpr int64_t n = 1003;
  const Tensor x = d.normal({n}), wide = ctx.zeros({n}, accumulator_of(dtype)), back = ctx.zeros({n}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    cast<D, T, acc_t<T>>(ctx, n, x.data<const T>(), wide.data<acc_t<T>>());
    cast<D, acc_t<T>, T>(ctx, n, wide.data<const acc_t<T>>(), back.data<T>());
  });
  return {{ctx.download_real(wide), ctx.download_real(back)}, {}};
}

/// All four transpositions with alpha, beta and windows, then a batch.
KernelResult products(const Context& ctx, DType dtype) {
  constexpr int64_t m = 5, n = 7, k = 9;
  Data d{ctx, dtype, Rng(29)};
  KernelResult result;
  std::vector<double> before;
  for (int t = 0; t < 4; ++t) {
    const bool ta = t & 1, tb = t & 2;
    const Tensor a = d.normal({ta ? k : m, (ta ? m : k) + 3}), b = d.normal({tb ? n : k, tb ? k : n});
    const Tensor c = d.normal({m, n}), wide = d.accumulator({m, n});
    dispatch(ctx, dtype, [&]<class D, class T>() {
      using A = acc_t<T>;
      const Mat<const T> window = a.mat<const T>().columns(2, a.cols() - 1);
      gemm<D, T, T>(ctx, window, b.mat<const T>(), c.mat<T>(),
                    {.transpose_a = ta, .transpose_b = tb, .alpha = 0.5, .beta = -0.25});
      gemm<D, T, A>(ctx, window, b.mat<const T>(), wide.mat<A>(), {.transpose_a = ta, .transpose_b = tb, .beta = 1});
    });
    result.real.push_back(ctx.download_real(c));
    result.real.push_back(ctx.download_real(wide));
  }
  const Tensor a = d.normal({3 * m, k}), b = d.normal({3 * k, n}), c = ctx.zeros({3 * m, n}, dtype);
  dispatch(ctx, dtype, [&]<class D, class T>() {
    gemm<D, T, T>(ctx, a.mat<const T>().slice(0, m), b.mat<const T>().slice(0, k), c.mat<T>().slice(0, m),
                  {.batch = 3, .stride_a = m * k, .stride_b = k * n, .stride_c = m * n});
  });
  result.real.push_back(ctx.download_real(c));
  return result;
}

KernelResult gather(const Context& ctx, DType dtype) {
  Data d{ctx, dtype, Rng(30)};
  const Tensor x = d.normal({5, 11}), y = ctx.zeros({6, 11}, dtype);
  const Tensor index = ctx.upload(std::vector<int32_t>{4, -1, 0, 0, 2, -1});
  dispatch(ctx, dtype, [&]<class D, class T>() {
    gather_rows<D, T>(ctx, x.mat<const T>(), index.data<const int32_t>(), y.mat<T>());
  });
  return {{ctx.download_real(y)}, {}};
}

}  // namespace

std::vector<double> rounded_normals(Rng& rng, int64_t n, double deviation) {
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = static_cast<float>(bf16(static_cast<float>(deviation * rng.normal())));
  return values;
}

const std::vector<KernelRun>& kernel_runs() {
  auto with = [](auto f, auto argument) {
    return [f, argument](const Context& ctx, DType dtype) { return f(ctx, dtype, argument); };
  };
  static const std::vector<KernelRun> runs{{"adam", adam},
                                           {"sums_of_one", with(sums, int64_t{1})},
                                           {"sums_of_many", with(sums, int64_t{100003})},
                                           {"decode_heads", with(decode, Decode{4, 4, 8, 8, false})},
                                           {"decode_grouped", with(decode, Decode{6, 2, 5, 3, false})},
                                           {"decode_latent", with(decode, Decode{4, 1, 96, 64, true})},
                                           {"tail_append", append},
                                           {"mtla_append_1", with(chunks, 1)},
                                           {"mtla_append_2", with(chunks, 2)},
                                           {"mtla_append_3", with(chunks, 3)},
                                           {"tail_reorder", reorder},
                                           {"topk", with(topk, TopK{5, 300, 8, 1, 2, true, false})},
                                           {"topk_large", with(topk, TopK{3, 8003, 10, -1, 2, false, false, 1.5})},
                                           {"topk_only_eos", with(topk, TopK{4, 20, 3, 1, 2, true, true})},
                                           {"topk_few_tokens", with(topk, TopK{3, 3, 5, 0, 1, false, false})},
                                           {"cast", casts},
                                           {"gemm", products},
                                           {"gather", gather}};
  return runs;
}

}  // namespace tactus::testing_ops
