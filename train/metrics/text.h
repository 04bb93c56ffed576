// UTF-8 and line helpers that the text metrics share. White space and lower case follow the Unicode 14 character
// database, because that is what the reference scorers see: a no-break space separates words, a zero-width one does
// not.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::text {

/// Byte offset of the first malformed sequence (overlong forms, surrogates and values above U+10FFFF are malformed), or
/// std::string_view::npos.
size_t find_invalid_utf8(std::string_view s);

/// Throws DataError "WHERE: invalid UTF-8 at byte N" (N counted from 1).
void check_utf8(std::string_view s, const std::string& where);

/// Code points of valid UTF-8; throws DataError otherwise.
std::u32string decode_utf8(std::string_view s);

void append_utf8(std::string& out, char32_t c);

/// White space as Unicode defines it, plus the four ASCII separators U+001C..U+001F.
bool is_space(char32_t c);

/// Without white space at the end, or at both ends. Input must be valid UTF-8.
std::string_view strip_right(std::string_view s);
std::string_view strip(std::string_view s);

/// Pieces between runs of white space; no piece is empty. The views point into s. Input must be valid UTF-8.
std::vector<std::string_view> split_words(std::string_view s);

/// Full Unicode lower case, final sigma included. Input must be valid UTF-8.
std::string lowercase(std::string_view s);

/// The lines of a UTF-8 file. Only \n ends a line; one \r before it is dropped, so is a byte-order mark at the start of
/// the file. A last line without \n counts; an empty file has no lines. Throws DataError that names file and line.
std::vector<std::string> read_lines(const std::filesystem::path& path);

}  // namespace tactus::text
