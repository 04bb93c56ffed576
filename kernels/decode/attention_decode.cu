// CUDA attention of a decoding step: a block serves one hypothesis and up to eight query heads that read the same keys,
// so that each slot is read once for all of them. Running softmax over tiles of slots, shared ones first, in f32.
#include "kernels/decode/attention_decode.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"
#include "kernels/shared/device_softmax.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr int kTile = 64;         // slots between two updates of the running maximum; two for each lane of a warp
constexpr int kValueColumns = 2;  // most value columns of a thread

template <class T>
struct Args {
  DecodeCache<T> cache;
  Mat<const T> q;
  Mat<T> out;
  int heads, kv_heads, d_key, d_value;
  float scale;
  int head_groups;  ///< blocks that share a kv head
  int key_lanes;    ///< lanes of a warp that share one slot's key, a power of two
  int value_lanes;  ///< threads across the value columns, a power of two; the others of a block take other slots
  bool wide;        ///< keys may be read in 16-byte groups
};

/// Slot s of a hypothesis: shared ones, then the tail.
template <class T>
struct Slots {
  const T *shared, *tail;
  int64_t shared_ld, tail_ld;
  int shared_count;
  __device__ const T* row(int s) const {
    return s < shared_count ? shared + s * shared_ld : tail + (s - shared_count) * tail_ld;
  }
};

template <class T>
__device__ Slots<T> slots_of(const Mat<const T>& shared, const Mat<const T>& tail, int64_t first_shared,
                             int shared_count, int64_t first_tail, int64_t column) {
  Slots<T> slots;
  slots.shared = shared.ptr + first_shared * shared.ld + column, slots.shared_ld = shared.ld;
  slots.tail = tail.ptr + first_tail * tail.ld + column, slots.tail_ld = tail.ld;
  slots.shared_count = shared_count;
  return slots;
}

/// Shared memory of a block, in floats.
template <int kHeads>
struct Layout {
  int padded_key, value_lanes, threads;
  __host__ __device__ int weights() const { return kHeads * padded_key; }
  __host__ __device__ int state() const { return weights() + kHeads * kTile; }  // maximum, sum, rescaling of each head
  __host__ __device__ int partial() const { return state() + 3 * kHeads; }
  __host__ __device__ int size() const { return partial() + (threads > value_lanes ? threads * kHeads : 0); }
};

/// weights[h, s] = scale <q_h, k_s> for a tile of slots. Sub-warps of key_lanes take one slot each.
template <int kHeads, class T>
__device__ void tile_scores(const Args<T>& a, const Slots<T>& keys, int base, int tile, const float* queries,
                            int padded_key, float* weights) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp, per_warp = kWarp / a.key_lanes;
  for (int first = warp * per_warp; first < tile; first += warps * per_warp) {  // the same for all lanes of a warp
    const int s = first + lane / a.key_lanes;
    float score[kHeads] = {};
    if (s < tile) {
      const T* key = keys.row(base + s);
      for (int c = lane % a.key_lanes * kGroup; c < a.d_key; c += a.key_lanes * kGroup) {
        float k[kGroup];
        load_group(key + c, a.d_key - c < kGroup ? a.d_key - c : kGroup, a.wide, k);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
#pragma unroll
          for (int i = 0; i < kGroup; ++i) score[h] += queries[h * padded_key + c + i] * k[i];
        }
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      for (int offset = a.key_lanes / 2; offset > 0; offset /= 2) {
        score[h] += __shfl_xor_sync(kFullMask, score[h], offset);
      }
      if (s < tile && lane % a.key_lanes == 0) weights[h * kTile + s] = a.scale * score[h];
    }
  }
}

/// Scores of a tile become exp(score - maximum); maximum and sum move on, `rescale` is what earlier sums are to be
/// multiplied by.
template <int kHeads>
__device__ void tile_softmax(int tile, float* weights, float* maximum, float* sum, float* rescale) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int h = warp; h < kHeads; h += static_cast<int>(blockDim.x) / kWarp) {
    float* w = weights + h * kTile;
    const float a = lane < tile ? w[lane] : kNegInf, b = lane + kWarp < tile ? w[lane + kWarp] : kNegInf;
    const float old = maximum[h], top = fmaxf(old, warp_max(fmaxf(a, b)));
    const float base = top == kNegInf ? 0.0f : top;  // nothing but -inf so far: weights are 0, not NaN
    const float x = expf(a - base), y = expf(b - base), factor = expf(old - base);
    w[lane] = x, w[lane + kWarp] = y;
    const float tile_sum = warp_sum(x + y);
    __syncwarp();
    if (lane == 0) maximum[h] = top, sum[h] = sum[h] * factor + tile_sum, rescale[h] = factor;
  }
}

