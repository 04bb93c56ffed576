#include "data/matrix/ark.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/text/text_lines.h"

namespace tactus::matrix {
namespace {

constexpr size_t kMostKeyBytes = 4096, kMostNumberBytes = 64;

enum class Layout { floats, doubles, quartiles, two_bytes, one_byte };

struct BinaryHeader {
  Layout layout = Layout::floats;
  float min = 0, range = 0;  ///< compressed matrices only
  int64_t rows = 0, width = 0;
  int64_t data_at = 0, data_bytes = 0;
};

bool is_space(int byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

/// An integer with its size in bytes before it.
int32_t sized_int(const FileRange& range, ByteCursor& cursor) {
  unsigned char bytes[5];
  const int64_t at = cursor.at();
  cursor.take(bytes, 5, "the matrix's header");
  if (bytes[0] != 4) range.fail_at(at, "expected the byte 4 before a size, found " + std::to_string(bytes[0]));
  return little_endian<int32_t>(bytes + 1);
}

Layout read_layout(const FileRange& range, ByteCursor& cursor) {
  constexpr std::pair<std::string_view, Layout> kLayouts[] = {{"FM", Layout::floats},
                                                              {"DM", Layout::doubles},
                                                              {"CM", Layout::quartiles},
                                                              {"CM2", Layout::two_bytes},
                                                              {"CM3", Layout::one_byte}};
  const int64_t at = cursor.at();
  std::string token;
  for (int byte = cursor.get(); byte != ' '; byte = cursor.get()) {
    if (byte < 0) range.fail_at(at, "the data ends inside the matrix's type; it was cut short");
    token += static_cast<char>(byte);
    if (token.size() > 3) break;
  }
  for (const auto& [name, layout] : kLayouts) {
    if (token == name) return layout;
  }
  if (token == "FV" || token == "DV")
    range.fail_at(at, "holds a vector ('" + token + "'), expected a matrix of features");
  range.fail_at(at, "unknown type '" + printable(token) + "', expected FM, DM, CM, CM2 or CM3");
}

/// Reads what follows the mark "\0B", and checks that the values fit into the range.
BinaryHeader read_binary_header(const FileRange& range, ByteCursor& cursor) {
  BinaryHeader header;
  const int64_t at = cursor.at();
  header.layout = read_layout(range, cursor);
  if (header.layout == Layout::floats || header.layout == Layout::doubles) {
    header.rows = sized_int(range, cursor);
    header.width = sized_int(range, cursor);
  } else {
    unsigned char bytes[16];
    cursor.take(bytes, 16, "the matrix's header");
    header.min = little_endian<float>(bytes), header.range = little_endian<float>(bytes + 4);
    header.rows = little_endian<int32_t>(bytes + 8), header.width = little_endian<int32_t>(bytes + 12);
  }
  const std::string shape = std::to_string(header.rows) + " x " + std::to_string(header.width);
  if (header.rows < 0 || header.width < 0) range.fail_at(at, "matrix of " + shape + " values; damaged");
  if (header.rows == 0 || header.width == 0) range.fail_at(at, "matrix of " + shape + " holds no values");
  const int64_t count = header.rows * header.width;
  switch (header.layout) {
    case Layout::floats:
      header.data_bytes = checked_product(count, 4);
      break;
    case Layout::doubles:
      header.data_bytes = checked_product(count, 8);
      break;
    case Layout::quartiles:
      header.data_bytes = count + 8 * header.width;
      break;
    case Layout::two_bytes:
      header.data_bytes = checked_product(count, 2);
      break;
    case Layout::one_byte:
      header.data_bytes = count;
      break;
  }
  header.data_at = cursor.at();
  const int64_t there = range.size() - header.data_at;
  if (header.data_bytes < 0 || header.data_bytes > there) {
    range.fail_at(at, "matrix of " + shape + " values takes " +
                          (header.data_bytes < 0 ? "more than 2^63" : std::to_string(header.data_bytes)) + " bytes, " +
                          std::to_string(there) + " are there; the file is damaged or was cut short");
  }
  return header;
}

float from_16_bits(const BinaryHeader& header, uint16_t code) {
  return header.min + header.range * 1.52590218966964e-05f * static_cast<float>(code);
}

/// One column of a matrix compressed between quartiles: codes 0 to 64 divide the range from the smallest value to the
/// first quartile evenly, 64 to 192 that to the third quartile, 192 to 255 that to the largest.
std::array<float, 256> column_values(const BinaryHeader& header, const unsigned char* codes_16) {
  constexpr int kEdge[4] = {0, 64, 192, 255};
  float edge[4];
  for (int i = 0; i < 4; ++i) edge[i] = from_16_bits(header, little_endian<uint16_t>(codes_16 + 2 * i));
  std::array<float, 256> values;
  for (int part = 2; part >= 0; --part) {
    const double step = 1.0 / (kEdge[part + 1] - kEdge[part]);
    for (int code = kEdge[part]; code <= kEdge[part + 1]; ++code) {
      // Products in float and the rest in double, as Kaldi computes them.
      const float product = (edge[part + 1] - edge[part]) * static_cast<float>(code - kEdge[part]);
      values[static_cast<size_t>(code)] = static_cast<float>(edge[part] + product * step);
    }
  }
  return values;
}

void read_quartiles(const FileRange& range, const BinaryHeader& header, MatrixPart& part) {
  FeatureMatrix& matrix = part.matrix;
  std::vector<unsigned char> bytes(static_cast<size_t>(header.data_bytes));
  range.read(bytes.data(), header.data_bytes, header.data_at);
  const unsigned char* codes = bytes.data() + 8 * header.width + part.first_row;
  for (int64_t c = 0; c < header.width; ++c) {
    const std::array<float, 256> values = column_values(header, bytes.data() + 8 * c);
    for (int64_t r = 0; r < matrix.rows; ++r)
      matrix.values[static_cast<size_t>(r * header.width + c)] = values[codes[c * header.rows + r]];
  }
}

/// Codes of one or two bytes that divide the matrix's range evenly, row by row.
void read_even(const FileRange& range, const BinaryHeader& header, MatrixPart& part) {
  const bool two = header.layout == Layout::two_bytes;
  const float step = static_cast<float>(header.range * (two ? 1.0 / 65535.0 : 1.0 / 255.0));
  const int64_t row_bytes = header.width * (two ? 2 : 1);
  std::vector<unsigned char> bytes(static_cast<size_t>(part.matrix.rows * row_bytes));
  range.read(bytes.data(), static_cast<int64_t>(bytes.size()), header.data_at + part.first_row * row_bytes);
  for (size_t i = 0; i < part.matrix.values.size(); ++i) {
    const int code = two ? little_endian<uint16_t>(bytes.data() + 2 * i) : bytes[i];
    part.matrix.values[i] = header.min + static_cast<float>(code) * step;
  }
}

MatrixPart read_binary(const FileRange& range, ByteCursor& cursor, const PartOfTime& time) {
  const BinaryHeader header = read_binary_header(range, cursor);
  const auto [begin, end] = time.rows_of(header.rows, range.shown());
  MatrixPart part;
  part.first_row = begin;
  part.matrix.rows = end - begin, part.matrix.width = header.width;
  part.matrix.values.resize(static_cast<size_t>(part.matrix.rows * header.width));
  switch (header.layout) {
    case Layout::floats:
    case Layout::doubles: {
      const Number type = header.layout == Layout::floats ? Number::f32 : Number::f64;
      const int64_t at = header.data_at + begin * header.width * size_of(type);
      read_floats(range, at, type, false, part.matrix.rows * header.width, part.matrix.values.data());
      break;
    }
    case Layout::quartiles:
      read_quartiles(range, header, part);
      break;
    default:
      read_even(range, header, part);
  }
  return part;
}

/// Text: "[", rows ended by line feeds or semicolons, "]".
class TextParser {
 public:
  /// Values are kept in `values` unless it is null.
  TextParser(const FileRange& range, ByteCursor& cursor, std::vector<float>* values)
      : range_(range), cursor_(cursor), values_(values) {}

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  void parse() {
    while (is_space(cursor_.peek())) cursor_.get();
    const int64_t at = cursor_.at();
    if (cursor_.get() != '[') fail_start(at);
    for (;;) {
      const int byte = cursor_.peek();
      if (byte < 0) range_.fail_at(range_.size(), "the data ends inside a matrix, ']' was expected; it was cut short");
      if (byte == '\n' || byte == ';' || byte == ']') end_row();
      if (byte == ']' || byte == ';' || is_space(byte)) {
        cursor_.get();
        if (byte == ']') break;
      } else {
        number();
      }
    }
    if (rows_ == 0) range_.fail_at(at, "matrix holds no values");
  }

 private:
  [[noreturn]] void fail_start(int64_t at) {
    char start[16];
    const int64_t count = std::min<int64_t>(sizeof start, range_.size() - at);
    range_.read(start, count, at);
    range_.fail_at(at, "expected a matrix ('[' or a zero byte and 'B'), found '" +
                           printable({start, static_cast<size_t>(count)}) +
                           "'; the offset must be that of an .scp file, the first byte after the key");
  }

  void end_row() {
    if (in_row_ == 0) return;
    if (rows_ > 0 && in_row_ != width_) {
      range_.fail_at(cursor_.at(), "row " + std::to_string(rows_) + " has " + std::to_string(in_row_) +
                                       " values, the rows before have " + std::to_string(width_));
    }
    width_ = in_row_, in_row_ = 0;
    ++rows_;
  }

  void number() {
    char text[kMostNumberBytes];
    size_t count = 0;
    const int64_t at = cursor_.at();
    for (int byte = cursor_.peek(); byte >= 0 && !is_space(byte) && byte != ']' && byte != ';'; byte = cursor_.peek()) {
      if (count == sizeof text) break;
      text[count++] = static_cast<char>(cursor_.get());
    }
    const char* begin = text + (count > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
    double value = 0;
    auto [end, error] = std::from_chars(begin, text + count, value);
    if (error != std::errc() || end != text + count || count == sizeof text) {
      range_.fail_at(at, "'" + printable({text, count}) + "' (row " + std::to_string(rows_) + ", column " +
                             std::to_string(in_row_) + ") is not a number");
    }
    ++in_row_;
    if (values_ != nullptr) values_->push_back(static_cast<float>(value));
  }

  const FileRange& range_;
  ByteCursor& cursor_;
  std::vector<float>* values_;
  int64_t rows_ = 0, width_ = 0, in_row_ = 0;
};

/// Takes the mark of a binary matrix, if there is one.
bool accept_binary_mark(const FileRange& range, ByteCursor& cursor) {
  if (cursor.peek() != 0) return false;
  const int64_t at = cursor.at();
  cursor.get();
  if (cursor.get() != 'B') range.fail_at(at, "a zero byte without 'B' after it begins no matrix");
  return true;
}

}  // namespace

ArkReader::ArkReader(const std::string& path)
    : file_(std::make_unique<FileRange>(path, -1, -1, path)), cursor_(*file_) {}

std::string ArkReader::read_key() {
  const int64_t at = cursor_.at();
  std::string key;
  for (int byte = cursor_.get(); byte != ' ' && byte != '\t'; byte = cursor_.get()) {
    if (byte < 0) file_->fail_at(at, "the file ends after the key '" + printable(key) + "'; it was cut short");
    if (byte < 0x20 || key.size() == kMostKeyBytes) {
      file_->fail_at(at, "expected a key and a space, found '" + printable(key + static_cast<char>(byte)) +
                             "'; the file is damaged or no Kaldi archive");
    }
    key += static_cast<char>(byte);
  }
  if (first_invalid_utf8(key) >= 0) file_->fail_at(at, "key '" + printable(key) + "' is not UTF-8");
  return key;
}

bool ArkReader::next(ArkEntry& entry) {
  while (is_space(cursor_.peek())) cursor_.get();
  if (cursor_.peek() < 0) return false;
  entry.key = read_key();
  entry.offset = cursor_.at();
  if (accept_binary_mark(*file_, cursor_)) {
    const BinaryHeader header = read_binary_header(*file_, cursor_);
    cursor_.seek(header.data_at + header.data_bytes);
    entry.rows = header.rows, entry.width = header.width;
  } else {
    TextParser parser(*file_, cursor_, nullptr);
    parser.parse();
    entry.rows = parser.rows(), entry.width = parser.width();
  }
  entry.bytes = cursor_.at() - entry.offset;
  return true;
}

MatrixPart read_ark(const FileRange& range, const PartOfTime& part) {
  ByteCursor cursor(range);
  if (accept_binary_mark(range, cursor)) return read_binary(range, cursor, part);
  MatrixPart result;
  FeatureMatrix& matrix = result.matrix;
  TextParser parser(range, cursor, &matrix.values);
  parser.parse();
  const auto [begin, end] = part.rows_of(parser.rows(), range.shown());
  result.first_row = begin, matrix.rows = end - begin, matrix.width = parser.width();
  matrix.values.resize(static_cast<size_t>(end * matrix.width));
  matrix.values.erase(matrix.values.begin(), matrix.values.begin() + begin * matrix.width);
  return result;
}

}  // namespace tactus::matrix
