// What a public Model holds.
#pragma once

#include <memory>

#include "model/loaded_model.h"
#include "model/vocabulary.h"
#include "razorkv/model.h"

namespace razorkv {

struct Model::Impl {
  std::shared_ptr<const LoadedModel> loaded;
  std::shared_ptr<const Vocabulary> vocabulary;
};

}  // namespace razorkv
