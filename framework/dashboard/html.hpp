#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::dashboard {

/// Text for an element or a quoted attribute: what HTML would take for more than text is escaped,
/// and control characters and what is not UTF-8 are shown as \xNN.
[[nodiscard]] std::string escape(std::string_view text);

/// One value of a query or of a form, as application/x-www-form-urlencoded has it.
[[nodiscard]] std::string url_encode(std::string_view text);

/// The fields of a query or a form. Of two with one name the last counts; a broken %NN stays as it
/// is.
using Fields = std::map<std::string, std::string>;
[[nodiscard]] Fields parse_fields(std::string_view text);
/// Whether PostgreSQL can take them for text.
[[nodiscard]] bool are_text(const Fields& fields);
/// "" where there is none.
[[nodiscard]] std::string field(const Fields& fields, const std::string& name);
/// Nullopt where it is no whole number.
[[nodiscard]] std::optional<std::int64_t> number_field(const Fields& fields,
                                                       const std::string& name);
/// Nullopt where it is no partition's number.
[[nodiscard]] std::optional<std::int32_t> partition_field(const Fields& fields,
                                                          const std::string& name);
/// "?a=b&c=d", without those that are empty; "" where all are.
[[nodiscard]] std::string to_query(const Fields& fields);

/// "1 234 567", with thin spaces that do not break.
[[nodiscard]] std::string grouped(std::int64_t number);
/// The same, and "unknown" in its own style where it is not known.
[[nodiscard]] std::string grouped_or_unknown(const std::optional<std::int64_t>& number);

}  // namespace pawl::dashboard
