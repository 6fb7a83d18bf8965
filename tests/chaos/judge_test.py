"""That judge.py finds what is lost, duplicated, reordered, and unfair, and nothing else."""
import unittest

from judge import Effect, Sent, judge, judge_fairness, longest_lag, up_intervals, without

SENT = [Sent("a0", "a", 0, 0, 0), Sent("b0", "b", 0, 0, 1), Sent("a1", "a", 1, 0, 2), Sent("c0", "c", 0, 1, 0)]
EFFECTS = [Effect("a0", "a", 0), Effect("b0", "b", 0), Effect("a1", "a", 1), Effect("c0", "c", 0)]


def counts(effects, dead_lettered=(), ordered_with_dead_letters=False, whole_log=True):
    return tuple(len(found) for found in judge(SENT, effects, set(dead_lettered), ordered_with_dead_letters, whole_log))


class Judge(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(counts(EFFECTS), (0, 0, 0))
        self.assertEqual(counts([EFFECTS[3], *EFFECTS[:3]]), (0, 0, 0))  # partitions have no order between them

    def test_lost(self):
        self.assertEqual(counts(EFFECTS[:2] + EFFECTS[3:]), (1, 0, 0))
        self.assertEqual(counts([]), (4, 0, 0))

    def test_duplicated(self):
        self.assertEqual(counts([*EFFECTS, EFFECTS[0]]), (0, 1, 0))
        self.assertEqual(counts([EFFECTS[0]._replace(at_once=True), *EFFECTS[1:]]), (0, 1, 0))
        self.assertEqual(counts([*EFFECTS, Effect("x", "x", 0)]), (0, 1, 0))

    def test_reordered_within_a_key(self):
        swapped = [EFFECTS[2], EFFECTS[1], EFFECTS[0], EFFECTS[3]]
        self.assertEqual(counts(swapped, whole_log=False), (0, 0, 1))
        self.assertEqual(counts(swapped, dead_lettered=["a0"], whole_log=False), (0, 0, 0))
        self.assertEqual(counts(swapped, dead_lettered=["a0"], ordered_with_dead_letters=True, whole_log=False), (0, 0, 1))

    def test_reordered_between_keys(self):
        swapped = [EFFECTS[1], EFFECTS[0], *EFFECTS[2:]]
        self.assertEqual(counts(swapped, whole_log=False), (0, 0, 0))
        self.assertEqual(counts(swapped), (0, 0, 1))
        self.assertEqual(counts(swapped, dead_lettered=["b0"], ordered_with_dead_letters=True), (0, 0, 0))


# A message per second for 100 s.
FED = {n: n for n in range(100)}


def applied(delay=0.0, every=1, until=100, from_=0):
    return {n: n + delay for n in FED if n % every == 0 and from_ <= n < until}


class JudgeFairness(unittest.TestCase):
    def test_windows(self):
        table = [  # what was applied, the judged intervals, windows, worst share, whether it is unfair
            ("all at once", applied(), [(0, 100)], 71, 1, False),
            ("a quarter", applied(every=4), [(0, 100)], 71, 7 / 30, True),  # 30 s have 7 or 8 of them
            ("a third", applied(every=3), [(0, 100)], 71, 1 / 3, False),
            ("none", {}, [(0, 100)], 71, 0, True),
            ("none in the last 30 s", applied(until=70), [(0, 100)], 71, 0, True),
            ("none in 22 s of 30", applied(until=78), [(0, 100)], 71, 8 / 30, False),
            ("none in 23 s of 30", applied(until=77), [(0, 100)], 71, 7 / 30, True),
            ("none while it is down", applied(until=70), [(0, 70)], 41, 1, False),
            ("none before it is up", applied(from_=40), [(40, 100)], 31, 1, False),
            ("down in between", applied(until=50), [(0, 50), (55, 84)], 21, 1, False),
            ("never up for long enough", {}, [(0, 29.9), (50, 79)], 0, None, False),
            ("exactly one window", {}, [(0, 30)], 1, 0, True),
            ("nothing judged", {}, [], 0, None, False),
            ("later than the window", applied(delay=40), [(0, 60)], 31, 0, True),
            ("an earlier backlog counts", {n: n + 50 for n in range(50)}, [(50, 100)], 21, 1, False),
            ("messages of others do not count", {f"other {n}": n for n in range(100)}, [(0, 100)], 71, 0, True),
        ]
        for name, effects, judged, windows, worst, unfair in table:
            with self.subTest(name):
                found = judge_fairness("p", FED, effects, judged, None)
                self.assertEqual((found.windows, bool(found.unfair)), (windows, unfair), found)
                self.assertEqual(found.worst is None, worst is None)
                if worst is not None:
                    self.assertAlmostEqual(found.worst, worst)

    def test_without_input(self):
        self.assertEqual(judge_fairness("p", {}, {}, [(0, 100)], 100), (0, 0, 0, None, 0, []))

    def test_lag_returns_to_zero(self):
        for name, effects, by, unfair in [
            ("in time", applied(delay=1), 101, False),
            ("late", applied(delay=3), 101, True),
            ("one is missing", {n: n for n in range(99)}, 101, True),
            ("the last one is late", {**applied(), 99: 102}, 101, True),
            ("not asked for", {}, None, False),
        ]:
            with self.subTest(name):
                self.assertEqual(bool(judge_fairness("p", FED, effects, [], by).unfair), unfair)

    def test_longest_lag(self):
        for name, fed, effects, lag in [
            ("none", {1: 0, 2: 5}, {1: 0.5, 2: 5.5}, 0),
            ("one", {1: 0, 2: 5}, {1: 0.5, 2: 8}, 3),
            ("two that touch", {1: 0, 2: 3, 3: 20}, {1: 4, 2: 9, 3: 20}, 9),
            ("two apart, the longer one", {1: 0, 2: 20}, {1: 4, 2: 27}, 7),
            ("one within another", {1: 0, 2: 3}, {1: 10, 2: 6}, 10),
            ("never applied", {1: 0, 2: 12}, {2: 12}, 12),
            ("nothing", {}, {}, 0),
        ]:
            with self.subTest(name):
                self.assertEqual(longest_lag(fed, effects), lag)


class Intervals(unittest.TestCase):
    def test_up(self):
        both, one, none = {"p", "q"}, {"q"}, set()
        for name, samples, intervals in [
            ("none", [], []),
            ("always", [(0, both), (1, both), (2, both)], [(0, 2)]),
            ("another one is up", [(0, one), (1, one)], []),
            ("down in between", [(0, both), (1, both), (2, one), (3, none), (4, both), (5, both)], [(0, 1), (4, 5)]),
            ("up only at the end", [(0, none), (1, both)], [(1, 1)]),
            ("no sample for too long", [(0, both), (1, both), (5, both), (6, both)], [(0, 1), (5, 6)]),
        ]:
            with self.subTest(name):
                self.assertEqual(up_intervals(samples, "p", 3), intervals)

    def test_without(self):
        for intervals, others, left in [
            ([(0, 10)], [], [(0, 10)]),
            ([(0, 10)], [(3, 5)], [(0, 3), (5, 10)]),
            ([(0, 10)], [(0, 5)], [(5, 10)]),
            ([(0, 10)], [(5, 20)], [(0, 5)]),
            ([(0, 10)], [(-1, 11)], []),
            ([(0, 10)], [(20, 30)], [(0, 10)]),
            ([(0, 10), (20, 30)], [(8, 22), (25, 26)], [(0, 8), (22, 25), (26, 30)]),
        ]:
            with self.subTest(others=others):
                self.assertEqual(without(intervals, others), left)


if __name__ == "__main__":
    unittest.main()
