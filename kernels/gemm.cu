// CUDA matrix products through cuBLASLt. Row-major C = op(A) op(B) is the column-major product C^T = op(B)^T op(A)^T,
// so the operands change places. Only the bias runs in cuBLASLt's epilogue: whether its ReLU keeps NaN is not
// documented, so ReLU is a pass of its own.
//
// Reproducible: a split over k may only be summed by a second pass over parts in the workspace, never in place in the
// order of arrival, and the algorithm is a function of the shape alone. Without splits the gradients of weights, whose
// few tiles have all rows of a batch as k, would leave most of the device idle.
// Extents that change from batch to batch (rows of activations) are rounded up before the search, so that a few shapes
// serve a whole training run.
#include <array>
#include <map>

#include "kernels/gemm.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_rows.cuh"

namespace tactus {
namespace {

using namespace device;

constexpr size_t kMaxPlans = 8192;

template <class T>
constexpr cudaDataType_t cuda_type() {
  return std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;
}

/// Everything that the choice of an algorithm may depend on.
struct Problem {
  bool transpose_a, transpose_b, bias, accumulate;
  cudaDataType_t type_in, type_out;
  int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
  uint32_t align_a, align_b, align_c;  // bytes; that of C holds for the bias too
  auto key() const {
    return std::array<int64_t, 19>{transpose_a, transpose_b, bias,    accumulate, type_in, type_out, m,
                                   n,           k,           lda,     ldb,        ldc,     batch,    stride_a,
                                   stride_b,    stride_c,    align_a, align_b,    align_c};
  }
};

struct Plan {
  bool found = false;
  cublasLtMatmulAlgo_t algorithm;
};
using Plans = std::map<std::array<int64_t, 19>, Plan>;

/// Rounds up to four significant bits: at most an eighth above.
int64_t round_extent(int64_t x) {
  int64_t unit = 1;
  while (x > 16 * unit) unit *= 2;
  return ceil_div(x, unit) * unit;
}

/// The problem whose algorithm serves this one. Only extents across rows of every matrix may change: no leading
/// dimension or alignment depends on them.
Problem rounded(Problem p) {
  if (p.batch > 1) return p;
  if (!p.transpose_a) {
    p.m = round_extent(p.m);
  } else if (!p.transpose_b) {
    p.k = round_extent(p.k);
  }
  return p;
}

/// Largest power of two, up to 256, that divides an address (and the distance to the next matrix of a batch).
uint32_t alignment(const void* p, int64_t stride_bytes) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(p) | static_cast<uint64_t>(stride_bytes) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

/// cuBLASLt's descriptors of one problem, on the stack. `first` is B and `second` is A.
struct Descriptors {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t first, second, result;

  Descriptors(const Problem& p, const void* bias) {
    cublas_check(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (p.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.type_in);
    }
    init(first, p.type_in, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.ldb, p.batch, p.stride_b);
    init(second, p.type_in, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.lda, p.batch, p.stride_a);
    init(result, p.type_out, p.n, p.m, p.ldc, p.batch, p.stride_c);
  }

 private:
  template <class V>
  void set(cublasLtMatmulDescAttributes_t attribute, V value) {
    cublas_check(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof value), "matmul attribute");
  }
  static void init(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld,
                   int64_t batch, int64_t stride) {
    cublas_check(cublasLtMatrixLayoutInit(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), ld),
                 "cublasLtMatrixLayoutInit");
    if (batch == 1) return;
    const int32_t count = static_cast<int32_t>(batch);
    cublas_check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                 "batch count");
    cublas_check(
        cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
        "batch stride");
  }
};

Plan search(const CudaHandles& handles, const Problem& p, const void* bias) {
  Descriptors d(p, bias);
  cublasLtMatmulPreferenceOpaque_t preference;
  cublas_check(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    cublas_check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
                 "matmul preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(handles.blas_workspace.bytes()));
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.align_b);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.align_a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.align_c);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.align_c);
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handles.blas, &d.operation, &d.first, &d.second,
                                                               &d.result, &d.result, &preference, 1, &result, &count);
  Plan plan;
  plan.found = status == CUBLAS_STATUS_SUCCESS && count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = result.algo;
  return plan;
}

