#include "core/dtype.h"

namespace tactus {

std::string to_string(DType t) {
  switch (t) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "?";
}

DType float_type_from_string(const std::string& name) {
  if (name == "f64") return DType::f64;
  if (name == "f32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  throw ConfigError("unknown number type '" + name + "': use f32, bf16 or f64");
}

}  // namespace tactus
