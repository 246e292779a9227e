#include "eval/haystack.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "base/utf8.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string json_text(const std::string& content, const std::string& path) {
  try {
    return nlohmann::json::parse(content).at("text").get<std::string>();
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("{}: expected a JSON object with a string \"text\"; {}", path, error.what()));
  }
}

std::string with_plain_line_ends(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

}  // namespace

std::string_view without_gutenberg_frame(std::string_view text) {
  const std::size_t start = text.find("*** START OF");
  if (start != std::string_view::npos) {
    const std::size_t line_end = text.find('\n', start);
    text = line_end == std::string_view::npos ? std::string_view{} : text.substr(line_end + 1);
  }
  return text.substr(0, text.find("*** END OF"));
}

std::string_view from_character(std::string_view text, std::int64_t character) {
  if (character < 0) throw InvalidArgument(fmt::format("the first character must be 0 or more, found {}", character));
  std::int64_t seen = -1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
    if (!continues && ++seen == character) return text.substr(i);
  }
  throw InvalidArgument(
      fmt::format("the haystack has {} characters, so it cannot begin at character {}", seen + 1, character));
}

std::string read_haystack(const std::string& path) {
  std::string content = read_text_file(path);
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  if (path.ends_with(".json")) content = json_text(content, path);
  std::string text(without_gutenberg_frame(with_plain_line_ends(content)));
  if (text.empty()) throw FileError(path + ": the haystack is empty");
  return replace_invalid_utf8(text);
}

}  // namespace razorkv
