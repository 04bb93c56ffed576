#include <H5public.h>

#include "core/context.h"
#include "train/cli/build_info.h"
#include "train/cli/commands.h"

#if defined(TACTUS_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace tactus {

std::string version_text() {
  std::string text = std::string("tactus ") + build_info::kVersion + " (" + build_info::kCommit + ")\n";
  text += std::string("built by ") + build_info::kCompiler + ", " + build_info::kBuildType;
#if defined(TACTUS_WITH_CUDA)
  text += std::string(", CUDA ") + std::to_string(CUDART_VERSION / 1000) + "." +
          std::to_string(CUDART_VERSION % 1000 / 10) + " for " + build_info::kCudaArchitectures;
#else
  text += ", without CUDA";
#endif
#if defined(TACTUS_WITH_AUDIO)
  text += ", with audio\n";
#else
  text += ", without audio\n";
#endif
  text += "licence Apache-2.0; libraries: Eigen (MPL-2.0), HDF5 " + std::to_string(H5_VERS_MAJOR) + "." +
          std::to_string(H5_VERS_MINOR) + "." + std::to_string(H5_VERS_RELEASE) +
          " (BSD-3), yaml-cpp (MIT), CLI11 " CLI11_VERSION " (BSD-3), SentencePiece (Apache-2.0), zlib (Zlib)";
#if defined(TACTUS_WITH_PNG)
  text += ", libpng (libpng-2.0)";
#endif
#if defined(TACTUS_WITH_AUDIO)
  text += ", libsndfile (LGPL-2.1+), libsamplerate (BSD-2), kissfft (BSD-3)";
#endif
#if defined(TACTUS_WITH_CUDA)
  text += ", CUDA runtime and cuBLASLt (NVIDIA)";
#endif
  return text;
}

}  // namespace tactus
