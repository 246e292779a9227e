#include "razorkv/policy.h"

#include <utility>

#include "engine/build_policy.h"
#include "engine/model_handle.h"
#include "engine/model_profile.h"
#include "razorkv/error.h"

namespace razorkv {

Policy Policy::full(const Model& model) {
  PolicyOptions options;
  options.policy = "full";
  return make(model, options);
}

Policy Policy::make(const Model& model, const PolicyOptions& options, const Progress& progress) {
  const Config& config = model.impl()->loaded->config();
  const HeadShape shape = HeadShape::of(config);
  const std::int64_t bytes_per_row = 2 * config.head_width * (options.kv_type == KvType::f32 ? 4 : 2);
  const ProfileSource profile = [&] { return find_or_make_profile(model, options, progress); };
  return Policy(std::make_shared<const Impl>(build_policy(shape, bytes_per_row, options, profile)));
}

std::string Policy::description() const { return impl_->description; }
const std::string& Policy::name() const { return impl_->rules->name; }
std::int64_t Policy::protected_heads() const { return impl_->protected_heads; }

}  // namespace razorkv