template <int kHeads, class T>
__global__ void __launch_bounds__(256) decode_kernel(Args<T> a, Layout<kHeads> layout) {
  extern __shared__ float shared[];
  float *queries = shared, *weights = shared + layout.weights(), *maximum = shared + layout.state();
  float *sum = maximum + kHeads, *rescale = sum + kHeads, *partial = shared + layout.partial();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int64_t work = static_cast<int64_t>(blockIdx.x) / a.head_groups, r = work / a.kv_heads;
  const int group = static_cast<int>(blockIdx.x % a.head_groups), kv = static_cast<int>(work % a.kv_heads);
  const int per_kv = a.heads / a.kv_heads, first_head = kv * per_kv + group * kHeads;
  const int heads = per_kv - group * kHeads < kHeads ? per_kv - group * kHeads : kHeads;

  for (int i = thread; i < kHeads * layout.padded_key; i += threads) {
    const int h = i / layout.padded_key, c = i - h * layout.padded_key;
    queries[i] = h < heads && c < a.d_key ? to_float(a.q(r, static_cast<int64_t>(first_head + h) * a.d_key + c)) : 0.0f;
  }
  if (thread < kHeads) maximum[thread] = kNegInf, sum[thread] = 0, rescale[thread] = 0;

  const DecodeCache<T>& cache = a.cache;
  int64_t first_shared = 0;
  int shared_count = 0;
  if (cache.shared_offsets) {
    const int32_t utterance = cache.row_utterance[r];
    first_shared = cache.shared_offsets[utterance];
    shared_count = static_cast<int>(cache.shared_offsets[utterance + 1] - first_shared);
  }
  const int slots = shared_count + cache.tail_length[r];
  const int64_t first_tail = r * cache.max_tail;
  const Slots<T> keys = slots_of(cache.shared_k, cache.tail_k, first_shared, shared_count, first_tail,
                                 static_cast<int64_t>(kv) * a.d_key);
  const Slots<T> values = slots_of(cache.shared_v, cache.tail_v, first_shared, shared_count, first_tail,
                                   static_cast<int64_t>(kv) * a.d_value);
  const int slot_lanes = threads / a.value_lanes, slot_lane = thread / a.value_lanes, column = thread % a.value_lanes;
  float acc[kHeads][kValueColumns] = {};
  __syncthreads();

  for (int base = 0; base < slots; base += kTile) {
    const int tile = slots - base < kTile ? slots - base : kTile;
    tile_scores<kHeads>(a, keys, base, tile, queries, layout.padded_key, weights);
    __syncthreads();
    tile_softmax<kHeads>(tile, weights, maximum, sum, rescale);
    __syncthreads();
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int j = 0; j < kValueColumns; ++j) acc[h][j] *= rescale[h];
    }
#pragma unroll 4
    for (int s = slot_lane; s < tile; s += slot_lanes) {
      const T* value = values.row(base + s);
#pragma unroll
      for (int j = 0; j < kValueColumns; ++j) {
        const int c = column + j * a.value_lanes;
        const float v = c < a.d_value ? to_float(value[c]) : 0.0f;
#pragma unroll
        for (int h = 0; h < kHeads; ++h) acc[h][j] += weights[h * kTile + s] * v;
      }
    }
    __syncthreads();  // the next tile overwrites weights and rescale
  }

  if (slot_lanes > 1) {  // then value_lanes cover all columns, and j = 0 alone is in use
#pragma unroll
    for (int h = 0; h < kHeads; ++h) partial[h * threads + thread] = acc[h][0];
    __syncthreads();
    if (slot_lane != 0) return;
    for (int lane = 1; lane < slot_lanes; ++lane) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) acc[h][0] += partial[h * threads + lane * a.value_lanes + column];
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const float inverse = slots > 0 ? 1.0f / sum[h] : 0.0f;
#pragma unroll
    for (int j = 0; j < kValueColumns; ++j) {
      const int c = column + j * a.value_lanes;
      if (h < heads && c < a.d_value) {
        a.out(r, static_cast<int64_t>(first_head + h) * a.d_value + c) = from_float<T>(acc[h][j] * inverse);
      }
    }
  }
}

