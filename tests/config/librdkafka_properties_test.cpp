#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

TEST_CASE("every librdkafka property that would break the promise is refused with a reason") {
  for (const char* property : {"bootstrap.servers",
                               "metadata.broker.list",
                               "group.id",
                               "group.instance.id",
                               "group.protocol",
                               "group.protocol.type",
                               "partition.assignment.strategy",
                               "session.timeout.ms",
                               "queued.max.messages.kbytes",
                               "enable.auto.commit",
                               "auto.commit.enable",
                               "enable.auto.offset.store",
                               "auto.commit.interval.ms",
                               "offset.store.method",
                               "offset.store.path",
                               "offset.store.sync.interval.ms",
                               "auto.offset.reset",
                               "isolation.level",
                               "enable.partition.eof",
                               "api.version.request",
                               "api.version.fallback.ms",
                               "broker.version.fallback",
                               "topic.metadata.refresh.interval.ms",
                               "enabled_events",
                               "log.queue",
                               "internal.termination.signal",
                               "interceptors",
                               "opaque",
                               "default_topic_conf",
                               "ssl_key",
                               "ssl_certificate",
                               "ssl_ca",
                               "ssl_engine_callback_data",
                               "msg_order_cmp",
                               "consume_cb",
                               "rebalance_cb",
                               "offset_commit_cb",
                               "log_cb",
                               "stats_cb",
                               "error_cb",
                               "oauthbearer_token_refresh_cb"}) {
    CAPTURE(property);
    const std::string option = dotted("kafka.librdkafka", property);
    CHECK_THAT(messages_of(request(kRequired, {option + "=x"})),
               StartsWith("--set " + option + ": rejected: ") && ContainsSubstring(". "));
  }
}

TEST_CASE(
    "librdkafka properties that leave the promise whole pass, also those that repeat pawl's") {
  const LoadRequest asked = request(
      kRequired,
      {"kafka.librdkafka.client.id=a", "kafka.librdkafka.max.poll.interval.ms=600000",
       "kafka.librdkafka.topic.blacklist=^_", "kafka.librdkafka.check.crcs=false",
       "kafka.librdkafka.group.remote.assignor=uniform", "kafka.librdkafka.plugin.library.paths=p",
       "kafka.librdkafka.debug=cgrp", "kafka.librdkafka.sasl.password=p",
       "kafka.librdkafka.fetch.min.bytes=1", "kafka.librdkafka.heartbeat.interval.ms=500",
       "kafka.librdkafka.isolation.level=READ_COMMITTED",
       "kafka.librdkafka.enable.auto.commit=false", "kafka.librdkafka.auto.offset.reset=error"});
  CHECK(messages_of(asked).empty());
}
