#pragma once

#include <string>
#include <vector>

#include "pawl/handler.hpp"

namespace pawl::handlers {

/// The handler's function with the program's arounds around each call of it; the function itself
/// where there are none. `arounds` outlive what is returned.
[[nodiscard]] HandlerFunction inside(const std::vector<AroundFunction>& arounds,
                                     const std::string& handler, HandlerFunction function);
[[nodiscard]] BatchFunction inside(const std::vector<AroundFunction>& arounds,
                                   const std::string& handler, BatchFunction function);
[[nodiscard]] StatementFunction inside(const std::vector<AroundFunction>& arounds,
                                       const std::string& handler, StatementFunction function);
/// Around `call`.
[[nodiscard]] pawl::LeasedHandler inside(const std::vector<AroundFunction>& arounds,
                                         const std::string& handler, pawl::LeasedHandler functions);

}  // namespace pawl::handlers
