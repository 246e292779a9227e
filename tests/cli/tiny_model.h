// The random model that most tests of the command run: 512 tokens of context, its tokens are bytes and words.
#pragma once

#include <string>

#include "support/tiny_gguf.h"
#include "support/tiny_vocabulary.h"

namespace razorkv::test {

inline const std::string& tiny_command_model() {
  static const std::string path = [] {
    TinyOptions options;
    options.vocabulary = kTinyVocabulary;
    options.context = 512;
    TinyGguf model(options);
    model.edit_metadata(set_tiny_vocabulary);
    return model.write_temporary();
  }();
  return path;
}

}  // namespace razorkv::test
