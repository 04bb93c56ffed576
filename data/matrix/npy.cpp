#include "data/matrix/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace tactus::matrix {
namespace {

struct Header {
  Number type = Number::f32;
  bool big_endian = false, fortran_order = false;
  std::vector<int64_t> shape;
  int64_t data_at = 0;
};

/// Reads the header's text, a Python dictionary of exactly 'descr', 'fortran_order' and 'shape'. Order, spaces and the
/// last comma are free.
class HeaderParser {
 public:
  HeaderParser(const FileRange& range, std::string_view text) : range_(range), text_(text) {}

  void parse(Header& header) {
    bool has_type = false, has_order = false, has_shape = false;
    expect('{', "the dictionary's '{'");
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':', "':' after a key");
      if (key == "descr") {
        once(has_type, key);
        type(header);
      } else if (key == "fortran_order") {
        once(has_order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(has_shape, key);
        header.shape = shape();
      } else {
        fail("unknown key '" + printable(key) + "'; expected descr, fortran_order and shape");
      }
      if (!accept(',')) {
        expect('}', "',' or '}'");
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail("expected nothing after '}', found '" + rest() + "'");
    if (!has_type || !has_order || !has_shape) {
      fail(std::string("has no key '") + (!has_type ? "descr" : !has_order ? "fortran_order" : "shape") + "'");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { range_.fail("NumPy header: " + what); }
  std::string rest() const { return printable(text_.substr(at_)); }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* what) {
    if (!accept(c)) fail(std::string("expected ") + what + ", found '" + rest() + "'");
  }
  void once(bool& seen, std::string_view key) const {
    if (seen) fail("key '" + std::string(key) + "' appears twice");
    seen = true;
  }

  std::string_view quoted() {
    skip_spaces();
    const size_t begin = at_ + 1;
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, begin) : std::string_view::npos;
    if (end == std::string_view::npos) fail("expected a name in quotes, found '" + rest() + "'");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    skip_spaces();
    for (bool value : {false, true}) {
      const std::string_view name = value ? "True" : "False";
      if (text_.substr(at_).starts_with(name)) {
        at_ += name.size();
        return value;
      }
    }
    fail("fortran_order: expected True or False, found '" + rest() + "'");
  }

  void type(Header& header) {
    constexpr std::pair<const char*, Number> kTypes[] = {{"f2", Number::f16}, {"f4", Number::f32}, {"f8", Number::f64},
                                                         {"i1", Number::i8},  {"i2", Number::i16}, {"i4", Number::i32},
                                                         {"u1", Number::u8}};
    const char* expected = "; expected f2, f4, f8, i1, i2, i4 or u1; convert it, e.g. array.astype('<f4')";
    skip_spaces();
    if (text_.substr(at_).starts_with("[")) fail(std::string("an array of structures") + expected);
    const std::string_view name = quoted();
    if (name.size() == 3 && (name[0] == '<' || name[0] == '>' || name[0] == '|')) {
      for (const auto& [suffix, number] : kTypes) {
        if (name.substr(1) != suffix || (name[0] == '|' && size_of(number) > 1)) continue;
        header.type = number;
        header.big_endian = name[0] == '>';
        return;
      }
    }
    fail("numbers of type '" + printable(name) + "'" + expected);
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> extents;
    expect('(', "a shape in parentheses");
    while (!accept(')')) {
      skip_spaces();
      int64_t extent = 0;
      const char* begin = text_.data() + at_;
      auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail("shape: expected a whole number, found '" + rest() + "'");
      at_ += static_cast<size_t>(end - begin);
      accept('L');  // long integers, as Python 2 wrote them
      extents.push_back(extent);
      if (!accept(',')) {
        expect(')', "',' or ')'");
        break;
      }
    }
    return extents;
  }

  const FileRange& range_;
  std::string_view text_;
  size_t at_ = 0;
};

Header read_header(const FileRange& range) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  unsigned char start[12];
  if (range.size() < 10) range.fail("holds " + std::to_string(range.size()) + " bytes, too few for a NumPy array");
  range.read(start, 10, 0);
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0) {
    range.fail("is no NumPy array: begins with '" + printable({reinterpret_cast<char*>(start), 6}) +
               "', expected '\\x93NUMPY'");
  }
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0) {
    range.fail("NumPy file version " + std::to_string(major) + "." + std::to_string(minor) +
               ", expected 1.0, 2.0 or 3.0");
  }
  int64_t length = little_endian<uint16_t>(start + 8), text_at = 10;
  if (major > 1) {
    range.read(start + 8, 4, 8);
    length = little_endian<uint32_t>(start + 8), text_at = 12;
  }
  if (length > range.size() - text_at) {
    range.fail("NumPy header: claims " + std::to_string(length) + " bytes, " + std::to_string(range.size() - text_at) +
               " are there; it was cut short");
  }
  std::string text(static_cast<size_t>(length), '\0');
  range.read(text.data(), length, text_at);
  Header header;
  header.data_at = text_at + length;
  HeaderParser(range, text).parse(header);
  return header;
}

