#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pawl::handlers {

/// The topics that calls of pawl.publish in a statement name by a literal, in their order, some
/// perhaps twice. `schema` is pawl's, as SQL writes it. Topics that are computed, and those of
/// functions and triggers behind the statement, nobody knows before it runs.
[[nodiscard]] std::vector<std::string> published_topics(std::string_view sql,
                                                        std::string_view schema);

/// Whether pawl.publish takes it for the name of a topic.
[[nodiscard]] bool is_topic_name(std::string_view name);

}  // namespace pawl::handlers
