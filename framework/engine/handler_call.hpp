#pragma once

#include <functional>

#include "engine/frame_context.hpp"
#include "handlers/router.hpp"
#include "pawl/handler.hpp"
#include "pawl/message.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Runs `handler`; what it throws says so if it has ended the transaction before (PW003): it may
/// have committed one half.
Response call_handler(postgres::Session& session, const std::function<Response()>& handler);

/// Throws Unfit for a response that is larger than the handler's messages may store.
void require_fits(const handlers::Binding& binding, const Response& response);

/// Tells the binding's on_duplicate, if any, about a duplicate that is committed. What it throws is
/// a warning.
void tell_duplicate(const Observers& observers, const handlers::Binding& binding,
                    const Message& message, const Response& response);

}  // namespace pawl::engine