const Plan& plan_for(const CudaHandles& handles, const Problem& p, const void* bias) {
  if (!handles.gemm_cache) handles.gemm_cache = std::make_shared<Plans>();
  Plans& plans = *static_cast<Plans*>(handles.gemm_cache.get());
  const auto key = p.key();
  auto at = plans.find(key);
  if (at != plans.end()) return at->second;
  // A plan is found again just as it was, so forgetting them changes no result.
  if (plans.size() >= kMaxPlans) plans.clear();
  return plans.emplace(key, search(handles, p, bias)).first->second;
}

/// False when cuBLASLt has no algorithm for this problem.
bool run_cublas(const CudaHandles& handles, const Problem& p, float alpha, const void* a, const void* b, float beta,
                void* c, const void* bias) {
  const Problem near = rounded(p);
  const bool exact_only = near.key() == p.key();
  Descriptors d(p, bias);
  for (const Problem* candidate : {&near, &p}) {
    if (candidate == &p && exact_only) break;
    const Plan& plan = plan_for(handles, *candidate, bias);
    if (!plan.found) continue;
    const cublasStatus_t status =
        cublasLtMatmul(handles.blas, &d.operation, &alpha, b, &d.first, a, &d.second, &beta, c, &d.result, c, &d.result,
                       &plan.algorithm, handles.blas_workspace.raw(),
                       static_cast<size_t>(handles.blas_workspace.bytes()), handles.stream);
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) cublas_check(status, "gemm");
  }
  return false;
}

template <class T, class U>
struct Tiled {
  const T *a, *b;
  U* c;
  const T* bias;
  int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c;
  float alpha, beta;
  bool transpose_a, transpose_b, relu;
};

constexpr int kTile = 16;

/// The product for shapes that cuBLASLt declines, and for k = 0: one thread per entry of C, tiles in shared memory.
/// Bias and ReLU included.
template <class T, class U>
__global__ void __launch_bounds__(kTile* kTile) tiled_kernel(Tiled<T, U> g) {
  __shared__ float left[kTile][kTile + 1], right[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y;
  const int64_t col = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.x;
  const T *a = g.a + blockIdx.z * g.stride_a, *b = g.b + blockIdx.z * g.stride_b;
  float sum = 0;
  for (int64_t base = 0; base < g.k; base += kTile) {
    const int64_t ka = base + threadIdx.x, kb = base + threadIdx.y;
    left[threadIdx.y][threadIdx.x] =
        row < g.m && ka < g.k ? to_float(g.transpose_a ? a[ka * g.lda + row] : a[row * g.lda + ka]) : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        col < g.n && kb < g.k ? to_float(g.transpose_b ? b[col * g.ldb + kb] : b[kb * g.ldb + col]) : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row >= g.m || col >= g.n) return;
  U* out = g.c + blockIdx.z * g.stride_c + row * g.ldc + col;
  float value = g.k > 0 ? g.alpha * sum : 0.0f;
  if (g.beta != 0.0f) value += g.beta * to_float(*out);
  if (g.bias) value += to_float(g.bias[col]);
  *out = from_float<U>(g.relu ? relu(value) : value);
}

template <class T, class U>
void run_tiled(const Context& ctx, Tiled<T, U> g, int64_t batch) {
  constexpr int64_t kMaxBatch = 65535;
  for (int64_t begin = 0; begin < batch; begin += kMaxBatch) {
    const dim3 grid(row_grid(ceil_div(g.m, kTile)), static_cast<unsigned>(ceil_div(g.n, kTile)),
                    static_cast<unsigned>(std::min(kMaxBatch, batch - begin)));
    tiled_kernel<T, U><<<grid, dim3(kTile, kTile), 0, stream_of(ctx)>>>(g);
    cuda_check_launch("gemm");
    g.a += kMaxBatch * g.stride_a, g.b += kMaxBatch * g.stride_b, g.c += kMaxBatch * g.stride_c;
  }
}

template <class T, class U>
struct BiasRelu {
  Mat<U> c;
  const T* bias;
  int64_t rows, stride;  // of one product of the batch
  bool relu_on, wide, wide_bias;
  __device__ void operator()(int64_t r, int64_t col, int n) const {
    const int64_t product = r / rows;
    U* out = c.ptr + product * stride + (r - product * rows) * c.ld + col;
    float v[kGroup];
    load_group(static_cast<const U*>(out), n, wide, v);
    if (bias) {
      float add[kGroup];
      load_group(bias + col, n, wide_bias, add);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) v[i] += add[i];
    }
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] = relu_on ? relu(v[i]) : v[i];
    store_group(out, n, wide, v);
  }
};

}  // namespace