/// Fortran order: value (t, l, d) of [T, L, D] lies at t + T (l + L d).
void read_fortran(const FileRange& range, const Header& header, int64_t rows, MatrixPart& part) {
  FeatureMatrix& matrix = part.matrix;
  const int64_t size = size_of(header.type);
  const int64_t row_size = matrix.layers * matrix.width;
  std::vector<unsigned char> bytes(static_cast<size_t>(rows * row_size * size));
  range.read(bytes.data(), static_cast<int64_t>(bytes.size()), header.data_at);
  for (int64_t l = 0; l < matrix.layers; ++l) {
    for (int64_t d = 0; d < matrix.width; ++d) {
      const int64_t first = rows * (l + matrix.layers * d) + part.first_row;
      to_floats(bytes.data() + first * size, header.type, header.big_endian, matrix.rows,
                matrix.values.data() + l * matrix.width + d, row_size);
    }
  }
}

}  // namespace

MatrixPart read_npy(const FileRange& range, const PartOfTime& part, bool may_go_on) {
  const Header header = read_header(range);
  const std::vector<int64_t>& shape = header.shape;
  std::string shown = "(";
  for (size_t i = 0; i < shape.size() && i < 8; ++i) shown += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  shown += shape.size() > 8 ? ", ...)" : ")";
  if (shape.size() != 2 && shape.size() != 3)
    range.fail("array of shape " + shown + ", expected (frames, width) or (frames, layers, width)");

  MatrixPart result;
  FeatureMatrix& matrix = result.matrix;
  matrix.layers = shape.size() == 3 ? shape[1] : 1, matrix.width = shape.back();
  const int64_t row_size = checked_product(matrix.layers, matrix.width), size = size_of(header.type);
  const int64_t bytes = checked_product(checked_product(shape[0], row_size), size);
  const int64_t there = range.size() - header.data_at;
  if (bytes == 0) range.fail("array of shape " + shown + " holds no values");
  if (bytes < 0 || bytes > there || (bytes < there && !may_go_on)) {
    range.fail("array of shape " + shown + " takes " + (bytes < 0 ? "more than 2^63" : std::to_string(bytes)) +
               " bytes, " + std::to_string(there) + " are there; the file is damaged or was cut short");
  }
  const auto [begin, end] = part.rows_of(shape[0], range.shown());
  result.first_row = begin, matrix.rows = end - begin;
  matrix.values.resize(static_cast<size_t>(matrix.rows * row_size));
  if (header.fortran_order) {
    read_fortran(range, header, shape[0], result);
  } else {
    read_floats(range, header.data_at + begin * row_size * size, header.type, header.big_endian, matrix.rows * row_size,
                matrix.values.data());
  }
  return result;
}

}  // namespace tactus::matrix
