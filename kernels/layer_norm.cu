// CUDA layer normalisation. A team of threads (a warp, or a block for wide rows) keeps its row in registers, so that
// mean and variance are taken in two passes over exact differences while memory is read once.
#include "kernels/layer_norm.h"
#include "kernels/shared/check.h"
#include "kernels/shared/device_reduce.cuh"

namespace tactus {
namespace {

using namespace device;

/// `lanes` threads hold `groups` groups of eight columns each; teams of one warp share a block of eight rows.
template <int lanes, int groups>
struct Team {
  static constexpr int kLanes = lanes, kGroups = groups;
  static constexpr int kTeams = lanes == kWarp ? 8 : 1;
  static constexpr int kThreads = kLanes * kTeams;
  static constexpr int kColumns = kLanes * kGroups * kGroup;
  static __device__ float sum(float v, float* scratch) {
    if constexpr (kLanes == kWarp) {
      return warp_sum(v);
    } else {
      return block_sum(v, scratch);
    }
  }
  static __device__ int64_t column(int g) { return (static_cast<int64_t>(g) * kLanes + threadIdx.x) * kGroup; }
};

__device__ inline int group_size(int64_t c, int64_t cols) {
  return static_cast<int>(c >= cols ? 0 : cols - c < kGroup ? cols - c : kGroup);
}

template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    forward_kernel(Mat<const T> x, const T* gamma, const T* beta, float eps, Mat<T> y, float* mean, float* rstd,
                   bool wide) {
  __shared__ float scratch[kWarp];
  const int64_t r = static_cast<int64_t>(blockIdx.x) * Team::kTeams + threadIdx.y;
  if (r >= x.rows) return;  // whole teams leave together
  const float width = static_cast<float>(x.cols);
  float v[Team::kGroups][kGroup], sum = 0;
#pragma unroll
  for (int g = 0; g < Team::kGroups; ++g) {
    const int64_t c = Team::column(g);
    load_group(x.row(r) + c, group_size(c, x.cols), wide, v[g]);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum += v[g][i];
  }
  const float m = Team::sum(sum, scratch) / width;
  float squares = 0;
#pragma unroll
  for (int g = 0; g < Team::kGroups; ++g) {
    const int n = group_size(Team::column(g), x.cols);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      v[g][i] -= m;
      squares += i < n ? v[g][i] * v[g][i] : 0.0f;
    }
  }
  const float s = 1.0f / sqrtf(Team::sum(squares, scratch) / width + eps);
#pragma unroll
  for (int g = 0; g < Team::kGroups; ++g) {
    const int64_t c = Team::column(g);
    const int n = group_size(c, x.cols);
    float scale[kGroup], shift[kGroup];
    load_group(gamma + c, n, wide, scale);
    load_group(beta + c, n, wide, shift);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[g][i] = v[g][i] * s * scale[i] + shift[i];
    store_group(y.row(r) + c, n, wide, v[g]);
  }
  if (threadIdx.x == 0) mean[r] = m, rstd[r] = s;
}

/// dx, and for each block the partial sums (dgamma | dbeta) of its rows: partial [gridDim.x, 2 cols].
/// dx = rstd (g dy - mean(g dy) - xhat mean(g dy xhat)) with xhat = (x - mean) rstd.
template <class T, class Team>
__global__ void __launch_bounds__(Team::kThreads)
    backward_kernel(Mat<const T> dy, Mat<const T> x, const T* gamma, const float* mean, const float* rstd, Mat<T> dx,
                    float* partial, bool wide) {
  constexpr int kShared = Team::kTeams > 1 ? Team::kColumns : 1;
  __shared__ float scratch[kWarp], combined[2][kShared];
  const float width = static_cast<float>(x.cols);
  float dgamma[Team::kGroups][kGroup] = {}, dbeta[Team::kGroups][kGroup] = {};
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * Team::kTeams + threadIdx.y; r < x.rows;
       r += static_cast<int64_t>(gridDim.x) * Team::kTeams) {
    const float m = mean[r], s = rstd[r];
    float grad[Team::kGroups][kGroup], xhat[Team::kGroups][kGroup], sum = 0, dot = 0;
#pragma unroll
    for (int g = 0; g < Team::kGroups; ++g) {
      const int64_t c = Team::column(g);
      const int n = group_size(c, x.cols);
      float scale[kGroup];
      load_group(dy.row(r) + c, n, wide, grad[g]);
      load_group(x.row(r) + c, n, wide, xhat[g]);
      load_group(gamma + c, n, wide, scale);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        xhat[g][i] = (xhat[g][i] - m) * s;
        dgamma[g][i] += grad[g][i] * xhat[g][i];
        dbeta[g][i] += grad[g][i];
        grad[g][i] *= scale[i];
        sum += grad[g][i];
        dot += grad[g][i] * xhat[g][i];
      }
    }
    sum = Team::sum(sum, scratch) / width;
    dot = Team::sum(dot, scratch) / width;
#pragma unroll
    for (int g = 0; g < Team::kGroups; ++g) {
      const int64_t c = Team::column(g);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) grad[g][i] = s * (grad[g][i] - sum - xhat[g][i] * dot);
      store_group(dx.row(r) + c, group_size(c, x.cols), wide, grad[g]);
    }
  }
  float* out = partial + static_cast<int64_t>(blockIdx.x) * 2 * x.cols;
  // The warps of a block add up one after the other, so the order is fixed.
  for (int team = 0; team < Team::kTeams; ++team) {
    if (static_cast<int>(threadIdx.y) == team) {
#pragma unroll
      for (int g = 0; g < Team::kGroups; ++g) {
        const int64_t c = Team::column(g);
        const int n = group_size(c, x.cols);
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          if (i >= n) continue;
          if constexpr (Team::kTeams > 1) {
            if (team > 0) dgamma[g][i] += combined[0][c + i], dbeta[g][i] += combined[1][c + i];
            combined[0][c + i] = dgamma[g][i], combined[1][c + i] = dbeta[g][i];
          }
          if (team == Team::kTeams - 1) out[c + i] = dgamma[g][i], out[x.cols + c + i] = dbeta[g][i];
        }
      }
    }
    __syncthreads();
  }
}

