"""Compares what was sent with what took effect. Pure, so that judge_test.py can show what it finds."""
from collections import Counter, namedtuple

# partition and offset: where Kafka has the first record of it.
Sent = namedtuple("Sent", "id key sequence partition offset")
# In the order in which they took effect. at_once: whether another call for this id ran meanwhile.
Effect = namedtuple("Effect", "id key sequence at_once", defaults=(False,))
Verdict = namedtuple("Verdict", "lost duplicated reordered")


def judge(sent, effects, dead_lettered, ordered_with_dead_letters, whole_log):
    """Lists of texts. dead_lettered: ids of messages that were dead letters at some time. Unless
    ordered_with_dead_letters, no order is promised for them. whole_log: a partition takes effect in the order of the log,
    and not only each record key."""
    by_id = {message.id: message for message in sent}
    count = Counter(effect.id for effect in effects)
    lost = [f"{message.id} at {message.partition}@{message.offset} has no effect" for message in sent if message.id not in count]
    duplicated = [f"{id} has {n} effects" for id, n in count.items() if n > 1]
    duplicated += [f"{effect.id} was called twice at once" for effect in effects if effect.at_once]
    duplicated += [f"{id} was never sent" for id in count if id not in by_id]
    reordered = out_of_order(
        ((effect.key, effect.sequence, effect.id) for effect in effects
         if count[effect.id] == 1 and (ordered_with_dead_letters or effect.id not in dead_lettered)), "key")
    if whole_log:
        reordered += out_of_order(
            ((by_id[effect.id].partition, by_id[effect.id].offset, effect.id) for effect in effects
             if count[effect.id] == 1 and effect.id in by_id and effect.id not in dead_lettered), "partition")
    return Verdict(lost, duplicated, reordered)


def out_of_order(effects, what):
    """effects: (group, place, id) in the order in which they took effect."""
    highest, found = {}, []
    for group, place, id in effects:
        if group in highest and place < highest[group][0]:
            found.append(f"{id} took effect after {highest[group][1]}, {what} {group}")
        else:
            highest[group] = (place, id)
    return found
