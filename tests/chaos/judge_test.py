"""That judge.py finds what is lost, duplicated and reordered, and nothing else."""
import unittest

from judge import Effect, Sent, judge

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


if __name__ == "__main__":
    unittest.main()