constexpr int power_of_two_above(int n, int most) {
  int p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

template <int kHeads, class T>
void launch_decode(const Context& ctx, Args<T> a, int per_kv) {
  const int threads = a.d_value <= 128 ? 128 : 256;
  a.head_groups = static_cast<int>(ceil_div(per_kv, kHeads));
  a.key_lanes = power_of_two_above(static_cast<int>(ceil_div(a.d_key, kGroup)), kWarp);
  a.value_lanes = power_of_two_above(a.d_value, threads);
  const Layout<kHeads> layout{static_cast<int>(ceil_div(a.d_key, kGroup)) * kGroup, a.value_lanes, threads};
  const size_t bytes = static_cast<size_t>(layout.size()) * sizeof(float);
  if (bytes > 48 * 1024) shape_error("attention_decode", "d_key", "at most 1024", std::to_string(a.d_key));
  const unsigned blocks = row_grid(a.out.rows * a.kv_heads * a.head_groups);
  decode_kernel<kHeads, T><<<blocks, static_cast<unsigned>(threads), bytes, stream_of(ctx)>>>(a, layout);
  cuda_check_launch("attention_decode");
}

template <class T>
struct TailAppend {
  Mat<const T> x;
  const int32_t* tail_length;
  int64_t max_tail;
  Mat<T> tail;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    float v[kGroup];
    load_group(x.row(r) + c, n, wide, v);
    store_group(tail.row(r * max_tail + tail_length[r]) + c, n, wide, v);
  }
};

template <class T>
struct TailReorder {
  Mat<const T> x;
  const int32_t *parent, *tail_length;
  int64_t max_tail;
  Mat<T> y;
  bool wide;
  __device__ void operator()(int64_t r, int64_t c, int n) const {
    const int64_t hypothesis = r / max_tail, slot = r - hypothesis * max_tail, from = parent[hypothesis];
    if (slot >= tail_length[from]) return;
    float v[kGroup];
    load_group(x.row(from * max_tail + slot) + c, n, wide, v);
    store_group(y.row(r) + c, n, wide, v);
  }
};

constexpr int kAppendThreads = 128;

template <class T>
struct AppendArgs {
  int stride;
  Mat<const T> c, p, code, k_rope;
  const int32_t* positions;
  int32_t* tail_length;
  int64_t max_tail;
  Mat<float> live;
  Mat<T> tail;
};

template <class T>
__global__ void __launch_bounds__(kAppendThreads) mtla_append_kernel(AppendArgs<T> a) {
  __shared__ float scratch[kWarp];
  const int64_t r = blockIdx.x;
  const int position = a.positions[r], length = a.tail_length[r];
  const bool opens = position % a.stride == 0;
  const T *code = a.code.row(position / a.stride), *p = a.p.row(r), *latent = a.c.row(r);
  float dot = 0;
  for (int64_t c = threadIdx.x; c < a.code.cols; c += kAppendThreads) dot += to_float(code[c]) * to_float(p[c]);
  const float gate = sigmoid(block_sum(dot, scratch));
  T* slot = a.tail.row(r * a.max_tail + (opens ? length : length - 1));
  float* live = a.live.row(r);
  for (int64_t c = threadIdx.x; c < a.live.cols; c += kAppendThreads) {
    const float sum = gate * to_float(latent[c]) + (opens ? 0.0f : live[c]);
    live[c] = sum;
    slot[c] = from_float<T>(sum);
  }
  for (int64_t c = threadIdx.x; c < a.k_rope.cols; c += kAppendThreads) slot[a.live.cols + c] = a.k_rope(r, c);
  // Every thread read the length before the barriers of block_sum.
  if (opens && threadIdx.x == 0) a.tail_length[r] = length + 1;
}

__global__ void __launch_bounds__(256) add_to_all_kernel(int64_t n, int32_t delta, int32_t* x) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) x[i] += delta;
}

}  // namespace

