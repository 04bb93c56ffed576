#include "core/transfer.h"

#include <cstring>
#include <optional>

#if defined(TACTUS_WITH_CUDA)
#include "core/cuda.h"
#endif

namespace tactus {

#if defined(TACTUS_WITH_CUDA)
namespace {

struct Event {
  cudaEvent_t handle = nullptr;
  Event() { cuda_check(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming), "event"); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
};

}  // namespace

struct InputStream::Impl {
  struct Slot {
    Tensor device;  // bytes
    HostBuffer host;
    Event copied, consumed;
  };
  cudaStream_t stream = nullptr;
  std::array<Slot, 2> slots;
  int newest = 0;
  Impl() { cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "copy stream"); }
  ~Impl() {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
};

struct Readback::Impl {
  std::shared_ptr<HostPool> pool;
  HostBuffer host;
  std::optional<Event> arrived;  // on CUDA
};
#else
struct InputStream::Impl {};
struct Readback::Impl {
  HostBuffer host;
};
#endif

InputStream::InputStream(const Context& ctx) : ctx_(ctx) {
  if (ctx.device() == Device::cuda) impl_ = std::make_unique<Impl>();
}
InputStream::~InputStream() = default;

Tensor InputStream::upload(HostBuffer host, Shape shape, DType dtype) {
  const int64_t bytes = shape.elements() * size_of(dtype);
  if (host.bytes() < bytes) throw ShapeError("upload: host memory is smaller than " + shape.to_string());
#if defined(TACTUS_WITH_CUDA)
  if (impl_) {
    impl_->newest = 1 - impl_->newest;
    Impl::Slot& slot = impl_->slots[static_cast<size_t>(impl_->newest)];
    const cudaStream_t compute = stream_of(ctx_);
    if (!slot.device.defined() || slot.device.bytes() < bytes) {
      // The pool hands memory out in the order of the compute stream: what used it before must be over.
      slot.device = {};
      slot.device = ctx_.empty({bytes + bytes / 8}, DType::u8);
      cuda_check(cudaEventRecord(slot.consumed.handle, compute), "copy stream");
    }
    cuda_check(cudaStreamWaitEvent(impl_->stream, slot.consumed.handle, 0), "copy stream");
    if (slot.host.bytes() > 0) cuda_check(cudaEventSynchronize(slot.copied.handle), "copy stream");
    slot.host = std::move(host);
    if (bytes > 0) {
      cuda_check(cudaMemcpyAsync(slot.device.raw(), slot.host.as<char>(), static_cast<size_t>(bytes),
                                 cudaMemcpyHostToDevice, impl_->stream),
                 "copy to device");
    }
    cuda_check(cudaEventRecord(slot.copied.handle, impl_->stream), "copy stream");
    cuda_check(cudaStreamWaitEvent(compute, slot.copied.handle, 0), "copy stream");
    return slot.device.reinterpret(dtype, shape);
  }
#endif
  const Tensor t = ctx_.empty(shape, dtype);
  if (bytes > 0) std::memcpy(t.raw(), host.as<char>(), static_cast<size_t>(bytes));
  return t;
}

void InputStream::consumed() {
#if defined(TACTUS_WITH_CUDA)
  if (impl_) {
    cuda_check(cudaEventRecord(impl_->slots[static_cast<size_t>(impl_->newest)].consumed.handle, stream_of(ctx_)),
               "copy stream");
  }
#endif
}

Readback::Readback(const Context& ctx, int64_t doubles) : ctx_(ctx), impl_(std::make_unique<Impl>()) {
  const int64_t bytes = doubles * static_cast<int64_t>(sizeof(double));
#if defined(TACTUS_WITH_CUDA)
  impl_->pool = HostPool::make(ctx);
  impl_->host = impl_->pool->acquire(bytes);
  if (ctx.device() == Device::cuda) impl_->arrived.emplace();
#else
  impl_->host = HostBuffer(bytes);
#endif
}
Readback::~Readback() {
#if defined(TACTUS_WITH_CUDA)
  if (started_ && impl_->arrived) cudaEventSynchronize(impl_->arrived->handle);
#endif
}

void Readback::start(const Tensor& values) {
  if (values.dtype() != DType::f64 || values.bytes() > impl_->host.bytes())
    throw ShapeError("readback: " + values.shape().to_string() + " numbers of " + to_string(values.dtype()));
  started_ = true;
#if defined(TACTUS_WITH_CUDA)
  if (impl_->arrived) {
    cuda_check(cudaMemcpyAsync(impl_->host.as<char>(), values.raw(), static_cast<size_t>(values.bytes()),
                               cudaMemcpyDeviceToHost, stream_of(ctx_)),
               "copy to host");
    cuda_check(cudaEventRecord(impl_->arrived->handle, stream_of(ctx_)), "readback");
    return;
  }
#endif
  std::memcpy(impl_->host.as<char>(), values.raw(), static_cast<size_t>(values.bytes()));
}

const double* Readback::wait() {
#if defined(TACTUS_WITH_CUDA)
  if (impl_->arrived) cuda_check(cudaEventSynchronize(impl_->arrived->handle), "readback");
#endif
  started_ = false;
  return impl_->host.as<double>();
}

}  // namespace tactus
