// Whether a text is a GBNF grammar that libllama will take.
#pragma once

#include <string>

#include "model/vocabulary.h"

namespace razorkv {

/// libllama prints what is wrong with a grammar, and recurses as deep as its parentheses; so it gets good ones only.
/// Throws InvalidArgument naming line and fault: syntax, a rule that is used but not defined, no rule `root`,
/// parentheses deeper than 200, a repetition above 2000, a token that the vocabulary does not have.
void check_grammar(const std::string& text, const std::string& root, const Vocabulary& vocabulary);

}  // namespace razorkv
