#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

TEST_CASE("no error text shows what a variable stands for") {
  const auto* line = GENERATE(
      "kafka.bootstrap_servers='${SECRET}'", "kafka.group='${SECRET} '",
      "kafka.cluster=' ${SECRET}'", "kafka.assignor='${SECRET}'",
      "kafka.session_timeout='${SECRET}'", "kafka.start='${SECRET}'", "kafka.buffer='${SECRET}'",
      "kafka.group_protocol='${SECRET}'", "kafka.partitions='${SECRET}'",
      "kafka.partitions=['${SECRET}']", "kafka.librdkafka.group.id='${SECRET}'",
      "kafka.librdkafka='${SECRET}'", "postgres.schema='${SECRET}'", "postgres.pooled='${SECRET}'",
      "postgres.url='${SECRET}'", "postgres.synchronous_commit='${SECRET}'",
      "idempotency.key='${SECRET}'", "idempotency.key='{header:x}{${SECRET}}'",
      "idempotency.scope='{${SECRET}'", "failures.on_failure='${SECRET}'",
      "failures.max_attempts='${SECRET}'", "log.level='${SECRET}'", "alerts.command=['${SECRET}']",
      "alerts.notify_channel='${SECRET} '",
      "handler=[{ topics = ['${SECRET}'], sql = 'SELECT 1' }]",
      "handler=[{ topics = ['t', '${SECRET}', '${SECRET}'], sql = 'SELECT 1' }]",
      "handler=[{ topics = '${SECRET}', sql = 'SELECT 1' }]",
      "handler=[{ topics = ['t'], sql = 'SELECT {${SECRET}}' }]",
      "handler=[{ topics = ['t'], sql = [{ text = 'SELECT {${SECRET}}' }] }]",
      "handler=[{ topics = ['t'], sql = 'SELECT 1', when = '${SECRET}' }]",
      "handler=[{ topics = ['t'], function = '${SECRET}' }]",
      "handler=[{ topics = ['t'], sql = 'SELECT 1', isolation = '${SECRET}' }]",
      "handler=[{ topics = ['t'], sql = 'SELECT 1', name = '${SECRET} ' }]",
      "handler=[{ topics = ['$${x}', '${SECRET}'], sql = 'SELECT 1', timeout = '${SECRET}' }]");
  CAPTURE(line);
  const std::string errors = messages_of(request(kRequired, {line}, {{"SECRET", "hunter2!"}}));
  CHECK_FALSE(errors.empty());
  CHECK_THAT(errors, !ContainsSubstring("hunter2"));
}

TEST_CASE("no error text shows a password that stands in the file") {
  const auto* lines =
      GENERATE("[postgres]\nurl = [\"postgresql://app:hunter2@db/p\"]",
               "[postgres]\nurl = \"mysql://app:hunter2@db/p\"", "[postgres]\nurl = \"hunter2\"",
               "[postgres]\nurl = postgresql://app:hunter2@db/p", "[postgres]\nurl = hunter2",
               "[postgres]\nurl = \"postgresql://app:hunter2@db/p", "[postgres]\nurl = 'hunter2\n'",
               "[postgres]\nurl = \"\\hunter2\"", "[postgres]\nurl = 'a'hunter2",
               "[postgres]\nurl = 7hunter2", "[kafka.librdkafka]\n\"sasl.password\" = hunter2",
               "[kafka.librdkafka]\n\"sasl.password\" = [\"hunter2\"]",
               "[kafka.librdkafka]\n\"opaque\" = \"hunter2\"", "[redis]\npassword = \"hunter2\"",
               "[redis]\npassword = [\"hunter2\"]", "[redis]\nsentinel_password = hunter2");
  CAPTURE(lines);
  const std::string errors = messages_of(request(kRequired + lines + "\n"));
  CHECK_FALSE(errors.empty());
  CHECK_THAT(errors, !ContainsSubstring("hunter2"));
}

TEST_CASE("no error text shows a value that was given with --set") {
  const auto* set = GENERATE("postgres.url=mysql://app:hunter2@db/p", "postgres.urll=hunter2",
                             "postgres.url=[\"hunter2\"]", "kafka.librdkafka.opaque=hunter2",
                             "handler.0.key=hunter2", "redis.password=hunter2", "=hunter2");
  CAPTURE(set);
  const std::string errors = messages_of(request(kRequired, {set}));
  CHECK_FALSE(errors.empty());
  CHECK_THAT(errors, !ContainsSubstring("hunter2"));
}

TEST_CASE("an error text shows a variable's name in its place") {
  CHECK(messages_of(request(kRequired, {"postgres.schema=${SECRET}"}, {{"SECRET", "A"}})) ==
        "--set postgres.schema=\"${SECRET}\": not a plain identifier. Use up to 63 characters: a "
        "to z, 0 to 9, and _, not starting with a digit");
}

TEST_CASE("a connection string that libpq cannot read is told by its kind of mistake alone") {
  struct Row {
    const char* url;
    const char* told;
  };
  const Row rows[] = {
      {"postgresql://app:p%zzhunter2@db/p", "Write a literal % as %25"},
      {"postgresql://app:hunter2%00@db/p", "Write a literal % as %25"},
      {"postgresql://app:pw@[::1hunter2/p", "Write [ as %5B"},
      {"postgresql://app:pa ss@word:hunter2@db/p", "Write @ as %40"},
      {"postgresql://app:12/hunter2@db/p", "Write @ as %40"},
      {"postgresql://app:pw@db:hunter2/p", "the port is not a number from 1 to 65535"},
      {"postgresql://db/p?hunter2=x", "an option that libpq does not support"},
      {"postgresql://db/p?password=a=hunter2", "Write = within a value as %3D"},
      {"postgresql://db/p?sslmode=hunter2", "sslmode is not a value of libpq. Use disable, allow"},
      {"postgresql://db/p?connect_timeout=hunter2", "connect_timeout is not a number"},
      {"host=db password=pa hunter2", "Put values with spaces into single quotes"},
      {"host=db password='hunter2", "a quote is not closed"},
      {"host=db pasword=hunter2", "an option that libpq does not support"},
  };
  for (const auto& [url, told] : rows) {
    CAPTURE(url);
    const auto errors =
        messages_of(request(kRequired, {std::string("postgres.url=") + "\"" + url + "\""}));
    CHECK_THAT(errors, ContainsSubstring("postgres.url") && ContainsSubstring(told) &&
                           !ContainsSubstring("hunter2"));
  }
}

TEST_CASE("what libpq reads is no error, with whatever it holds that is encoded") {
  const auto* url = GENERATE(
      "", "postgresql://", "postgresql:///p", "postgresql://db1,db2:5433/p",
      "postgresql://app:a%40b%2Fc@db:5432/p%40q?application_name=x@y", "postgresql://app:a?b@db/p",
      "postgresql://[::1]:5432/p?sslmode=verify-full", "host=/run/postgresql dbname=p",
      "host=a,b port=5432, target_session_attrs=any", "user=app password='a b' connect_timeout=-1");
  CAPTURE(url);
  CHECK(
      messages_of(request(kRequired, {std::string("postgres.url=") + "\"" + url + "\""})).empty());
}
