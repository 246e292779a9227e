#include "cli/arguments.h"

#include <map>

namespace razorkv::cli {

std::vector<std::string> normalized_arguments(int argc, const char* const* argv) {
  static const std::map<std::string, std::string> long_names = {
      {"-tb", "--threads-batch"}, {"-ub", "--ubatch-size"}, {"-ctk", "--cache-type-k"},
      {"-ctv", "--cache-type-v"}, {"-sys", "--system"},     {"-np", "--parallel"},
  };
  static const std::map<std::string, std::string> texts = {
      {"-p", "--prompt"}, {"--prompt", "--prompt"}, {"-sys", "--system"}, {"--system", "--system"}};
  std::vector<std::string> out;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (const auto text = texts.find(argument); text != texts.end() && i + 1 < argc) {
      const std::string value = argv[++i];
      if (value.empty()) {
        out.insert(out.end(), {text->second, value});
      } else {
        out.push_back(text->second + "=" + value);
      }
      continue;
    }
    const std::string name = argument.substr(0, argument.find('='));
    const auto known = long_names.find(name);
    out.push_back(known == long_names.end() ? argument : known->second + argument.substr(name.size()));
  }
  return out;
}

}  // namespace razorkv::cli
