#include "redis/error.hpp"

#include "prelude.hpp"
#include "redis/reply.hpp"

using pawl::redis::Error;

TEST_CASE("an error's code is its first word, also where a script has wrapped it") {
  struct Case {
    std::string reply;
    std::string code;
  };
  const auto one = GENERATE(
      Case{"OOM command not allowed when used memory > 'maxmemory'.", "OOM"},
      Case{"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT"},
      Case{"WRONGPASS", "WRONGPASS"},
      Case{"ERR wrong number of arguments for 'get' command", "ERR"},
      // Redis 6.2
      Case{
          "ERR Error running script (call to f_9): @user_script:12: @user_script: 12: -OOM command "
          "not allowed when used memory > 'maxmemory'. ",
          "OOM"},
      Case{"ERR Error running script (call to f_9): @user_script:2: @user_script: 2: -READONLY You "
           "can't write against a read only replica. ",
           "READONLY"},
      Case{"ERR a key: -this is a value", "ERR"}, Case{"lower case", "ERR"}, Case{"", "ERR"});
  CAPTURE(one.reply);
  CHECK(pawl::redis::error_code(one.reply) == one.code);
  const auto error = Error::refused("Redis here:1", "EVALSHA", one.reply);
  CHECK(error.kind() == Error::Kind::kRefused);
  CHECK(error.code() == one.code);
  CHECK_THAT(error.what(), StartsWith("Redis here:1 rejected EVALSHA: " +
                                      one.reply.substr(0, one.reply.find_last_not_of(" .") + 1)));
}

TEST_CASE("a reply of another type than expected is an error") {
  using pawl::redis::ItemReader;
  using pawl::redis::Reply;
  const Reply number{Reply::Type::kInteger, 7, "", {}};
  const Reply text{Reply::Type::kText, 0, "seven", {}};
  const Reply both{Reply::Type::kArray, 0, "", {number, text}};
  const ItemReader items(both, "Redis here:1", "acquire");
  CHECK(items.integer(0) == 7);
  CHECK(items.text(1) == "seven");
  const auto message = [](const auto& read) -> std::string {
    try {
      (void)read();
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == Error::Kind::kMalformed);
      return error.what();
    }
  };
  CHECK_THAT(message([&] { return items.text(0); }),
             StartsWith("Redis here:1 responded to acquire with an integer as item 0"));
  CHECK_THAT(message([&] { return items.integer(1); }), ContainsSubstring("a text as item 1"));
  CHECK_THAT(message([&] { return items.integer(2); }), ContainsSubstring("with 2 items"));
  CHECK_THAT(message([&] { return ItemReader(text, "Redis here:1", "ROLE").integer(0); }),
             ContainsSubstring("responded to ROLE with a text"));
}
