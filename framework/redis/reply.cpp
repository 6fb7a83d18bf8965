#include "redis/reply.hpp"

#include <fmt/format.h>

#include "redis/error.hpp"

namespace pawl::redis {

std::string_view describe(Reply::Type type) {
  switch (type) {
    case Reply::Type::kNil:
      return "nothing";
    case Reply::Type::kInteger:
      return "an integer";
    case Reply::Type::kText:
      return "a text";
    case Reply::Type::kArray:
      return "an array";
    case Reply::Type::kError:
      break;
  }
  return "an error";
}

ItemReader::ItemReader(const Reply& reply, std::string_view server, std::string_view command)
    : reply_(reply), server_(server), command_(command) {
  if (reply.type != Reply::Type::kArray)
    throw Error::malformed(server, command, describe(reply.type));
}

const Reply& ItemReader::item(std::size_t index, Reply::Type type) const {
  if (index >= reply_.items.size())
    throw Error::malformed(server_, command_, fmt::format("{} items", reply_.items.size()));
  const auto& found = reply_.items[index];
  if (found.type != type)
    throw Error::malformed(server_, command_,
                           fmt::format("{} as item {}", describe(found.type), index));
  return found;
}

const std::string& ItemReader::text(std::size_t index) const {
  return item(index, Reply::Type::kText).text;
}

std::int64_t ItemReader::integer(std::size_t index) const {
  return item(index, Reply::Type::kInteger).integer;
}

}  // namespace pawl::redis