template <class D, class T>
void attention_decode(const Context& ctx, const DecodeShape& shape, const DecodeCache<T>& cache, Mat<const T> q,
                      Mat<T> out) {
  const char* op = "attention_decode";
  check_value(shape.kv_heads >= 1 && shape.heads % shape.kv_heads == 0, op, "kv_heads", "a divisor of heads",
              shape.kv_heads);
  check_shape(op, "q", q, out.rows, int64_t{shape.heads} * shape.d_key);
  check_shape(op, "out", out, out.rows, int64_t{shape.heads} * shape.d_value);
  check_shape(op, "tail_k", cache.tail_k, out.rows * cache.max_tail, int64_t{shape.kv_heads} * shape.d_key);
  check_shape(op, "tail_v", cache.tail_v, out.rows * cache.max_tail, int64_t{shape.kv_heads} * shape.d_value);
  check_shape(op, "shared_k", cache.shared_k, cache.shared_k.rows, int64_t{shape.kv_heads} * shape.d_key);
  check_shape(op, "shared_v", cache.shared_v, cache.shared_k.rows, int64_t{shape.kv_heads} * shape.d_value);
  check_value(shape.d_value <= 512, op, "d_value", "at most 512", shape.d_value);
  if (out.rows == 0 || shape.heads == 0 || shape.d_value == 0) return;
  const bool wide = wide_rows(cache.shared_k) && wide_rows(cache.tail_k) &&
                    (shape.kv_heads == 1 || shape.d_key * static_cast<int64_t>(sizeof(T)) % 16 == 0);
  const Args<T> a{
      cache, q, out, shape.heads, shape.kv_heads, shape.d_key, shape.d_value, static_cast<float>(shape.scale),
      1,     1, 1,   wide};
  const int per_kv = shape.heads / shape.kv_heads;
  if (per_kv == 1) {
    launch_decode<1>(ctx, a, per_kv);
  } else if (per_kv == 2) {
    launch_decode<2>(ctx, a, per_kv);
  } else if (per_kv <= 4) {
    launch_decode<4>(ctx, a, per_kv);
  } else {
    launch_decode<8>(ctx, a, per_kv);
  }
}

template <class D, class T>
void tail_append(const Context& ctx, Mat<const T> x, const int32_t* tail_length, int64_t max_tail, Mat<T> tail) {
  check_shape("tail_append", "tail", tail, x.rows * max_tail, x.cols);
  check_shape("tail_append", "x", x, x.rows, x.cols);
  const TailAppend<T> f{x, tail_length, max_tail, tail, wide_rows(x) && wide_rows(tail)};
  for_each_group(ctx, x.rows, x.cols, f, "tail_append");
}

template <class D, class T>
void mtla_append(const Context& ctx, int stride, Mat<const T> c, Mat<const T> p, Mat<const T> code, Mat<const T> k_rope,
                 const int32_t* positions, int32_t* tail_length, int64_t max_tail, Mat<acc_t<T>> live, Mat<T> tail) {
  const char* op = "mtla_append";
  check_value(stride >= 1, op, "stride", "at least 1", stride);
  check_shape(op, "c", c, live.rows, live.cols);
  check_shape(op, "p", p, live.rows, code.cols);
  check_shape(op, "k_rope", k_rope, live.rows, k_rope.cols);
  check_shape(op, "tail", tail, live.rows * max_tail, live.cols + k_rope.cols);
  if (live.rows == 0) return;
  const AppendArgs<T> a{stride, c, p, code, k_rope, positions, tail_length, max_tail, live, tail};
  mtla_append_kernel<T><<<row_grid(live.rows), kAppendThreads, 0, stream_of(ctx)>>>(a);
  cuda_check_launch(op);
}

template <class D>
void add_to_all(const Context& ctx, int64_t n, int32_t delta, int32_t* x) {
  if (n <= 0) return;
  add_to_all_kernel<<<row_grid(ceil_div(n, 256)), 256, 0, stream_of(ctx)>>>(n, delta, x);
  cuda_check_launch("add_to_all");
}

template <class D, class T>
void tail_reorder(const Context& ctx, Mat<const T> x, const int32_t* parent, const int32_t* tail_length, int64_t rows,
                  int64_t max_tail, Mat<T> y) {
  check_shape("tail_reorder", "y", y, rows * max_tail, x.cols);
  check_shape("tail_reorder", "x", x, x.rows, x.cols);
  const TailReorder<T> f{x, parent, tail_length, max_tail, y, wide_rows(x) && wide_rows(y)};
  for_each_group(ctx, y.rows, y.cols, f, "tail_reorder");
}

template void add_to_all<Cuda>(const Context&, int64_t, int32_t, int32_t*);
#define TACTUS_INSTANTIATE(T)                                                                                         \
  template void attention_decode<Cuda, T>(const Context&, const DecodeShape&, const DecodeCache<T>&, Mat<const T>,    \
                                          Mat<T>);                                                                    \
  template void tail_append<Cuda, T>(const Context&, Mat<const T>, const int32_t*, int64_t, Mat<T>);                  \
  template void mtla_append<Cuda, T>(const Context&, int, Mat<const T>, Mat<const T>, Mat<const T>, Mat<const T>,     \
                                     const int32_t*, int32_t*, int64_t, Mat<float>, Mat<T>);                          \
  template void tail_reorder<Cuda, T>(const Context&, Mat<const T>, const int32_t*, const int32_t*, int64_t, int64_t, \
                                      Mat<T>);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
