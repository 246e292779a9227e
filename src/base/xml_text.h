// Text inside XML.
#pragma once

#include <string>
#include <string_view>

namespace razorkv {

/// `text` with the characters that XML gives a meaning replaced by entities; fit for attributes in double quotes.
std::string escape_xml(std::string_view text);

}  // namespace razorkv
