#include "message/entity_key.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace pawl::message {
namespace {

/// Things that exist for long and that many messages are about.
constexpr std::array<std::string_view, 24> kEntities{
    "account", "card",    "client", "company",  "contact",  "customer", "device",  "employee",
    "iban",    "item",    "member", "merchant", "order",    "owner",    "partner", "person",
    "product", "profile", "sku",    "store",    "supplier", "tenant",   "user",    "vendor"};
constexpr std::array<std::string_view, 7> kIdWords{"", "id", "no", "nr", "number", "key", "uuid"};

/// "customerId", "customer-id", "x_customer_id": lower-case letters and digits alone.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      result += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      result += c;
    }
  }
  return result;
}

bool names_entity(std::string_view name) {
  const auto text = plain(name);
  return std::any_of(kEntities.begin(), kEntities.end(), [&](std::string_view entity) {
    return std::any_of(kIdWords.begin(), kIdWords.end(), [&](std::string_view word) {
      return text == std::string(entity) + std::string(word);
    });
  });
}

/// The last words of "/order/customer/id": of "id" alone the one before says whose.
std::string_view end_of_pointer(std::string_view pointer) {
  auto begin = pointer.rfind('/');
  const auto last = plain(pointer.substr(begin + 1));
  if (begin > 0 && std::find(kIdWords.begin(), kIdWords.end(), last) != kIdWords.end())
    begin = pointer.rfind('/', begin - 1);
  return pointer.substr(begin + 1);
}

/// Whether the source tells events apart as little as the topic does.
bool is_shared(const Source& source) {
  switch (source.kind) {
    case SourceKind::kTopic:
    case SourceKind::kTopicId:
    case SourceKind::kPartition:
      return true;
    default:
      return false;
  }
}

bool is_entity(const Source& source) {
  switch (source.kind) {
    case SourceKind::kKey:
      return true;
    case SourceKind::kHeader: {
      const auto& name = source.header;
      const bool prefixed = name.starts_with("x-") || name.starts_with("X-");
      return names_entity(prefixed ? std::string_view(name).substr(2) : name);
    }
    case SourceKind::kJson: {
      const auto pointer = source.text.find('/');
      return pointer != std::string::npos &&
             names_entity(end_of_pointer(std::string_view(source.text).substr(pointer)));
    }
    default:
      return false;
  }
}

}  // namespace

std::optional<std::string> entity_in_key(const Template& key) {
  std::string found;
  for (const auto* placeholder : key.placeholders()) {
    const auto& sources = placeholder->sources();
    if (std::all_of(sources.begin(), sources.end(), is_shared))
      continue;
    if (!std::all_of(sources.begin(), sources.end(), is_entity))
      return std::nullopt;
    found += (found.empty() ? "{" : ", {") + placeholder->text() + "}";
  }
  if (found.empty())
    return std::nullopt;
  return found;
}

}  // namespace pawl::message