template <class D, class T, class U>
void gemm(const Context& ctx, Mat<const T> a, Mat<const T> b, Mat<U> c, const GemmOptions<T>& options) {
  const int64_t m = c.rows, n = c.cols, k = options.transpose_a ? a.rows : a.cols, batch = options.batch;
  check_shape("gemm", "a", a, options.transpose_a ? k : m, options.transpose_a ? m : k);
  check_shape("gemm", "b", b, options.transpose_b ? n : k, options.transpose_b ? k : n);
  check_shape("gemm", "c", c, m, n);
  check_value(batch >= 0 && batch <= 0x7fffffff, "gemm", "batch", "not negative", batch);
  if (m == 0 || n == 0 || batch == 0) return;
  const float alpha = static_cast<float>(options.alpha), beta = static_cast<float>(options.beta);
  // A matrix of one row may come with any leading dimension; cuBLASLt wants one that covers the row.
  const int64_t lda = std::max(a.ld, a.cols), ldb = std::max(b.ld, b.cols), ldc = std::max(c.ld, c.cols);
  const int64_t distance = batch > 1 ? 1 : 0, size_in = sizeof(T), size_out = sizeof(U);
  // cuBLASLt takes a bias of C's type alone.
  const bool bias_inside = options.bias && std::is_same_v<T, U>;
  const uint32_t align_c = alignment(c.ptr, distance * options.stride_c * size_out);
  const Problem problem{options.transpose_a,
                        options.transpose_b,
                        bias_inside,
                        beta != 0.0f,
                        cuda_type<T>(),
                        cuda_type<U>(),
                        m,
                        n,
                        k,
                        lda,
                        ldb,
                        ldc,
                        batch,
                        distance * options.stride_a,
                        distance * options.stride_b,
                        distance * options.stride_c,
                        alignment(a.ptr, distance * options.stride_a * size_in),
                        alignment(b.ptr, distance * options.stride_b * size_in),
                        bias_inside ? std::min(align_c, alignment(options.bias, 0)) : align_c};
  const bool done = k > 0 && run_cublas(*ctx.cuda_handles(), problem, alpha, a.ptr, b.ptr, beta, c.ptr,
                                        bias_inside ? options.bias : nullptr);
  if (!done) {
    run_tiled(ctx,
              Tiled<T, U>{a.ptr, b.ptr, c.ptr, options.bias, m, n, k, lda, ldb, ldc, options.stride_a, options.stride_b,
                          options.stride_c, alpha, beta, options.transpose_a, options.transpose_b, options.relu},
              batch);
    return;
  }
  const T* late_bias = bias_inside ? nullptr : options.bias;
  if (!late_bias && !options.relu) return;
  const bool wide = wide_rows(c) && distance * options.stride_c * size_out % 16 == 0;
  const BiasRelu<T, U> f{c, late_bias, m, options.stride_c, options.relu, wide, wide_pointer(late_bias)};
  for_each_group(ctx, m * batch, n, f, "gemm");
}

template void gemm<Cuda, float, float>(const Context&, Mat<const float>, Mat<const float>, Mat<float>,
                                       const GemmOptions<float>&);
template void gemm<Cuda, bf16, bf16>(const Context&, Mat<const bf16>, Mat<const bf16>, Mat<bf16>,
                                     const GemmOptions<bf16>&);
template void gemm<Cuda, bf16, float>(const Context&, Mat<const bf16>, Mat<const bf16>, Mat<float>,
                                      const GemmOptions<bf16>&);

}  // namespace tactus