/// Calls f with the smallest team that holds a row.
template <class F>
void with_team(const char* op, int64_t cols, F&& f) {
  if (cols <= Team<32, 1>::kColumns) {
    f(Team<32, 1>());
  } else if (cols <= Team<32, 2>::kColumns) {
    f(Team<32, 2>());
  } else if (cols <= Team<32, 4>::kColumns) {
    f(Team<32, 4>());
  } else if (cols <= Team<256, 4>::kColumns) {
    f(Team<256, 4>());
  } else {
    shape_error(op, "x.cols", "at most 8192", std::to_string(cols));
  }
}

}  // namespace

template <class D, class T>
void layer_norm_forward(const Context& ctx, Mat<const T> x, const T* gamma, const T* beta, double eps, Mat<T> y,
                        acc_t<T>* mean, acc_t<T>* rstd) {
  check_shape("layer_norm_forward", "x", x, y.rows, y.cols);
  check_shape("layer_norm_forward", "y", y, y.rows, y.cols);
  if (x.rows == 0 || x.cols == 0) return;
  const bool wide = wide_rows(x) && wide_rows(y) && wide_pointer(gamma) && wide_pointer(beta);
  with_team("layer_norm_forward", x.cols, [&](auto team) {
    using Team = decltype(team);
    const dim3 block(Team::kLanes, Team::kTeams);
    forward_kernel<T, Team><<<row_grid(ceil_div(x.rows, Team::kTeams)), block, 0, stream_of(ctx)>>>(
        x, gamma, beta, static_cast<float>(eps), y, mean, rstd, wide);
    cuda_check_launch("layer_norm_forward");
  });
}

template <class D, class T>
void layer_norm_backward(const Context& ctx, Mat<const T> dy, Mat<const T> x, const T* gamma, const acc_t<T>* mean,
                         const acc_t<T>* rstd, Mat<T> dx, acc_t<T>* dgamma, acc_t<T>* dbeta) {
  check_shape("layer_norm_backward", "dy", dy, x.rows, x.cols);
  check_shape("layer_norm_backward", "dx", dx, x.rows, x.cols);
  check_shape("layer_norm_backward", "x", x, x.rows, x.cols);
  if (x.rows == 0 || x.cols == 0) return;
  const bool wide = wide_rows(x) && wide_rows(dy) && wide_rows(dx) && wide_pointer(gamma);
  with_team("layer_norm_backward", x.cols, [&](auto team) {
    using Team = decltype(team);
    const dim3 block(Team::kLanes, Team::kTeams);
    // A number of blocks that depends on the shape alone, about two for each multiprocessor of a large device.
    const int64_t blocks = std::min<int64_t>(ceil_div(x.rows, Team::kTeams), 256);
    const Tensor partial = ctx.empty(Shape{blocks, 2 * x.cols}, DType::f32, MemoryTag::workspace);
    backward_kernel<T, Team><<<static_cast<unsigned>(blocks), block, 0, stream_of(ctx)>>>(dy, x, gamma, mean, rstd, dx,
                                                                                          partial.data<float>(), wide);
    cuda_check_launch("layer_norm_backward");
    finish_columns(ctx, partial.data<float>(), blocks, 2 * x.cols, x.cols, dgamma, dbeta, true);
  });
}

#define TACTUS_INSTANTIATE(T)                                                                                         \
  template void layer_norm_forward<Cuda, T>(const Context&, Mat<const T>, const T*, const T*, double, Mat<T>, float*, \
                                            float*);                                                                  \
  template void layer_norm_backward<Cuda, T>(const Context&, Mat<const T>, Mat<const T>, const T*, const float*,      \
                                             const float*, Mat<T>, float*, float*);
TACTUS_INSTANTIATE(float)
TACTUS_INSTANTIATE(bf16)
#undef TACTUS_INSTANTIATE

}  // namespace tactus
