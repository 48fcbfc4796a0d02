// An extension for torch.utils.cpp_extension.load: see test_extensions_compiled.py.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

__constant__ float offset[1];

__global__ void scale(float* x, float by, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) x[i] = x[i] * by + offset[0];
}

at::Tensor scale_(at::Tensor x, double by, int64_t past_the_end) {
  const c10::cuda::CUDAGuard guard(x.device());
  int64_t n = x.numel() + past_the_end;
  scale<<<(n + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), by, n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}

void set_offset(double value) {
  float number = value;
  C10_CUDA_CHECK(cudaMemcpyToSymbol(offset, &number, sizeof number));
}

// The sum of each row, in shared memory of 256 threads.
template <typename scalar_t>
__global__ void row_sums(const scalar_t* x, scalar_t* sums, int columns) {
  __shared__ scalar_t parts[256];
  scalar_t sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += x[blockIdx.x * columns + i];
  parts[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

at::Tensor sums(const at::Tensor& x) {
  auto result = at::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sums", [&] {
    row_sums<scalar_t><<<x.size(0), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), result.data_ptr<scalar_t>(), x.size(1));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

void launch_too_many_threads(at::Tensor x) {
  scale<<<1, 5000, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), 1, 1);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// scale_ on a stream of torch's pool, between two events.
at::Tensor scale_beside_(at::Tensor x, double by) {
  at::cuda::CUDAEvent before, after;
  before.record();
  {
    c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(false, x.get_device()));
    before.block(guard.current_stream());
    scale_(x, by, 0);
    after.record(guard.current_stream());
  }
  after.block(at::cuda::getCurrentCUDAStream());
  return x;
}

int64_t new_stream() {
  cudaStream_t stream;
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return reinterpret_cast<int64_t>(stream);
}

std::tuple<int, int64_t, int> facts() {
  int device = -1;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  auto* properties = at::cuda::getCurrentDeviceProperties();
  return {device, reinterpret_cast<int64_t>(at::cuda::getCurrentCUDAStream().stream()), properties->major};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale_", &scale_);
  m.def("set_offset", &set_offset);
  m.def("sums", &sums);
  m.def("launch_too_many_threads", &launch_too_many_threads);
  m.def("scale_beside_", &scale_beside_);
  m.def("new_stream", &new_stream);
  m.def("facts", &facts);
}
