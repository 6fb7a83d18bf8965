#include "engine/subject.hpp"

#include "engine/message_key.hpp"
#include "message/json.hpp"

namespace pawl::engine {

Subject identify(const handlers::Router& router, const Message& message) {
  Subject subject;
  try {
    message::JsonReader reader;
    message::JsonView json(reader, message);
    subject.binding = router.route(message, json);
    if (subject.binding == nullptr || subject.binding->key_function != nullptr)
      return subject;
    const auto key = derive_key(*subject.binding, message, json);
    if (const auto* found = std::get_if<Key>(&key))
      subject.key = found->text;
    return subject;
  } catch (...) {  // code's may be anything
    // What cannot be read has no name.
    return subject;
  }
}

}  // namespace pawl::engine
