#include "pawl/consumer.hpp"

#include "config/validate.hpp"
#include "engine/supervisor.hpp"

namespace pawl {

struct Consumer::Impl {
  Impl(Options o, Registry r, std::vector<std::shared_ptr<Observer>> observers)
      : options(std::move(o)),
        registry(std::move(r)),
        supervisor(options, registry, std::move(observers)) {}

  Options options;
  Registry registry;
  engine::Supervisor supervisor;
};

Consumer::Consumer(Options options, Registry registry,
                   std::vector<std::shared_ptr<Observer>> observers) {
  config::require_valid(options);
  impl_ = std::make_unique<Impl>(std::move(options), std::move(registry), std::move(observers));
}

Consumer::~Consumer() = default;

RunResult Consumer::run() {
  return impl_->supervisor.run();
}

void Consumer::stop() {
  impl_->supervisor.stop();
}

}  // namespace pawl
