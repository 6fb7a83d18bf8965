"""Compares what was sent with what took effect. Pure, so that judge_test.py can show what it finds."""
from bisect import bisect_left
from collections import Counter, namedtuple

# partition and offset: where Kafka has the first record of it.
Sent = namedtuple("Sent", "id key sequence partition offset")
# In the order in which they took effect. at_once: whether another call for this id ran meanwhile.
Effect = namedtuple("Effect", "id key sequence at_once", defaults=(False,))
Verdict = namedtuple("Verdict", "lost duplicated reordered")
# Of one partition. worst: the smallest share of its input that it applied in a window, or None without windows. lag: the
# longest time in seconds for which messages waited without a break. unfair: texts.
Fairness = namedtuple("Fairness", "fed applied windows worst lag unfair")

WINDOW_SECONDS = 30
SMALLEST_SHARE = 0.25
# A message that waits for less is not a lag.
LAG_SECONDS = 1


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


def judge_fairness(partition, fed, applied, judged, lag_zero_by):
    """fed and applied: the time by message ID, in seconds. judged: intervals in which the servers and the owner are up, and
    the partition's own messages do not fail. lag_zero_by: when every message that was fed must be applied, or None."""
    inputs, outputs = sorted(fed.values()), sorted(time for id, time in applied.items() if id in fed)
    worst, windows, unfair = None, 0, []
    for begin, end in judged:
        for second in range(int(end - begin - WINDOW_SECONDS) + 1 if end - begin >= WINDOW_SECONDS else 0):
            window = begin + second, begin + second + WINDOW_SECONDS
            input, output = count_between(inputs, *window), count_between(outputs, *window)
            if input == 0:
                continue
            windows += 1
            if worst is None or output / input < worst[0]:
                worst = output / input, window[0], input, output
    if worst is not None and worst[0] < SMALLEST_SHARE:
        unfair.append(f"{partition} applied {worst[3]} of {worst[2]} messages in {WINDOW_SECONDS} s from {worst[1]:.1f}")
    if lag_zero_by is not None:
        late = [id for id in fed if applied.get(id, lag_zero_by + 1) > lag_zero_by]
        if late:
            first = min(late, key=fed.get)
            unfair.append(f"{partition} has a lag of {len(late)} messages at {lag_zero_by:.1f};"
                          f" the first is {first} of {fed[first]:.1f}")
    return Fairness(len(fed), len(outputs), windows, worst and worst[0], longest_lag(fed, applied), unfair)


def count_between(times, begin, end):
    return bisect_left(times, end) - bisect_left(times, begin)


def longest_lag(fed, applied):
    """In seconds. A message that was not applied has waited until the last time that is known."""
    last = max([*fed.values(), *applied.values()], default=0)
    waits = sorted((time, applied.get(id, last)) for id, time in fed.items() if applied.get(id, last) - time > LAG_SECONDS)
    longest, begin, end = 0, 0, 0
    for fed_at, applied_at in waits:
        if fed_at > end:
            begin = fed_at
        end = max(end, applied_at)
        longest = max(longest, end - begin)
    return longest


def up_intervals(samples, partition, longest_gap):
    """samples: (time, partitions that are up), in their order. An interval ends at a sample without the partition, and where
    none was taken for longest_gap seconds."""
    intervals, begin, last = [], None, None
    for time, up in samples:
        if begin is not None and (partition not in up or time - last > longest_gap):
            intervals.append((begin, last))
            begin = None
        if partition in up:
            begin, last = time if begin is None else begin, time
    return intervals if begin is None else [*intervals, (begin, last)]


def without(intervals, others):
    """What is left of intervals outside of the others."""
    for begin, end in others:
        intervals = [part for a, b in intervals for part in ((a, min(b, begin)), (max(a, end), b)) if part[0] < part[1]]
    return intervals
