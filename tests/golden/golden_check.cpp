// golden_check [--device cpu|cuda] [--dtype f64|f32|bf16] [--optional-device] FILE...
// Compares this implementation with reference numbers. Everything about a case is read from the attributes of its file.
// Prints a line for each file; exit code 1 when anything differs or a file cannot be read. With --optional-device a
// missing CUDA device is exit code 77, unless the environment sets TACTUS_REQUIRE_GPU.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "tests/golden/check.h"

namespace tactus::golden {
namespace {

using Check = std::function<void(const Setting&, const Node&, Report&)>;

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> table = {
      {"mha", check_attention},
      {"mqa", check_attention},
      {"gqa", check_attention},
      {"mla", check_attention},
      {"mtla", check_attention},
      {"model_st", check_model},
      {"model_asr", check_model},
      {"chunk_code", check_chunk_code},
      {"hyper_network", check_hyper_network},
      {"masks", check_masks},
      {"rope", check_rope},
      {"sinusoid", check_sinusoid},
      {"conv_subsampler", check_conv_subsampler},
      {"label_smoothed_ce", check_label_smoothed_ce},
      {"ctc", check_ctc},
      {"adam", check_adam},
      {"clip_norm", check_clip_norm},
      {"inverse_sqrt", check_inverse_sqrt},
      {"fbank", check_fbank},
      {"specaug", check_specaug},
  };
  return table;
}

/// Kinds that only hold others.
bool is_container(const std::string& kind) {
  return kind.empty() || kind == "models" || kind == "attention_modules" || kind == "hyper_masks_rope" ||
         kind == "misc" || kind == "chunk_code";
}

void walk(const Setting& setting, const Node& node, Report& report) {
  const std::string kind = node.text("kind");
  const auto found = checks().find(kind);
  if (found != checks().end()) {
    found->second(setting, node, report);
  } else if (!is_container(kind)) {
    report.skip(node.path(), "kind " + kind + " is not supported");
  }
  if (!is_container(kind)) return;
  for (const Node& child : node.groups()) walk(setting, child, report);
}

struct Arguments {
  std::string device = "cpu", dtype;
  bool optional_device = false;
  std::vector<std::string> files;
};

constexpr int kSkipped = 77;
constexpr const char* kUsage =
    "usage: golden_check [--device cpu|cuda] [--dtype f64|f32|bf16] [--optional-device] FILE...";

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--device" || word == "--dtype") {
      if (i + 1 == argc) throw ConfigError(word + ": a value is missing");
      (word == "--device" ? a.device : a.dtype) = argv[++i];
    } else if (word == "--optional-device") {
      a.optional_device = true;
    } else if (word.rfind("--", 0) == 0) {
      throw ConfigError(word + ": unknown option; " + kUsage);
    } else {
      a.files.push_back(word);
    }
  }
  if (a.files.empty()) throw ConfigError(std::string("no file; ") + kUsage);
  if (a.device != "cpu" && a.device != "cuda")
    throw ConfigError("--device: '" + a.device + "' is neither cpu nor cuda");
  if (a.dtype.empty()) a.dtype = a.device == "cuda" ? "f32" : "f64";
  return a;
}

bool check_file(const Setting& setting, const std::string& path) {
  Report report(setting.ctx.device(), setting.dtype);
  try {
    walk(setting, Node(h5::File::open(path), "/"), report);
  } catch (const Error& e) {
    report.fail(e.what());
  }
  report.print(std::filesystem::path(path).filename().string());
  return report.ok();
}

int run(int argc, char** argv) {
  const Arguments a = parse(argc, argv);
  if (a.device == "cuda" && a.optional_device && !Context::cuda_available() && !std::getenv("TACTUS_REQUIRE_GPU")) {
    std::printf("no CUDA device: skipped\n");
    return kSkipped;
  }
  const Setting setting{a.device == "cuda" ? Context::cuda() : Context::cpu(), float_type_from_string(a.dtype)};
  // Pairs without kernels are refused before any file is opened.
  dispatch(setting.ctx, setting.dtype, []<class D, class T>() {});
  bool ok = true;
  for (const std::string& file : a.files) ok = check_file(setting, file) && ok;
  std::printf("%s\n", ok ? "ALL OK" : "FAILED");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace tactus::golden

int main(int argc, char** argv) {
  try {
    return tactus::golden::run(argc, argv);
  } catch (const tactus::Error& e) {
    std::fprintf(stderr, "golden_check: %s\n", e.what());
    return e.exit_code();
  }
}
